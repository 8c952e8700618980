"""Which topics of an expression a group may know of: asked once, again when topics or ACLs change."""

import asyncio
from typing import Any

import pytest
from ottla.group.consumer import visible_topics
from ottla.group.consumer.heartbeat import Heartbeat, says_what_is_visible
from ottla.group.consumer.member import Member, Position, Subscription
from ottla.group.consumer.state import GroupState
from ottla.group.consumer.topic_matching import TopicExpressions
from ottla.group.consumer.visible_topics import Unseen, VisibleTopics
from ottla.group.resolving import NAMES_PER_SLICE, RegexResolver
from ottla.metadata.model.image import Image
from ottla.system import RealThreads
from support.consumer_groups import image_of

EVERYTHING = "t.*"


class Group:
    """`may`: the topics that its members may describe. `asked`: which were asked for since somebody looked."""

    def __init__(self, topics: int) -> None:
        self.image = image_of({f"t{number}": 1 for number in range(topics)})
        self.resolver = RegexResolver(RealThreads(1), lambda: self.image, is_open=False)
        self.may = {"t0", "t1"}
        self._asked: list[str] = []

    def move(self, **changes: Any) -> None:
        tables = {"topics": self.image.topics, "topics_by_id": self.image.topics_by_id, "acls": self.image.acls}
        self.image = Image("test", version=self.image.version + 1, **{**tables, **changes})

    async def heartbeat(self, *, is_new: bool = False) -> list[str]:
        await self.resolver.resolve([EVERYTHING])
        await self.resolver.authorize("g", EVERYTHING, self._may_describe, is_new=is_new)
        asked, self._asked = self._asked, []
        return asked

    def _may_describe(self, name: str) -> bool:
        self._asked.append(name)
        return name in self.may

    @property
    def seen(self) -> frozenset[str] | None:
        return self.resolver.visible.matched("g", EVERYTHING, self.image.topics)


def test_each_topic_is_asked_for_once_until_topics_or_acls_change() -> None:
    async def scene() -> None:
        group = Group(3)
        await group.resolver.resolve([EVERYTHING])
        assert group.seen is None, "nobody has been asked: what the log says stays"
        assert sorted(await group.heartbeat()) == ["t0", "t1", "t2"]
        assert group.seen == {"t0", "t1"}
        assert await group.heartbeat() == []
        group.move(brokers={})
        assert await group.heartbeat() == [] and group.seen == {"t0", "t1"}
        group.may = {"t1", "t2"}
        group.move(acls={})
        assert group.seen is None
        assert len(await group.heartbeat()) == 3
        assert group.seen == {"t1", "t2"}
        topics = image_of({"t1": 1, "t3": 1}).topics
        group.may.add("t3")
        group.move(topics=topics)
        assert sorted(await group.heartbeat()) == ["t1", "t3"]
        assert group.seen == {"t1", "t3"}

    asyncio.run(scene())


def test_an_expression_that_is_new_to_its_group_is_asked_for_again() -> None:
    """Its members before may have been others, who may know of more."""

    async def scene() -> None:
        group = Group(3)
        await group.heartbeat(is_new=True)
        group.may = {"t2"}
        assert await group.heartbeat() == []
        assert len(await group.heartbeat(is_new=True)) == 3
        assert group.seen == {"t2"}

    asyncio.run(scene())


def test_a_group_that_comes_from_another_broker_is_asked_for_again() -> None:
    async def scene() -> None:
        group = Group(3)
        await group.heartbeat()
        group.resolver.visible.forget()
        assert group.seen is None, "what the log says stays meanwhile"
        assert len(await group.heartbeat()) == 3

    asyncio.run(scene())


def test_members_of_a_group_ask_once_and_others_have_the_loop_meanwhile() -> None:
    async def scene() -> None:
        group = Group(10 * NAMES_PER_SLICE)
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        await group.resolver.resolve([EVERYTHING])
        task = asyncio.ensure_future(others())
        asked = await asyncio.gather(*(group.heartbeat() for _ in range(20)))
        task.cancel()
        assert sum(map(len, asked)) == 10 * NAMES_PER_SLICE
        assert turns >= 10

    asyncio.run(scene())


def test_what_groups_see_takes_a_bounded_number_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visible_topics, "NAMES_MAX", 100)
    expressions = TopicExpressions()
    kept = VisibleTopics(expressions, acls=lambda: None, is_open=False)
    matched = frozenset(f"t{number}" for number in range(41))
    for number in range(10):
        kept.accept(f"g{number}", EVERYTHING, Unseen(matched, None), frozenset({"t0"}))
    assert [group for group, _ in kept.kept] == ["g8", "g9"]
    kept.forget()
    kept.accept("g", EVERYTHING, Unseen(matched, None), frozenset())
    assert [group for group, _ in kept.kept] == ["g"]


@pytest.mark.parametrize(
    ("member_id", "epoch", "counts"),
    [
        ("anybody", 0, True),
        ("anybody", 5, False),
        ("member", 5, True),
        ("member", 4, True),
        ("member", 3, False),
        ("member", -1, False),
    ],
)
def test_only_members_and_those_who_join_say_what_their_group_sees(member_id: str, epoch: int, counts: bool) -> None:
    log = GroupState("g")
    log.members["member"] = Member("member", Subscription(), Position(epoch=5, previous_epoch=4))
    request = Heartbeat(version=1, group_id="g", member_id=member_id, member_epoch=epoch)
    assert says_what_is_visible(request, log) is counts
    assert says_what_is_visible(request, None) is (epoch == 0)
