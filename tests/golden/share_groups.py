"""One conversation of the members of a share group, and of tools, with the coordinator.

`play` holds it over a plain connection and writes down what was answered; tests/golden/share_groups.txt is what Apache
Kafka 4.1.1 answers. A topic's id becomes its name in capitals; how often members are to come, throttle times, and who
of several has which partition are left out. AlterShareGroupOffsets has a test of its own: in 4.1.1 it does nothing yet.
"""

import dataclasses
import importlib
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

from golden.group_versions import built, shown
from support.classic_groups import subscription
from support.frames import Connection
from support.waiting import eventually

GOLDEN = Path(__file__).parent / "share_groups.txt"
TOPIC, OTHER_TOPIC, PARTITIONS = "shared", "other", 2
GROUP, CLASSIC_GROUP = "sharing", "classic"
STRANGER, FIRST, SECOND = "stranger", "first", "second"
LEAVE = -1
_SECONDS_30 = timedelta(seconds=30)
ASSIGNMENT = re.compile(r"assignment={.*?}]}")
LEFT_OUT = ("heartbeat_interval", "authorized_operations")


class ShareConversation:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._ids: dict[str, str] = {}
        self.lines: list[str] = []

    def told(self, api: str, version: int, **values: Any) -> Any:
        """Asked, and not written down."""
        folder = f"kio.schema.{api}.v{version}"
        name = "".join(part.capitalize() for part in api.split("_"))
        request_type = getattr(importlib.import_module(f"{folder}.request"), f"{name}Request")
        answer_type = getattr(importlib.import_module(f"{folder}.response"), f"{name}Response")
        return self._connection.ask(built(request_type, values), answer_type)

    def ask(self, api: str, version: int, **values: Any) -> Any:
        answer = self.told(api, version, **values)
        asked = " ".join(f"{name}={value!r}" for name, value in values.items())
        self.lines += [f"> {api} v{version} {asked}", f"  {self._written(answer)}"]
        return answer

    def _written(self, answer: Any) -> str:
        text = shown(_without(answer)).replace("'/127.0.0.1'", "HOST")
        for topic_id, name in self._ids.items():
            text = text.replace(topic_id, name)
        return text

    def learn(self, topic: str) -> None:
        """Its id, for what is written down."""

        def topic_id() -> Any:
            topics = ({"topic_id": None, "name": topic},)
            found = self.told("metadata", 12, topics=topics, allow_auto_topic_creation=False, **_OPERATIONS)
            return found.topics[0].topic_id

        self._ids[repr(eventually(topic_id, lambda found: found is not None))] = topic.upper()

    # what is said

    def beat(self, member: str, epoch: int, *, group: str = GROUP, **values: Any) -> Any:
        usual = {"rack_id": None, "subscribed_topic_names": None}
        told = self.ask(
            "share_group_heartbeat", 1, group_id=group, member_id=member, member_epoch=epoch, **(usual | values)
        )
        if member != FIRST:
            self.lines[-1] = ASSIGNMENT.sub("assignment={…}", self.lines[-1])
        return told

    def beat_until(self, member: str, epoch: int, *sizes: int) -> int:
        """Until it is assigned as many partitions; the member's epoch then. Not written down: it takes its time."""

        def beat() -> int:
            nonlocal epoch
            told = self.told("share_group_heartbeat", 1, group_id=GROUP, member_id=member, member_epoch=epoch)
            epoch = told.member_epoch
            return self.held(member)

        eventually(beat, lambda held: held in sizes)
        return epoch

    def held(self, member: str) -> int:
        (group,) = self.told("share_group_describe", 1, group_ids=(GROUP,), include_authorized_operations=False).groups
        (one,) = (each for each in group.members if each.member_id == member)
        return sum(len(topic.partitions) for topic in one.assignment.topic_partitions)

    def describe(self, *groups: str) -> None:
        self.ask("share_group_describe", 1, group_ids=groups, include_authorized_operations=False)

    def offsets(self, *topics: dict[str, Any], group: str = GROUP, everything: bool = False) -> None:
        asked = {"group_id": group, "topics": None if everything else topics}
        self.ask("describe_share_group_offsets", 0, groups=(asked,))

    def delete_offsets(self, *topics: str, group: str = GROUP) -> None:
        named = tuple({"topic_name": topic} for topic in topics)
        self.ask("delete_share_group_offsets", 0, group_id=group, topics=named)


_OPERATIONS = {"include_topic_authorized_operations": False}


def _without(value: Any) -> Any:
    """What depends on the broker's settings or on the moment is shown as nothing."""
    if isinstance(value, tuple):
        return tuple(map(_without, value))
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    named = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    changed = {name: None if name in LEFT_OUT else _without(one) for name, one in named.items()}
    return dataclasses.replace(value, **changed)


def play(port: int) -> str:
    """There are both topics, of two partitions, and share groups are on. Nobody shared anything before."""
    with Connection(port, client_id="golden") as connection:
        talk = ShareConversation(connection)
        talk.learn(TOPIC)
        talk.learn(OTHER_TOPIC)
        commit_by_consumers(talk, version=8, group=CLASSIC_GROUP)
        refusals(talk)
        membership(talk)
        others_ask(talk)
        empty_group(talk)
        end(talk)
        return "\n".join(talk.lines) + "\n"


def refusals(talk: ShareConversation) -> None:
    names = {"subscribed_topic_names": (TOPIC,)}
    talk.beat(STRANGER, 1)
    talk.beat(STRANGER, LEAVE)
    talk.beat("", 0, **names)
    talk.beat(FIRST, 0, group="", **names)
    talk.beat(FIRST, 0, rack_id="", **names)
    talk.beat(FIRST, 0)
    talk.beat(FIRST, 0, subscribed_topic_names=())
    talk.beat(FIRST, -2)
    talk.describe(GROUP)
    talk.describe("")
    talk.offsets(everything=True)
    talk.delete_offsets(TOPIC)
    talk.ask("delete_groups", 2, groups_names=(GROUP,))


