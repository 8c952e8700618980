"""Commands and replies between nodes: MessagePack of their own types, found by name. Pure.

Fields travel by name and absent ones take their default, so a newer node may add fields with defaults.
"""

from typing import Any, TypeVar, get_args

import msgspec

from ottla.metadata.decisions import commands
from ottla.metadata.decisions.commands import Command

__all__ = ["UnknownCommand", "pack_command", "pack_reply", "unpack_command", "unpack_reply"]

Reply = TypeVar("Reply")


class UnknownCommand(Exception):
    """The other node is newer, or it sent nonsense."""


def _reply_type(command: type[Command[Any]]) -> Any:
    """Command[Reply] is the first base of every command."""
    (base,) = (base for base in command.__orig_bases__ if get_args(base))  # type: ignore[attr-defined]
    return get_args(base)[0]


_COMMANDS: dict[str, type[Command[Any]]] = {
    one.__name__: one
    for one in vars(commands).values()
    if isinstance(one, type) and issubclass(one, Command) and one is not Command
}
_READERS = {name: msgspec.msgpack.Decoder(one) for name, one in _COMMANDS.items()}
_REPLY_READERS = {name: msgspec.msgpack.Decoder(_reply_type(one)) for name, one in _COMMANDS.items()}


def pack_command(command: Command[Any]) -> tuple[str, bytes]:
    return type(command).__name__, msgspec.msgpack.encode(command)


def unpack_command(name: str, data: bytes) -> Command[Any]:
    reader = _READERS.get(name)
    if reader is None:
        raise UnknownCommand(f"this node does not know the command {name}; upgrade it")
    try:
        command: Command[Any] = reader.decode(data)
    except msgspec.DecodeError as error:
        raise UnknownCommand(f"the command {name} cannot be read: {error}") from error
    return command


def pack_reply(reply: object) -> bytes:
    return msgspec.msgpack.encode(reply)


def unpack_reply(command: Command[Reply], data: bytes) -> Reply:
    reply: Reply = _REPLY_READERS[type(command).__name__].decode(data)
    return reply
