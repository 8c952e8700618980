"""A classic group without a shard: time is a number, what it wants written is committed when the test says so."""

from collections.abc import Callable
from typing import Any

from ottla.coordination.core.effects import Effects, Record, Reply, Wake, Write
from ottla.errors import Code
from ottla.group.classic.group import ClassicGroup, Rules
from ottla.group.classic.member import Join, Joined, Leave, Left, Sync, Synced

__all__ = ["Stage", "subscription"]

EVENTS_MAX = 1000


def subscription(*topics: str) -> bytes:
    """ConsumerProtocolSubscription v0."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


class Stage:
    """Requests get names; `answers` maps them to what was answered. `commit` False keeps writes until `written`."""

    def __init__(self, *, commit: bool = True, **rules: Any) -> None:
        self.now = 0.0
        self.commit = commit
        self.answers: dict[str, Any] = {}
        self.records: list[Record] = []
        self._ids = 0
        self._waiting: list[Write] = []
        self._wake: float | None = None
        self.group = ClassicGroup("g", Rules(new_id=self._new_id, wall_ms=self._wall_ms, **rules))

    def _new_id(self) -> str:
        self._ids += 1
        return str(self._ids)

    def _wall_ms(self) -> int:
        return 1_700_000_000_000 + round(self.now * 1000)

    def perform(self, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, Reply):
                assert effect.to not in self.answers, f"{effect.to} was answered twice"
                self.answers[effect.to] = effect.answer
            elif isinstance(effect, Wake):
                self._wake = effect.at if self._wake is None else min(self._wake, effect.at)
            elif isinstance(effect, Write):
                self.records += effect.records
                self._waiting.append(effect)
        if self.commit:
            self.written()

    def written(self, code: Code = Code.none) -> None:
        waiting, self._waiting = self._waiting, []
        for write in waiting:
            if write.then is not None:
                self.perform(write.then(code, self.now))

    def at(self, time: float) -> None:
        """Let time pass, with all that is due on the way."""
        for _ in range(EVENTS_MAX):
            if self._wake is None or self._wake > time:
                break
            self.now, self._wake = max(self.now, self._wake), None
            self.perform(self.group.tick(self.now))
        self.now = time

    # requests

    def join(self, name: str, member_id: str = "", **changes: Any) -> Joined | None:
        request = Join(
            member_id=member_id,
            instance_id=None,
            client_id="c",
            client_host="/h",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=(("range", subscription("t")),),
        )._replace(**changes)
        self.perform(self.group.join(request, name, self.now))
        return self.answers.get(name)

    def admit(self, name: str, **changes: Any) -> str:
        """The handshake of a new dynamic member; its id, while its join waits under `name`."""
        given = self.join(f"{name}-first", **changes)
        assert given is not None and given.code is Code.member_id_required
        self.join(name, given.member_id, **changes)
        return given.member_id

    def sync(self, name: str, member_id: str, **changes: Any) -> Synced | None:
        request = Sync(member_id, None, self.group.generation)._replace(**changes)
        self.perform(self.group.sync(request, name, self.now))
        return self.answers.get(name)

    def leave(self, name: str, *members: Leave) -> Left:
        self.perform(self.group.leave(members, name, self.now))
        return self.answers[name]

    def heartbeat(self, member_id: str, **changes: Any) -> None:
        asked = {"member_id": member_id, "instance_id": None, "generation": self.group.generation, **changes}
        self.perform(self.group.heartbeat(**asked, now=self.now))

    # whole stretches

    def stable(self, count: int, **changes: Any) -> list[str]:
        """A group of so many dynamic members with an assignment each."""
        ids = [self.admit(f"join{i}", **changes) for i in range(count)]
        self.at(self.now + self.group.rules.initial_delay_ms / 1000 * (count + 2))
        assignments = [(member_id, b"of " + member_id.encode()) for member_id in ids]
        leader = self.group.leader
        for number, member_id in enumerate(ids):
            self.sync(f"sync{number}", member_id, assignments=assignments if member_id == leader else ())
        assert self.group.state == "Stable"
        return ids


def refused(call: Callable[[], Any]) -> Code:
    from ottla.errors import KafkaError

    try:
        call()
    except KafkaError as error:
        return error.code
    return Code.none
