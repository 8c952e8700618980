"""Scripts (`golden.scripts`) of the automaton of classic groups: they print what it answers, logs and becomes.

A request is named by a letter, so that its answer is known when it comes; ID is a member's id (c-1, c-2, … as they are
given out) or - for none, G a generation. Writes are committed at once unless a script says otherwise.

    > rules initial_delay_ms=0 members_max=2     an empty group under these rules (delay 3000 if not told)
    > at 3                                       the clock stands at 3 s; what is due on the way happens
    > join a ID [v3] [instance=i] [offers=range,roundrobin] [topics=t,u] [session=10] [rebalance=60] [type=consumer]
    > sync b ID G [c-1=t0 c-2=t1] [instance=i] [type=consumer] [name=range]
    > beat ID G [instance=i]
    > leave c ID [ID/instance] [-/instance]
    > commit ID G [instance=i]                   whether this member may commit offsets
    > hold / written [not_coordinator]           writes wait; they are committed, or lost with this code
    > crash                                      another coordinator reads the log
"""

from collections.abc import Callable
from typing import Any

from ottla.errors import Code, KafkaError
from ottla.group.classic.group import ClassicGroup
from ottla.group.classic.member import Joined, Leave, Left, Sync, Synced
from ottla.group.contract import records
from support.classic_groups import Stage, subscription

KNOWN_ID_SINCE, SKIP_SINCE, LATEST = 4, 9, 9
NOBODY = "-"


class Loaded:
    """What loading gives a record to put in force."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.groups: dict[str, ClassicGroup] = {}

    def new_classic_group(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(group_id, self._stage.group.rules)

    def put_group(self, group: ClassicGroup) -> None:
        self.groups[group.group_id] = group

    def remove_group(self, group_id: str, kind: str) -> None:
        self.groups.pop(group_id, None)


class Script:
    def __init__(self) -> None:
        self.stage = Stage()

    def run(self, line: str) -> list[str]:
        name, *words = line.split()
        given = [word for word in words if "=" not in word]
        named = dict(word.split("=", 1) for word in words if "=" in word)
        before, logged = described(self.stage.group), len(self.stage.records)
        command: Callable[..., list[str] | None] = getattr(self, f"do_{name}")
        told = command(*given, **named) or []
        stage = self.stage
        told += [f"log {recorded(stage, record)}" for record in stage.records[logged:]]
        told += [f"answer {request} {shown(answer)}" for request, answer in stage.answers.items()]
        stage.answers.clear()
        after = described(stage.group)
        return told + ([f"group {after}"] if after != before else [])

    def do_rules(self, **rules: str) -> None:
        self.stage = Stage(**{name: int(value) for name, value in rules.items()})

    def do_at(self, seconds: str) -> None:
        self.stage.at(float(seconds))

    def do_hold(self) -> None:
        self.stage.commit = False

    def do_written(self, code: str = "none") -> None:
        self.stage.written(Code[code])
        self.stage.commit = True

    def do_join(self, request: str, member: str, version: str = f"v{LATEST}", **asked: str) -> None:
        metadata = subscription(*asked.get("topics", "t").split(","))
        self.stage.join(
            request,
            "" if member == NOBODY else member,
            instance_id=asked.get("instance"),
            protocol_type=asked.get("type", "consumer"),
            protocols=tuple((name, metadata) for name in asked.get("offers", "range").split(",")),
            session_timeout_ms=seconds(asked.get("session", "10")),
            rebalance_timeout_ms=seconds(asked.get("rebalance", "60")),
            needs_known_id=int(version[1:]) >= KNOWN_ID_SINCE,
            may_skip_assignment=int(version[1:]) >= SKIP_SINCE,
        )

    def do_sync(self, request: str, member: str, generation: str, **asked: str) -> None:
        instance, protocol_type, name = (asked.pop(key, None) for key in ("instance", "type", "name"))
        shares = [(one, share.encode()) for one, share in asked.items()]
        wish = Sync(member, instance, int(generation), protocol_type, name, shares)
        self.stage.perform(self.stage.group.sync(wish, request, self.stage.now))

    def do_beat(self, member: str, generation: str, instance: str | None = None) -> list[str]:
        asked = {"member_id": member, "instance_id": instance, "generation": int(generation)}
        return refusal(lambda: self.stage.heartbeat(**asked))

    def do_commit(self, member: str, generation: str, instance: str | None = None) -> list[str]:
        member_id = "" if member == NOBODY else member
        asked = {"member_id": member_id, "instance_id": instance, "generation": int(generation), "version": 9}
        return refusal(lambda: self.stage.group.check_commit(**asked))

    def do_leave(self, request: str, *members: str) -> None:
        asked = [one.partition("/") for one in members]
        self.stage.leave(request, *(Leave("" if i == NOBODY else i, instance or None) for i, _, instance in asked))

    def do_crash(self) -> None:
        stage, loaded = self.stage, Loaded(self.stage)
        for key, value in stage.records:
            records.replay(loaded, memoryview(key), None if value is None else memoryview(value))
        stage.group = loaded.groups.get("g") or loaded.new_classic_group("g")
        stage.perform(stage.group.loaded(stage.now))


def seconds(text: str) -> int:
    return int(float(text) * 1000)


def refusal(call: Callable[[], None]) -> list[str]:
    try:
        call()
    except KafkaError as error:
        return [f"answer {error.code.name}"]
    return ["answer none"]


def recorded(stage: Stage, record: tuple[bytes, bytes | None]) -> str:
    """A record as loading would see it."""
    if record[1] is None:
        return "tombstone"
    loaded = Loaded(stage)
    records.replay(loaded, memoryview(record[0]), memoryview(record[1]))
    return described(loaded.groups["g"])


def described(group: ClassicGroup) -> str:
    parts = [f"{group.state} generation {group.generation}"]
    if group.protocol_name:
        parts.append(group.protocol_name)
    for member in group.members.values():
        instance = f"/{member.instance_id}" if member.instance_id is not None else ""
        share = f"={member.assignment.decode()}" if member.assignment else ""
        parts.append(f"{member.member_id}{instance}{share}{' leads' if member.member_id == group.leader else ''}")
    return " · ".join(parts)


def shown(answer: Any) -> str:
    match answer:
        case Joined(code=Code.none):
            skips = ", nothing to assign" if answer.skip_assignment else ""
            members = f", members {' '.join(one for one, _, _ in answer.members)}" if answer.members else ""
            who = f"{answer.member_id} generation {answer.generation} {answer.protocol_type}/{answer.protocol_name}"
            return f"joined {who}, {answer.leader} leads{members}{skips}"
        case Synced(code=Code.none):
            return f"synced {answer.protocol_type}/{answer.protocol_name} {answer.assignment.decode() or 'nothing'}"
        case Left(code=Code.none):
            lines = (f"{one.member_id or NOBODY}/{one.instance_id or ''} {code.name}" for one, code in answer.members)
            return f"left {', '.join(lines)}"
        case Joined():
            return f"{answer.code.name} {answer.member_id}".rstrip()
    return str(answer.code.name)
