"""Commands and replies between nodes, whatever is in them."""

import uuid
from typing import Any

import msgspec
import pytest
from ottla.errors import Code
from ottla.metadata.decisions import commands as ask
from ottla.metadata.decisions.commands import Command, Outcome
from ottla.metadata.model.state import Listener, PartitionState
from ottla.rpc.packing import UnknownCommand, pack_command, pack_reply, unpack_command, unpack_reply

ID = uuid.UUID(int=5)
EXAMPLES: list[tuple[Command[Any], object]] = [
    (
        ask.CreateTopics([ask.NewTopic("t", assignments=[(0, [1, 2])], configs=[("a", None), ("b", "c")])]),
        [
            Outcome(ask.CreatedTopic("t", ID, 1, 2)),
            Outcome(ask.CreatedTopic("u"), Code.topic_already_exists, "is there"),
        ],
    ),
    (ask.DeleteTopics([ask.TopicRef("t"), ask.TopicRef(id=ID)]), [Outcome(ask.TopicRef("t", ID))]),
    (ask.IncrementalAlterConfigs([((2, "t"), [ask.SettingChange("a", 0, "b")])]), [Outcome((2, "t"))]),
    (
        ask.RegisterBroker(
            1, ID, "cluster", [Listener("A", "host", 1)], rack="r", log_dirs=[ID], features={"metadata.version": (1, 9)}
        ),
        17,
    ),
    (ask.FenceBroker(1, 17, in_controlled_shutdown=True), None),
    (ask.AllocateProducerIds(1, 17), ask.ProducerIdBlock(1000, 1000)),
    (
        ask.AlterPartition(1, 17, [ask.IsrChange(ID, 0, 3, 4, [(1, 17), (2, -1)])]),
        [Outcome(PartitionState(0, (1, 2), (1,), 1)), Outcome(None, Code.fenced_leader_epoch)],
    ),
]


@pytest.mark.parametrize(("command", "reply"), EXAMPLES, ids=lambda value: type(value).__name__)
def test_there_and_back(command: Command[Any], reply: object) -> None:
    arrived = unpack_command(*pack_command(command))
    # Sequences arrive as lists whatever they were: what counts is that the same bytes would leave again.
    assert type(arrived) is type(command)
    assert pack_command(arrived) == pack_command(command)
    assert unpack_reply(command, pack_reply(reply)) == reply


def test_every_command_can_travel() -> None:
    commands = {one for one in vars(ask).values() if isinstance(one, type) and issubclass(one, Command)} - {Command}
    for one in commands:
        with pytest.raises(UnknownCommand, match="cannot be read"):
            unpack_command(one.__name__, b"\xc1")


def test_a_command_of_a_newer_version_is_named() -> None:
    with pytest.raises(UnknownCommand, match="does not know the command Levitate; upgrade it"):
        unpack_command("Levitate", b"\x80")


def test_a_field_that_is_missing_takes_its_default_and_an_unknown_one_is_ignored() -> None:
    sent = msgspec.msgpack.encode({"id": 3, "epoch": 4, "mood": "good"})
    assert unpack_command("FenceBroker", sent) == ask.FenceBroker(3, 4)
