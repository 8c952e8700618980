"""The handlers of one node: each with the parts that it names. Several nodes may live in one process."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ottla.api.call import Call
from ottla.api.registry import Result, load_all

__all__ = ["Handle", "bind"]

Handle = Callable[[Any, Call], Result]


def bind(parts: Mapping[str, object]) -> Mapping[int, Handle]:
    """By the keys of their APIs. LookupError when a handler needs what is not there."""
    bound: dict[int, Handle] = {}
    for key, api in load_all().items():
        missing = [name for name in api.needs if name not in parts]
        if missing:
            raise LookupError(f"{api.name} needs {', '.join(missing)}, which the node does not have")
        bound[key] = partial(api.handler, **{name: parts[name] for name in api.needs}) if api.needs else api.handler
    return bound
