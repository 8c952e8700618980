"""The record types of the offsets topic, by the version that each key begins with. Pure.

A type registers how its records are replayed when a shard loads:

    @record_type(2)
    def group_metadata(state: State, key: memoryview, value: memoryview | None) -> None: ...

`key` and `value` include the two bytes of version that both begin with. A record that cannot be decoded raises any
exception; it is skipped and counted, and loading continues.
"""

from collections.abc import Callable
from typing import Any

from ottla.coordination.core.records import VERSION, UnknownType

__all__ = ["record_type", "replay"]

Replay = Callable[[Any, memoryview, memoryview | None], None]
_types: dict[int, Replay] = {}


def record_type(*key_versions: int) -> Callable[[Replay], Replay]:
    def register(replayed: Replay) -> Replay:
        for version in key_versions:
            assert version not in _types, f"record type {version} registered twice"
            _types[version] = replayed
        return replayed

    return register


def replay(state: Any, key: memoryview, value: memoryview | None) -> None:
    """Apply a record to `state`, a shard."""
    (version,) = VERSION.unpack_from(key)
    replayed = _types.get(version)
    if replayed is None:
        raise UnknownType(f"record type {version}")
    replayed(state, key, value)
