"""Generate broker/ottla/api/requests.py from kio's schemas. With --check: fail when it differs, change nothing."""

import argparse
import sys
from pathlib import Path

from ottla.api import requests
from ottla.api.registry import APIS, load_all
from ottla.wire.schema import Field, Struct, request_struct

OUTPUT = Path(__file__).resolve().parent.parent / "broker/ottla/api/requests.py"
HEAD = '''"""What handlers read of requests, in all versions served. Made by scripts/generate_requests.py: do not edit.

A message has the fields of its version and of the newest one, with their defaults. A field that only older versions
have is marked; it is missing in the others. Messages are not made from these classes: `wire.reader` makes its own.
"""

from __future__ import annotations

from collections.abc import Sequence


'''
TYPES = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "records": "memoryview",
    "uuid": "bytes | None",  # the zero id stands for none
}
Classes = dict[str, dict[str, tuple[str, list[int]]]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    text = generated()
    if not parser.parse_args().check:
        OUTPUT.write_text(text)
        return 0
    if OUTPUT.exists() and OUTPUT.read_text() == text:
        return 0
    print(f"{OUTPUT.name} does not follow from the schemas; run python scripts/generate_requests.py")
    return 1


def generated() -> str:
    # A new handler imports the type of its request, which this run is about to write.
    requests.__dict__["__getattr__"] = lambda name: type(name, (), {})
    load_all()
    parts = []
    for key, api in sorted(APIS.items()):
        classes: Classes = {}
        versions = range(api.version_min, api.version_max + 1)
        for version in versions:
            struct = request_struct(key, version)
            add(classes, struct, struct.name, version)
        classes[struct.name] = classes.pop(struct.name)  # behind all that it refers to
        parts += [class_text(name, fields, newest=versions[-1]) for name, fields in classes.items()]
    return HEAD + "\n\n".join(parts)


def add(classes: Classes, struct: Struct, request: str, version: int) -> None:
    """Structs before those that refer to them; the fields of all versions."""
    for field in struct.fields:
        if field.struct is not None:
            add(classes, field.struct, request, version)
    fields = classes.setdefault(class_name(struct.name, request), {})
    for field in struct.fields:
        known, versions = fields.get(field.name, ("", []))
        text = type_of(field, request)
        fields[field.name] = (known if known.endswith("None") else text, [*versions, version])


def class_name(struct: str, request: str) -> str:
    prefix = request.removesuffix("Request")
    return struct if struct.startswith(prefix) else prefix + struct


def type_of(field: Field, request: str) -> str:
    one = class_name(field.struct.name, request) if field.struct is not None else TYPES.get(field.kind, "int")
    text = f"Sequence[{one}]" if field.is_array else one
    return f"{text} | None" if field.nullable and not text.endswith("None") else text


def class_text(name: str, fields: dict[str, tuple[str, list[int]]], *, newest: int) -> str:
    lines = [f"class {name}:"]
    for field, (text, versions) in fields.items():
        only = "" if newest in versions else f"  # up to v{versions[-1]}"
        lines.append(f"    {field}: {text}{only}")
    return "\n".join(lines if fields else [*lines, "    pass"]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
