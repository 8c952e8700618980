"""Prints what nodes of a version send each other, as JSON: the program is run with the package `ottla` of each version.

Protocol buffers by name and number of each field; MessagePack by name of each field. Modules are found by their last
names, since a version may move them.
"""

import importlib
import json
import pkgutil
import sys
from typing import Any, get_args

import msgspec
import ottla
from google.protobuf.descriptor import FieldDescriptor

PROTOCOLS = ("control_pb2", "metadata_pb2", "quorum_pb2")
ASKED = ("ottla.share", "ottla.txn")  # whose modules `questions` and `messages` have what brokers ask each other


def modules(*last_names: str) -> list[Any]:
    names = [found.name for found in pkgutil.walk_packages(ottla.__path__, "ottla.")]
    return [importlib.import_module(name) for name in names if name.rpartition(".")[2] in last_names]


def protocol_shapes() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module in modules(*PROTOCOLS):
        for name, message in module.DESCRIPTOR.message_types_by_name.items():
            found[name] = {field.name: [field.number, kind_of(field)] for field in message.fields}
        for name, service in module.DESCRIPTOR.services_by_name.items():
            found[name] = {method.name: [method.input_type.name, method.output_type.name] for method in service.methods}
    return found


def kind_of(field: FieldDescriptor) -> list[Any]:
    type_name = field.message_type.name if field.message_type is not None else ""
    return [field.type, field.is_repeated, type_name]


def packed_shapes() -> dict[str, Any]:
    """Of every struct that goes as MessagePack: its fields, and whether each has to be there."""
    (packing,) = [module for module in modules("packing") if hasattr(module, "pack_command")]
    commands = list(packing._COMMANDS.values())
    replies = [packing._reply_type(command) for command in commands]
    asked = [module for module in modules("questions", "messages") if module.__name__.startswith(ASKED)]
    structs = [
        one for module in asked for one in vars(module).values() if is_struct(one) and one.__module__ == module.__name__
    ]
    found: dict[str, Any] = {}
    for one in (*commands, *replies, *structs):
        note(one, found)
    return found


def is_struct(one: Any) -> bool:
    return isinstance(one, type) and issubclass(one, msgspec.Struct)


def note(kind: Any, found: dict[str, Any]) -> None:
    """The struct, or those that the type is made of."""
    for part in get_args(kind):
        note(part, found)
    origin = getattr(kind, "__origin__", kind)
    if is_struct(origin) and origin.__name__ not in found:
        fields = msgspec.structs.fields(origin)
        found[origin.__name__] = {one.encode_name: [one.required, words(one.type)] for one in fields}
        for one in fields:
            note(one.type, found)


def words(kind: Any) -> str:
    """The type without the modules that it comes from."""
    parts = ", ".join(words(part) for part in get_args(kind))
    name = getattr(kind, "__name__", None) or str(kind).rpartition(".")[2]
    return f"{name}[{parts}]" if parts else name


if __name__ == "__main__":
    json.dump({"protocol buffers": protocol_shapes(), "MessagePack": packed_shapes()}, sys.stdout, indent=1)
