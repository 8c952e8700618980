"""Prints what nodes of a version send each other, as JSON: the program is run with the package `ottla` of each version.

Protocol buffers by name and number of each field; MessagePack and JSON by name, type, default and, where it travels so,
place of each field; and the numbers and names that stand for something. Modules are found by their last names, since a
version may move them. The program ends with an error where it cannot tell what is sent.
"""

import ast
import importlib
import json
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import msgspec
import ottla
from google.protobuf.descriptor import Descriptor, FieldDescriptor

Shapes = dict[str, dict[str, list[Any]]]
PROTOCOLS = ("control_pb2", "metadata_pb2", "quorum_pb2")
ASKED = ("ottla.share", "ottla.txn")  # whose modules `questions` and `messages` have what brokers ask each other
CODECS = ("decode", "Decoder", "encode")
HASHED = ("AclBinding",)  # its id in the metadata follows from all its fields in their order
ANSWER_TYPE = 3  # which argument of Asking.ask it is
# What a module packs or reads without naming its type there, by the module's last name: where the type is found.
ELSEWHERE = {
    ("packing", "one"): "every command, by the registry",
    ("packing", "_reply_type(one)"): "the reply of every command, by the registry",
    ("packing", "command"): "the same",
    ("packing", "reply"): "the same",
    ("persister", "kind"): "the modules `questions`",
    ("persister", "answer"): "the modules `questions` and `messages`",
    ("questions", "self.answer_type"): "the same",
    ("asking", "question"): "whoever reads it; the modules `questions` and `messages`",
    ("asking", "answer_type"): "the calls of `ask`",
    ("control", "self.driver.describe()"): "`forwarding`, which reads it",
    ("messages", "voters"): "Voters, which the same module reads",
    ("store", "state"): "HardState, which the same module reads",
    ("store", "hard_state"): "the same",
    ("acls", "self"): "HASHED",
}


class Unknown(Exception):
    """It cannot be told what is sent there."""


def modules(*last_names: str) -> list[Any]:
    names = [found.name for found in pkgutil.walk_packages(ottla.__path__, "ottla.")]
    return [importlib.import_module(name) for name in names if name.rpartition(".")[2] in last_names]


# -- protocol buffers


def protocol_shapes() -> Shapes:
    found: Shapes = {}
    for module in modules(*PROTOCOLS):
        for message in module.DESCRIPTOR.message_types_by_name.values():
            note_message(message, found)
        for name, kind in module.DESCRIPTOR.enum_types_by_name.items():
            found[name] = {value.name: [value.number] for value in kind.values}
        for name, service in module.DESCRIPTOR.services_by_name.items():
            found[name] = {
                f"{service.full_name}.{method.name}": [method.input_type.name, method.output_type.name]
                for method in service.methods
            }
    return found


def note_message(message: Descriptor, found: Shapes) -> None:
    found[message.name] = {field.name: [field.number, kind_of(field)] for field in message.fields}
    for inner in message.nested_types:
        note_message(inner, found)
    for kind in message.enum_types:
        found[kind.name] = {value.name: [value.number] for value in kind.values}


def kind_of(field: FieldDescriptor) -> list[Any]:
    made_of = field.message_type if field.message_type is not None else field.enum_type
    return [field.type, field.is_repeated, made_of.name if made_of is not None else ""]


# -- MessagePack and JSON


def packed_shapes() -> Shapes:
    (packing,) = [module for module in modules("packing") if hasattr(module, "pack_command")]
    commands = list(packing._COMMANDS.values())
    replies = [packing._reply_type(command) for command in commands]
    asked = [module for module in modules("questions", "messages") if module.__name__.startswith(ASKED)]
    structs = [one for module in asked for one in own(module) if is_struct(one)]
    notes = Notes()
    for kind in (*commands, *replies, *structs, *named_types()):
        notes.note(kind)
    for module in asked:
        notes.note_names(module)
    for name in sorted({one.__module__ for one in notes.types.values() if is_struct(one)}):
        notes.note_numbers(importlib.import_module(name))
    return notes.shapes


def own(module: ModuleType) -> list[type]:
    return [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]


def is_struct(one: Any) -> bool:
    return isinstance(one, type) and issubclass(one, msgspec.Struct)


