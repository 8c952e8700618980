"""Binds handlers to the parts of one node that they name. Several nodes may run in one process."""

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from ottla.api.authorization import guarded
from ottla.api.call import Call
from ottla.api.registry import Handler, Result, load_all

__all__ = ["Handle", "bind"]

Handle = Callable[[Any, Call], Result]


def bind(parts: Mapping[str, object]) -> Mapping[int, Handle]:
    """By the keys of their APIs.

    LookupError when a handler needs what is not there, or nobody said what its clients must be allowed.
    """
    bound: dict[int, Handle] = {}
    for key, api in load_all().items():
        missing = [name for name in api.needs if name not in parts]
        if missing:
            raise LookupError(f"{api.name} needs {', '.join(missing)}, which the node does not have")
        bound[key] = guarded(key, _with_parts(api.handler, tuple(parts[name] for name in api.needs)))
    return bound


def _with_parts(handler: Handler, parts: tuple[object, ...]) -> Handle:
    """A copy of the function with these as defaults of its last parameters: `partial` would cost a dictionary per
    request, a closure a call."""
    assert isinstance(handler, FunctionType), f"{handler} is no function"
    return FunctionType(handler.__code__, handler.__globals__, handler.__name__, parts, handler.__closure__)
