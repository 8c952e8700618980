"""A shard without a log, for consumer groups: what a group wants written is in force and committed at once.

`lose` refuses the next write; every record is kept, so that a test can build the group again as loading would.
"""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from ottla.coordination.core.effects import Compute, Effects, Record, Reply, Wake, Write
from ottla.errors import Code, KafkaError
from ottla.group.classic.group import ClassicGroup, Rules
from ottla.group.consumer.group import ConsumerGroup
from ottla.group.consumer.heartbeat import Heartbeat, HeartbeatAnswer, check, group_for, heartbeat
from ottla.group.consumer.member import Partitions
from ottla.group.consumer.membership import ConsumerRules, Terms
from ottla.group.consumer.records import decode
from ottla.group.consumer.state import GroupState
from ottla.group.consumer.topic_matching import TopicExpressions
from ottla.group.consumer.visible_topics import VisibleTopics
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import PartitionState, Topic

__all__ = ["Client", "LittleShard", "image_of", "topic_id"]

GROUP = "g"


def topic_id(name: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_DNS, name)


def image_of(topics: Mapping[str, int], *, version: int = 1) -> Image:
    made = {
        name: Topic(name, topic_id(name), tuple(PartitionState(i, (1,), (1,), 1) for i in range(count)))
        for name, count in topics.items()
    }
    return Image("test", version=version, topics=made, topics_by_id={each.id: each for each in made.values()})


class Answer:
    def __init__(self) -> None:
        self.value: Any = None


class LittleShard:
    def __init__(self, topics: Mapping[str, int], **terms: Any) -> None:
        self.image = image_of(topics)
        self.terms = Terms(**terms)
        self.policy = "BIDIRECTIONAL"
        self.now = 1000.0
        self.groups: dict[str, Any] = {}
        self.written: list[Record] = []
        self.lose: Code | None = None
        self.computing: list[tuple[Any, Compute]] = []  # as long as nobody calls `compute`
        self._ids = 0
        self.expressions = TopicExpressions()
        self.rules = ConsumerRules(
            new_id=self._new_id,
            wall_ms=lambda: int(self.now * 1000),
            image=lambda: self.image,
            terms=lambda group_id: self.terms,
            policy=lambda: self.policy,
            classic_members_max=lambda: 100,
            new_classic_group=self.new_classic_group,
            adopt=self._adopt,
            matching=VisibleTopics(self.expressions, acls=lambda: self.image.acls, is_open=True),
        )

    def new_classic_group(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(group_id, Rules(self._new_id, lambda: int(self.now * 1000), initial_delay_ms=0))

    def _new_id(self) -> str:
        self._ids += 1
        return f"id-{self._ids}"

    def _adopt(self, group: Any, effects: Effects) -> None:
        self.groups[group.group_id] = group
        self.perform(group, effects)

    @property
    def group(self) -> ConsumerGroup:
        found = self.groups[GROUP]
        assert isinstance(found, ConsumerGroup)
        return found

    def set_topics(self, topics: Mapping[str, int]) -> None:
        self.image = image_of(topics, version=self.image.version + 1)

    def perform(self, group: Any, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case Reply():
                    effect.to.value = effect.answer
                case Write():
                    code = self._append(effect)
                    if effect.then is not None:
                        self.perform(group, effect.then(code, self.now))
                case Compute():
                    self.computing.append((group, effect))
                case Wake():
                    pass

    def _append(self, write: Write) -> Code:
        if self.lose is not None:
            code, self.lose = self.lose, None
            return code
        self.written += write.records
        if write.on_appended is not None:
            write.on_appended(len(self.written) - 1)
        return Code.none

    def compute(self) -> None:
        """Perform the computations that groups left to a thread."""
        waiting, self.computing = self.computing, []
        for group, effect in waiting:
            work = effect.begin()
            self.perform(group, effect.then(work() if work is not None else None, self.now))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for group in list(self.groups.values()):
            self.perform(group, group.tick(self.now))

    def heartbeat(self, **fields: Any) -> HeartbeatAnswer:
        request = Heartbeat(group_id=GROUP, **({"version": 1} | fields))
        check(request, self.terms)
        group, moved = group_for(request, self.groups.get(GROUP), self.rules)
        self.resolve([*group.log.regexes, *([request.regex] if request.regex else [])])
        answer: HeartbeatAnswer = self._asked(group, lambda to: heartbeat(group, request, to, self.now, moved=moved))
        return answer

    def resolve(self, texts: Iterable[str]) -> None:
        self.expressions.follow(self.image.topics)
        for text in texts:
            while (work := self.expressions.work(text)) is not None:
                self.expressions.accept(work.done(lambda: 0.0))

    def ask(self, call: Any) -> Any:
        """Of the group that there is: `call(group, to)` gives the effects."""
        group = self.groups[GROUP]
        return self._asked(group, lambda to: call(group, to))

    def _asked(self, group: Any, call: Any) -> Any:
        to = Answer()
        self.perform(group, call(to))
        if isinstance(to.value, Code):
            raise KafkaError(to.value)
        return to.value

    def reloaded(self) -> GroupState:
        """The group as its records alone say."""
        state = GroupState(GROUP)
        for key, value in self.written:
            entry = decode(key, value) if key[:2] != b"\0\2" else None
            if entry is not None:
                state.apply(entry)
        return state


class Client:
    """A member that follows its assignment: gives up and takes partitions, and says so with its next heartbeat."""

    def __init__(self, shard: LittleShard, name: str, topics: Iterable[str] | None, **facts: Any) -> None:
        self.shard = shard
        self.name = name
        self.epoch = 0
        self.owned: Partitions = frozenset()
        self.facts = {
            "topics": frozenset(topics) if topics is not None else None,
            "rebalance_timeout_ms": 10_000,
        } | facts
        self.instance_id = facts.get("instance_id")

    def beat(self, **news: Any) -> HeartbeatAnswer:
        facts = (self.facts if self.epoch == 0 else {"instance_id": self.instance_id}) | news
        answer = self.shard.heartbeat(member_id=self.name, member_epoch=self.epoch, owned=self.owned, **facts)
        self.epoch = answer.member_epoch
        if answer.assigned is not None:
            self.owned = answer.assigned
        return answer

    def leave(self, *, for_a_while: bool = False) -> None:
        self.shard.heartbeat(member_id=self.name, member_epoch=-2 if for_a_while else -1, instance_id=self.instance_id)
        self.epoch, self.owned = 0, frozenset()