def membership(talk: ShareConversation) -> None:
    talk.beat(FIRST, 0, subscribed_topic_names=(TOPIC,))
    epoch = talk.beat_until(FIRST, 1, PARTITIONS)
    talk.beat(FIRST, epoch)
    talk.beat(FIRST, epoch, subscribed_topic_names=(TOPIC,))
    talk.describe(GROUP)
    joined = talk.beat(SECOND, 0, rack_id="r", subscribed_topic_names=(TOPIC,))
    several = range(1, PARTITIONS + 1)
    talk.beat_until(FIRST, epoch, *several)
    epoch = talk.beat_until(SECOND, joined.member_epoch, *several)
    talk.beat(SECOND, epoch + 1)
    talk.beat(SECOND, 1)
    talk.beat(SECOND, 0, subscribed_topic_names=(TOPIC,))
    talk.beat(STRANGER, epoch)
    talk.beat(STRANGER, LEAVE)
    talk.beat("third", 0, subscribed_topic_names=(TOPIC,))
    talk.beat(SECOND, LEAVE)
    talk.beat(SECOND, epoch)


def others_ask(talk: ShareConversation) -> None:
    """For a group of this id of another type, or by way of another protocol."""
    talk.ask("list_groups", 5, states_filter=(), types_filter=("share",))
    talk.ask("list_groups", 5, states_filter=("stable",), types_filter=("Share",))
    talk.ask("list_groups", 5, states_filter=("empty",), types_filter=("share",))
    for version in (5, 6):
        talk.ask("describe_groups", version, groups=(GROUP,), include_authorized_operations=False)
    talk.ask("consumer_group_describe", 1, group_ids=(GROUP,), include_authorized_operations=False)
    talk.ask("delete_groups", 2, groups_names=(GROUP,))
    talk.delete_offsets(TOPIC)
    commit_by_consumers(talk, version=8)
    commit_by_consumers(talk, version=9)
    other_protocols(talk)
    talk.beat(FIRST, 0, group=CLASSIC_GROUP, subscribed_topic_names=(TOPIC,))
    talk.describe(CLASSIC_GROUP)
    talk.offsets(group=CLASSIC_GROUP, everything=True)


def commit_by_consumers(talk: ShareConversation, *, version: int, group: str = GROUP) -> None:
    line = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": 0, "committed_metadata": ""}
    commit = {"generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}
    topics = ({"name": TOPIC, "partitions": (line,)},)
    talk.ask("offset_commit", version, group_id=group, topics=topics, **commit)
    topics = ({"name": TOPIC, "partition_indexes": (0,)},)
    one = {"group_id": group, "topics": topics, "member_id": None, "member_epoch": -1}
    talk.ask("offset_fetch", version, groups=(one,), require_stable=False)


def other_protocols(talk: ShareConversation) -> None:
    who = {"member_id": "", "group_instance_id": None}
    joining = {"protocol_type": "consumer", "protocols": ({"name": "range", "metadata": subscription(TOPIC)},)}
    timeouts = {"session_timeout": _SECONDS_30, "rebalance_timeout": _SECONDS_30}
    talk.ask("join_group", 9, group_id=GROUP, reason=None, **who, **joining, **timeouts)
    protocol = {"protocol_type": "consumer", "protocol_name": "range", "assignments": ()}
    member = {"member_id": FIRST, "group_instance_id": None, "generation_id": 1}
    talk.ask("sync_group", 5, group_id=GROUP, **member, **protocol)
    talk.ask("heartbeat", 4, group_id=GROUP, **member)
    leaving = {"member_id": FIRST, "group_instance_id": None, "reason": None}
    talk.ask("leave_group", 5, group_id=GROUP, members=(leaving,))
    topics = ({"name": TOPIC, "partitions": ({"partition_index": 0},)},)
    talk.ask("offset_delete", 0, group_id=GROUP, topics=topics)
    consumer = {"instance_id": None, "rack_id": None, "rebalance_timeout": _SECONDS_30, "server_assignor": None}
    wishes = {"subscribed_topic_names": (TOPIC,), "subscribed_topic_regex": None, "topic_partitions": ()}
    talk.ask("consumer_group_heartbeat", 1, group_id=GROUP, member_id="c", member_epoch=0, **consumer, **wishes)


def empty_group(talk: ShareConversation) -> None:
    talk.beat(FIRST, LEAVE)
    talk.beat("third", LEAVE)
    talk.ask("list_groups", 5, states_filter=("empty",), types_filter=("share",))
    talk.describe(GROUP)
    commit_by_consumers(talk, version=9)
    other_protocols(talk)
    whole = {"topic_name": TOPIC, "partitions": tuple(range(PARTITIONS))}
    talk.offsets(whole)
    talk.offsets(everything=True)
    talk.offsets({"topic_name": "unheard", "partitions": (0,)}, {"topic_name": TOPIC, "partitions": (0, 7)})
    talk.offsets(whole, group="nobody")
    talk.delete_offsets(TOPIC, "unheard")
    talk.delete_offsets(TOPIC)
    talk.offsets(everything=True)


def end(talk: ShareConversation) -> None:
    talk.ask("delete_groups", 2, groups_names=(GROUP,))
    talk.describe(GROUP)
    talk.ask("list_groups", 5, states_filter=(), types_filter=("share",))
