"""The table of APIs. `@api` puts a handler into it; ApiVersions is computed from it.

A handler is a function that returns the answer, or a coroutine function. Behind `(request, call)` it names the parts of
the node that it needs; `binding` gives it those. It is called in the order in which requests arrive on a connection; a
plain function has finished its work when the next request is handled.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

import ottla.api
from ottla.api.call import Answer, Deferred
from ottla.wire.frames import FrameLimits
from ottla.wire.reader import Malformed, Read, Tally, bounded, reader_of
from ottla.wire.schema import request_struct, response_struct
from ottla.wire.writer import element_writer_of, writer_of

__all__ = [
    "APIS",
    "MANY_BYTES_MAX",
    "MANY_ELEMENTS_MAX",
    "MOST_BYTES_MAX",
    "UNLIMITED",
    "Api",
    "Handler",
    "Result",
    "api",
    "frame_limits",
    "load_all",
]

Result = Answer | Awaitable[Answer | Deferred] | Deferred
Handler = Callable[..., Result]
AnyHandler = TypeVar("AnyHandler", bound=Handler)
MakeReader = Callable[[Tally], Read]
Writer = Callable[[list[bytes], Mapping[str, Any]], None]

API_VERSIONS_KEY = 18
# Elements in a request that is decoded and handled at once; a larger one is worked off away from others.
INLINE_ELEMENTS_MAX = 2_000
# In a request of an API that people use for much at once, though its handler takes it in one go.
MANY_ELEMENTS_MAX = 10_000
# Bytes of a request with MANY_ELEMENTS_MAX names of topics and settings, and with 50,000 names as long as names may be.
MANY_BYTES_MAX = 8 << 20
MOST_BYTES_MAX = 16 << 20
UNLIMITED = 2**31 - 1  # but by socket.request.max.bytes


class Api:
    """One Kafka API: its key, the versions served, its handler, and its codecs, made when first used."""

    def __init__(
        self,
        key: int,
        versions: tuple[int, int],
        advertised_from: int,
        handler: Handler,
        readers: Mapping[int, MakeReader],
        pipelined: bool,
        elements_max: int | None,
        bytes_max: int | None,
        inline_max: int,
    ) -> None:
        self.key = key
        self.pipelined = pipelined
        self._elements_max = elements_max
        self._bytes_max = bytes_max
        self._inline_max = inline_max
        self.version_min, self.version_max = versions
        self.advertised_from = advertised_from
        self.handler = handler
        _, _, *needs = inspect.signature(handler).parameters.values()
        assert all(need.kind is need.POSITIONAL_OR_KEYWORD and need.default is need.empty for need in needs), handler
        self.needs = [need.name for need in needs]
        """The names of the parts that the handler gets besides request and call."""
        self.name = handler.__name__
        self._readers: dict[int, Read] = {}
        self._hand_made = readers
        self._prepared: set[int] = set()
        self._writers: dict[int, Writer] = {}
        self._element_writers: dict[tuple[int, tuple[str, ...]], Callable[[list[bytes], Any], None]] = {}
        self._flexible: dict[int, bool] = {}

    @property
    def works_in_slices(self) -> bool:
        return self._elements_max is None

    def bytes_max(self, setting_bytes: int) -> int:
        """Of one request; `setting_bytes` is ottla.request.bytes.max."""
        if self._bytes_max is not None:
            return max(setting_bytes, self._bytes_max)
        if self._elements_max is None:
            return max(setting_bytes, MOST_BYTES_MAX)
        return setting_bytes if self._elements_max <= INLINE_ELEMENTS_MAX else max(setting_bytes, MANY_BYTES_MAX)

    def serves(self, version: int) -> bool:
        return self.version_min <= version <= self.version_max

    def is_prepared(self, version: int) -> bool:
        return version in self._prepared

    def prepare(self, version: int) -> None:
        """Make the codecs of a version before they are used: loading its schemas takes milliseconds. Any thread."""
        self.reader(version)
        self.writer(version)
        self.flexible(version)
        self._prepared.add(version)

    def reader(self, version: int) -> Read:
        """Raises TooMany for a request that is to be read with `large_reader`."""
        read = self._readers.get(version)
        if read is None:
            read = self._readers[version] = self._make_reader(version, Tally(self._inline_max))
        return read

    def large_reader(self, version: int, *, elements_max: int) -> Read:
        """A new one, since it may run in a thread. Raises TooMany, too."""
        if self._elements_max is not None:
            elements_max = min(elements_max, self._elements_max)
        return self._make_reader(version, Tally(elements_max))

    def _make_reader(self, version: int, tally: Tally) -> Read:
        hand_made = self._hand_made.get(version)
        if hand_made is not None:
            return hand_made(tally)
        newest = request_struct(self.key, self.version_max)
        return bounded(reader_of(request_struct(self.key, version), newest, tally), tally)

    def writer(self, version: int) -> Writer:
        write = self._writers.get(version)
        if write is None:
            write = self._writers[version] = writer_of(response_struct(self.key, version))
        return write

    def element_writer(self, version: int, path: tuple[str, ...]) -> Callable[[list[bytes], Any], None]:
        write = self._element_writers.get((version, path))
        if write is None:
            write = self._element_writers[version, path] = element_writer_of(response_struct(self.key, version), path)
        return write

    def flexible(self, version: int) -> bool:
        known = self._flexible.get(version)
        if known is None:
            known = self._flexible[version] = request_struct(self.key, version).flexible
        return known

    def has_error_code(self, version: int) -> bool:
        return any(field.name == "error_code" for field in response_struct(self.key, version).fields)

    def flexible_response_header(self, version: int) -> bool:
        """ApiVersions keeps the old header for ever, so that a client can read it before it knows us."""
        return self.key != API_VERSIONS_KEY and self.flexible(version)


APIS: dict[int, Api] = {}


def api(
    *,
    key: int,
    versions: tuple[int, int],
    advertised_from: int | None = None,
    readers: Mapping[int, MakeReader] = MappingProxyType({}),
    pipelined: bool = False,
    elements_max: int | None = INLINE_ELEMENTS_MAX,
    bytes_max: int | None = None,
    inline_max: int = INLINE_ELEMENTS_MAX,
) -> Callable[[AnyHandler], AnyHandler]:
    """Register a handler for all `versions` of one API. `readers` are hand-made ones, by version.

    `pipelined`: it is begun while earlier requests of its connection are under way; its answers are small. All others
    wait until the client has taken what it asked for before, as every request does in Kafka.

    `elements_max`: in one request, for a handler that does not work it off in slices; None for one that does.
    `bytes_max`: of one request, where it is not what so many elements need. Never less than ottla.request.bytes.max.
    `inline_max`: what is handled at once; a request with more is large.
    """

    def register(handler: AnyHandler) -> AnyHandler:
        assert key not in APIS, f"API {key} registered twice"
        since = versions[0] if advertised_from is None else advertised_from
        APIS[key] = Api(key, versions, since, handler, readers, pipelined, elements_max, bytes_max, inline_max)
        return handler

    return register


def frame_limits(setting_bytes: int) -> FrameLimits:
    """What a request may have by its API, checked when its first bytes are there."""

    def check(key: int, size: int) -> None:
        served = APIS.get(key)
        bytes_max = setting_bytes if served is None else served.bytes_max(setting_bytes)
        if size > bytes_max:
            name = f"API {key}" if served is None else served.name
            raise Malformed(f"{name} has {size} bytes, allowed are {bytes_max} (ottla.request.bytes.max)")

    return FrameLimits(setting_bytes, check)


@cache
def load_all() -> Mapping[int, Api]:
    """Import every API file and give the table."""
    for module in pkgutil.iter_modules(ottla.api.__path__):
        if module.name.startswith("k") and module.name[1:3].isdigit():
            importlib.import_module(f"ottla.api.{module.name}")
    return APIS