class Notes:
    """The shapes, by the name of each type; two types of one name are an error, since one would hide the other."""

    def __init__(self) -> None:
        self.shapes: Shapes = {}
        self.types: dict[str, Any] = {}

    def note(self, kind: Any) -> None:
        """The struct or the enum, or those that the type is made of."""
        for part in get_args(kind):
            self.note(part)
        origin = getattr(kind, "__origin__", kind)
        if isinstance(origin, type) and issubclass(origin, Enum):
            self.shapes[self.name(origin)] = {one.name: [one.value] for one in origin}
        elif is_struct(origin) and self.name(origin) not in self.shapes:
            self.shapes[origin.__name__] = struct_shape(origin)
            for one in msgspec.structs.fields(origin):
                self.note(one.type)

    def name(self, kind: type) -> str:
        if self.types.setdefault(kind.__name__, kind) is not kind:
            raise Unknown(f"{kind} and {self.types[kind.__name__]} have the same name")
        return kind.__name__

    def note_names(self, module: ModuleType) -> None:
        """Methods, which questions have and modules name in capitals."""
        for one in own(module):
            if isinstance(method := vars(one).get("method"), str):
                self.shapes[one.__name__]["method"] = [method]
        names = {name: [value] for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}
        package, last_name = module.__name__.split(".")[1], module.__name__.rpartition(".")[2]
        self.shapes[f"names in {package} {last_name}"] = names

    def note_numbers(self, module: ModuleType) -> None:
        """Of each class of the module that is nothing but numbers with names."""
        for one in own(module):
            if numbers := {name: [value] for name, value in constants(one).items()}:
                self.shapes[self.name(one)] = numbers


def constants(one: type) -> Mapping[str, int]:
    if is_struct(one):
        return {}
    members = one.__members__ if issubclass(one, Enum) else vars(one)
    return {name: int(value) for name, value in members.items() if name.isupper() and isinstance(value, int)}


def struct_shape(kind: Any) -> dict[str, list[Any]]:
    """Of each field: whether it has to be there, its type, its default, and its place if that is what travels."""
    config = kind.__struct_config__
    shape: dict[str, list[Any]] = {
        one.encode_name: [one.required, words(one.type), default(one), place if config.array_like else None]
        for place, one in enumerate(msgspec.structs.fields(kind))
    }
    hashed = list(shape) if kind.__name__ in HASHED else None
    shape["the whole"] = [False, hashed, config.array_like, config.tag, config.tag_field, config.forbid_unknown_fields]
    return shape


def default(field: Any) -> str:
    if field.required:
        return ""
    if field.default is msgspec.NODEFAULT:
        return f"{field.default_factory.__name__}()"
    return repr(bytes(field.default) if isinstance(field.default, msgspec.Raw) else field.default)


def words(kind: Any) -> str:
    """The type without the modules that it comes from."""
    parts = ", ".join(words(part) for part in get_args(kind))
    name = getattr(kind, "__name__", None) or str(kind).rpartition(".")[2]
    return f"{name}[{parts}]" if parts else name


# -- what the sources pack and read


def named_types() -> Iterator[Any]:
    """Every type that the sources name where they pack something, read it or ask another broker for it."""
    (root,) = map(Path, ottla.__path__)
    for path in sorted(root.rglob("*.py")):
        text = path.read_text()
        if "msgspec" in text:
            parts = path.relative_to(root.parent).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            for expression in packed_in(ast.parse(text)):
                yield from types_of(expression, name)


def packed_in(tree: ast.AST) -> Iterator[ast.expr]:
    """The types that are read, the values that are packed, and the types of the answers to questions."""
    for call in ast.walk(tree):
        if isinstance(call, ast.ImportFrom) and (call.module or "").startswith("msgspec."):
            raise Unknown(f"from {call.module} import …: say msgspec.msgpack.decode, as everywhere")
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr in CODECS and ast.unparse(call.func.value) in ("msgspec.msgpack", "msgspec.json"):
            named = [keyword.value for keyword in call.keywords if keyword.arg == "type"]
            untyped = call.func.attr == "decode" and not named
            yield from [] if untyped else [*named, *call.args][:1]
        elif call.func.attr == "ask" and len(call.args) == ANSWER_TYPE + 1:
            yield call.args[ANSWER_TYPE]


def types_of(expression: ast.expr, module_name: str) -> list[Any]:
    """The type that the expression is, or that it makes."""
    said = ast.unparse(expression)
    module = importlib.import_module(module_name)
    named = expression.func if isinstance(expression, ast.Call) else expression
    try:
        found = eval(ast.unparse(named), vars(module))
    except (NameError, AttributeError):
        found = None
    if is_struct(found) or get_args(found):
        return [found]
    if (module_name.rpartition(".")[2], said) in ELSEWHERE:
        return []
    raise Unknown(f"{module_name} packs or reads {said}: of what type? Name it there, or say in ELSEWHERE")


if __name__ == "__main__":
    json.dump({"protocol buffers": protocol_shapes(), "packed": packed_shapes()}, sys.stdout, indent=1)
