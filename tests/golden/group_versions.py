"""One conversation of a classic consumer with its coordinator, in every version of the APIs that it takes.

`play` holds it over a plain connection and writes down what was answered; tests/golden/group_versions/*.txt is what
Apache Kafka 4.1.1 answers. Round N speaks version N of each API, or the nearest one that there is. Member ids become
M1, M2, …, the broker's address HOST and PORT; throttle times are left out.
"""

import dataclasses
import importlib
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from support.classic_groups import subscription
from support.frames import Connection
from support.waiting import eventually

FOLDER = Path(__file__).parent / "group_versions"
VERSIONS = {
    "find_coordinator": (0, 6),
    "join_group": (0, 9),
    "sync_group": (0, 5),
    "heartbeat": (0, 4),
    "leave_group": (0, 5),
    "offset_commit": (2, 9),
    "offset_fetch": (1, 9),
    "describe_groups": (0, 6),
    "list_groups": (0, 5),
}
ROUNDS = range(10)
STATIC_SINCE, ALL_TOPICS_SINCE = 5, 2
LEFT_OUT = ("throttle_time",)
SHARE = b"\0\0\0\0\0\0\xff\xff\xff\xff"
MEMBER_ID = re.compile(r"[\w.]+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def topic_of(number: int) -> str:
    return f"topic-{number}"


class Conversation:
    def __init__(self, connection: Connection, number: int) -> None:
        self._connection = connection
        self._number = number
        self._topic = topic_of(number)
        self._members: dict[str, str] = {}
        self.lines: list[str] = []

    def ask(self, api: str, **values: Any) -> Any:
        low, high = VERSIONS[api]
        version = min(max(self._number, low), high)
        folder = f"kio.schema.{api}.v{version}"
        name = "".join(part.capitalize() for part in api.split("_"))
        request_type = getattr(importlib.import_module(f"{folder}.request"), f"{name}Request")
        answer_type = getattr(importlib.import_module(f"{folder}.response"), f"{name}Response")
        answer = self._connection.ask(built(request_type, values), answer_type)
        self.lines.append(f"{api} v{version} {self._told(self._only_own(answer))}")
        return answer

    def _only_own(self, answer: Any) -> Any:
        """Of listed groups those of this conversation."""
        groups = getattr(answer, "groups", ())
        listed = tuple(one for one in groups if str(one.group_id).startswith(self.group))
        return dataclasses.replace(answer, groups=listed) if len(listed) != len(groups) else answer

    def _told(self, answer: Any) -> str:
        port = self._connection.socket.getpeername()[1]
        text = shown(answer).replace(f"port={port}", "port=PORT").replace("'127.0.0.1'", "HOST")
        text = text.replace("'/127.0.0.1'", "HOST")
        return MEMBER_ID.sub(lambda found: self._members.setdefault(found[0], f"M{len(self._members) + 1}"), text)

    @property
    def group(self) -> str:
        return f"round-{self._number}"

    # what is said

    def find(self) -> None:
        self.ask("find_coordinator", key=self.group, key_type=0, coordinator_keys=[self.group])

    def join(self, group: str, instance: str | None = None) -> Any:
        """With the handshake, where the version has it."""
        first = self._join(group, "", instance)
        return self._join(group, first.member_id, instance) if first.generation_id < 0 else first

    def _join(self, group: str, member_id: str, instance: str | None) -> Any:
        return self.ask(
            "join_group",
            group_id=group,
            session_timeout=timedelta(seconds=30),
            rebalance_timeout=timedelta(seconds=60),
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": subscription(self._topic)}],
            reason="first",
        )

    def sync(self, group: str, joined: Any, instance: str | None = None, *, generation: int = 1) -> None:
        self.ask(
            "sync_group",
            group_id=group,
            generation_id=generation,
            member_id=joined.member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[{"member_id": joined.member_id, "assignment": SHARE}],
        )

    def beat(self, group: str, member_id: str, generation: int, instance: str | None = None) -> None:
        who = {"member_id": member_id, "group_instance_id": instance}
        self.ask("heartbeat", group_id=group, generation_id=generation, **who)

    def commit(self, group: str, member_id: str, generation: int, *, partitions: tuple[int, ...] = (0,)) -> None:
        lines = [
            {
                "partition_index": one,
                "committed_offset": 40 + one,
                "committed_leader_epoch": 0,
                "committed_metadata": "m",
            }
            for one in partitions
        ]
        self.ask(
            "offset_commit",
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            retention_time=timedelta(milliseconds=-1),
            topics=[{"name": self._topic, "partitions": lines}],
        )

    def fetch(self, group: str, *, everything: bool = False) -> None:
        topics = None if everything else [{"name": self._topic, "partition_indexes": (0, 1)}]
        one = {"group_id": group, "topics": topics, "member_id": None, "member_epoch": -1}
        self.ask("offset_fetch", groups=[one], require_stable=False, **one)

    def describe(self, *groups: str) -> None:
        self.ask("describe_groups", groups=groups, include_authorized_operations=False)

    def leave(self, group: str, member_id: str, instance: str | None = None) -> None:
        one = {"member_id": member_id, "group_instance_id": instance, "reason": "done"}
        self.ask("leave_group", group_id=group, member_id=member_id, members=[one])


def play(port: int, number: int) -> str:
    """The topic (`topic_of`) has one partition. The offsets topic must be there already (`wait_for_coordinator`)."""
    with Connection(port, client_id="golden") as connection:
        talk = Conversation(connection, number)
        group = talk.group
        talk.find()
        talk.describe(group)
        talk.beat(group, "stranger", 1)
        talk.fetch(group)
        member = talk.join(group)
        talk.sync(group, member, generation=7)
        talk.sync(group, member)
        talk.beat(group, member.member_id, 1)
        talk.beat(group, member.member_id, 2)
        talk.commit(group, member.member_id, 1, partitions=(0, 1))
        talk.commit(group, member.member_id, 0)
        talk.commit(group, "stranger", 1)
        talk.commit(group, "", -1)
        talk.fetch(group)
        if number >= ALL_TOPICS_SINCE:
            talk.fetch(group, everything=True)
        talk.describe(group)
        talk.ask("list_groups", states_filter=("stable",), types_filter=("classic",))
        talk.leave(group, "stranger")
        talk.leave(group, member.member_id)
        talk.describe(group)
        talk.commit(group, "", -1)
        if number >= STATIC_SINCE:
            static_members(talk, f"{group}-static")
        return "\n".join(talk.lines) + "\n"


def static_members(talk: Conversation, group: str) -> None:
    first = talk.join(group, "i")
    talk.sync(group, first, "i")
    second = talk.join(group, "i")
    talk.beat(group, first.member_id, 1, "i")
    talk.beat(group, second.member_id, 1, "i")
    talk.describe(group)
    talk.leave(group, "", "nobody")
    talk.leave(group, "", "i")


def wait_for_coordinator(port: int) -> None:
    """The first one who asks may have to wait until the offsets topic is there and read."""
    with Connection(port) as connection:
        talk = Conversation(connection, 3)

        def codes() -> tuple[int, int]:
            found = talk.ask("find_coordinator", key="any", key_type=0)
            beat = talk.ask("heartbeat", group_id="any", generation_id=0, member_id="stranger", group_instance_id=None)
            return int(found.error_code), int(beat.error_code)

        eventually(codes, lambda told: told == (0, 25), timeout_s=60)


def built(entity: Any, values: Mapping[str, Any]) -> Any:
    """A message of kio from those values that this version knows."""
    hints = get_type_hints(entity)
    known = {field.name: values[field.name] for field in dataclasses.fields(entity) if field.name in values}
    return entity(**{name: _converted(hints[name], value) for name, value in known.items()})


def _converted(hint: Any, value: Any) -> Any:
    tuples = [one for one in (hint, *get_args(hint)) if get_origin(one) is tuple]
    if value is None or not tuples:
        return value
    (inner, _) = get_args(tuples[0])
    return tuple(built(inner, one) if dataclasses.is_dataclass(inner) else one for one in value)


def shown(value: Any) -> str:
    if dataclasses.is_dataclass(value):
        named = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
        return "{" + " ".join(f"{name}={shown(one)}" for name, one in named if name not in LEFT_OUT) + "}"
    if isinstance(value, tuple):
        ordered = sorted(value, key=lambda one: getattr(one, "partition_index", 0))  # Kafka tells of errors first
        return "[" + " ".join(map(shown, ordered)) + "]"
    return getattr(value, "name", None) or repr(value)
