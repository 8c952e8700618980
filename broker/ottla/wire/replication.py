"""Frames of the replication stream between two brokers: one gRPC message each, bytes in and out. Pure.

The follower opens the stream and says which partitions it wants from where; the leader pushes. A *slot* is the
follower's number for one partition in one leader epoch from one position on. Slots are never used again within a
stream, so whatever arrives for a slot that was given up is recognised as stale. Slot 0 stands for the whole stream.

    follower → leader   Hello · Follow · Unfollow · Ack · Refused
    leader → follower   Welcome · Data · Watermarks · Diverged · StartAt · Refused

All numbers are big-endian. Data has a head of fixed size, an entry of fixed size per partition, then the batches of all
of them as they lie in the leader's log.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import starmap
from struct import Struct
from struct import error as StructError
from typing import NamedTuple, TypeVar

from ottla.errors import Code
from ottla.ports import Buffer

__all__ = [
    "BEHIND",
    "ITEMS_MAX",
    "STREAM_SLOT",
    "VERSION_MAX",
    "VERSION_MIN",
    "Ack",
    "Acked",
    "BadFrame",
    "Data",
    "Diverged",
    "Entry",
    "Follow",
    "Follows",
    "Frame",
    "Hello",
    "Refused",
    "StartAt",
    "Unfollow",
    "Watermark",
    "Watermarks",
    "Welcome",
    "common_version",
    "decode",
    "encode",
]

VERSION_MIN, VERSION_MAX = 1, 1
STREAM_SLOT = 0
TEXT_BYTES_MAX = 1000
ITEMS_MAX = 10_000  # of a frame: read and worked off in one go, in some 50 ms

BEHIND = frozenset(
    {
        Code.fenced_leader_epoch,
        Code.unknown_leader_epoch,
        Code.not_leader_or_follower,
        Code.unknown_topic_or_partition,
        Code.broker_id_not_registered,
        Code.stale_broker_epoch,
    }
)
"""What a leader says while one of the two has not heard of a change yet: no reason to worry anybody."""

HEAD = Struct(">BI")  # kind, number of items
HELLO = Struct(">Bhhiq")
FOLLOW = Struct(">I16siiqiq")
SLOT = Struct(">I")
ACK = Struct(">BQI")
ACKED = Struct(">Iqq")
WELCOME = Struct(">Bhi")
ENTRY = Struct(">IiqqqI")
WATERMARK = Struct(">Iqq")
DIVERGED = Struct(">BIiiq")
START_AT = Struct(">BIiq")
REFUSED = Struct(">BIh")

Item = TypeVar("Item")


class BadFrame(Exception):
    """The bytes are not a frame of this protocol."""


class Hello(NamedTuple):
    """First frame of a follower, and again after the broker registered once more."""

    cluster_id: str
    broker_id: int
    broker_epoch: int
    version_min: int = VERSION_MIN
    version_max: int = VERSION_MAX


class Welcome(NamedTuple):
    """`version` is the highest that both know."""

    version: int
    broker_id: int


class Follow(NamedTuple):
    """`last_epoch`: of the follower's last record, -1 when it has none."""

    slot: int
    topic_id: bytes
    partition: int
    leader_epoch: int
    end: int
    last_epoch: int
    start: int


class Follows(NamedTuple):
    items: Sequence[Follow]


class Unfollow(NamedTuple):
    slots: Sequence[int]


class Acked(NamedTuple):
    """The follower's log has everything below `end`, as durable as the topic asks for, and begins at `start`."""

    slot: int
    end: int
    start: int


class Ack(NamedTuple):
    """`received_bytes`: of batches, over the life of the stream, whether they were of use or not."""

    received_bytes: int
    items: Sequence[Acked]


class Entry(NamedTuple):
    """What Data has for one slot; its batches follow the log end `base_offset`."""

    slot: int
    leader_epoch: int
    high_watermark: int
    start: int
    base_offset: int
    size: int


class Data(NamedTuple):
    entries: Sequence[Entry]
    batches: Sequence[Buffer]


class Watermark(NamedTuple):
    slot: int
    high_watermark: int
    start: int


class Watermarks(NamedTuple):
    items: Sequence[Watermark]


class Diverged(NamedTuple):
    """In the leader's log `epoch` ends at `end`: the follower has something else. -1: no such epoch is known."""

    slot: int
    leader_epoch: int
    epoch: int
    end: int


class StartAt(NamedTuple):
    """The leader's log begins after the end of the follower's, which has to start over there."""

    slot: int
    leader_epoch: int
    start: int


class Refused(NamedTuple):
    """Either side gives up a slot, or the stream."""

    slot: int
    code: int
    message: str


Frame = Hello | Welcome | Follows | Unfollow | Ack | Data | Watermarks | Diverged | StartAt | Refused

(
    KIND_HELLO,
    KIND_FOLLOWS,
    KIND_UNFOLLOW,
    KIND_ACK,
    KIND_WELCOME,
    KIND_DATA,
    KIND_WATERMARKS,
    KIND_DIVERGED,
    KIND_START_AT,
    KIND_REFUSED,
) = range(1, 11)


def common_version(hello: Hello) -> int | None:
    """The highest version that the follower and this broker know."""
    highest = min(hello.version_max, VERSION_MAX)
    return highest if highest >= max(hello.version_min, VERSION_MIN) else None


def encode(frame: Frame) -> bytes:
    """gRPC takes nothing but `bytes`: joining the parts of Data is the one copy of its batches."""
    match frame:
        case Data(entries, batches):
            head = HEAD.pack(KIND_DATA, len(entries))
            return b"".join([head, *starmap(ENTRY.pack, entries), *batches])
        case Ack(received_bytes, items):
            return ACK.pack(KIND_ACK, received_bytes, len(items)) + _items(ACKED, items)
        case Watermarks(items):
            return HEAD.pack(KIND_WATERMARKS, len(items)) + _items(WATERMARK, items)
        case Follows(items):
            return HEAD.pack(KIND_FOLLOWS, len(items)) + _items(FOLLOW, items)
        case Unfollow(slots):
            return HEAD.pack(KIND_UNFOLLOW, len(slots)) + b"".join(map(SLOT.pack, slots))
        case Diverged():
            return DIVERGED.pack(KIND_DIVERGED, *frame)
        case StartAt():
            return START_AT.pack(KIND_START_AT, *frame)
        case Refused(slot, code, message):
            return REFUSED.pack(KIND_REFUSED, slot, code) + message.encode()[:TEXT_BYTES_MAX]
        case Hello(cluster_id, broker_id, broker_epoch, low, high):
            return HELLO.pack(KIND_HELLO, low, high, broker_id, broker_epoch) + cluster_id.encode()
        case Welcome():
            return WELCOME.pack(KIND_WELCOME, *frame)


def _items(layout: Struct, items: Sequence[tuple[object, ...]]) -> bytes:
    return b"".join(starmap(layout.pack, items))


def decode(frame: bytes) -> Frame:
    """The batches of Data are views into `frame`."""
    reader: Callable[[bytes], Frame] | None = _READERS.get(frame[0]) if frame else None
    if reader is None:
        raise BadFrame(f"{len(frame)} bytes begin with {frame[:1].hex() or 'nothing'}: no kind of frame")
    try:
        return reader(frame)
    except (StructError, UnicodeDecodeError) as error:
        raise BadFrame(f"{len(frame)} bytes of kind {frame[0]}: {error}") from None


def _read_items(frame: bytes, layout: Struct, at: int, count: int) -> Iterator[tuple[int, ...]]:
    _check_count(count)
    if len(frame) - at != count * layout.size:
        raise BadFrame(f"{count} items of {layout.size} bytes are not in {len(frame) - at} bytes")
    return layout.iter_unpack(memoryview(frame)[at:])


def _check_count(count: int) -> None:
    if count > ITEMS_MAX:
        raise BadFrame(f"{count} items in a frame; at most {ITEMS_MAX} are sent in one")


def _read_hello(frame: bytes) -> Hello:
    _, low, high, broker_id, epoch = HELLO.unpack_from(frame)
    return Hello(_text(frame, HELLO.size), broker_id, epoch, low, high)


def _read_welcome(frame: bytes) -> Welcome:
    return Welcome(*WELCOME.unpack(frame)[1:])


def _read_follows(frame: bytes) -> Follows:
    _, count = HEAD.unpack_from(frame)
    return Follows([Follow(*item) for item in _read_items(frame, FOLLOW, HEAD.size, count)])  # type: ignore[arg-type]


def _read_unfollow(frame: bytes) -> Unfollow:
    _, count = HEAD.unpack_from(frame)
    return Unfollow([slot for (slot,) in _read_items(frame, SLOT, HEAD.size, count)])


def _read_ack(frame: bytes) -> Ack:
    _, received, count = ACK.unpack_from(frame)
    return Ack(received, list(starmap(Acked, _read_items(frame, ACKED, ACK.size, count))))


def _read_watermarks(frame: bytes) -> Watermarks:
    _, count = HEAD.unpack_from(frame)
    return Watermarks([Watermark(*item) for item in _read_items(frame, WATERMARK, HEAD.size, count)])


def _read_data(frame: bytes) -> Data:
    _, count = HEAD.unpack_from(frame)
    _check_count(count)
    at = HEAD.size + count * ENTRY.size
    if len(frame) < at:
        raise BadFrame(f"{count} entries are not in {len(frame)} bytes")
    view = memoryview(frame)
    entries = [Entry(*item) for item in ENTRY.iter_unpack(view[HEAD.size : at])]
    batches = []
    for entry in entries:
        batches.append(view[at : at + entry.size])
        at += entry.size
    if at != len(frame):
        raise BadFrame(f"the entries claim {at} bytes, the frame has {len(frame)}")
    return Data(entries, batches)


def _read_diverged(frame: bytes) -> Diverged:
    return Diverged(*DIVERGED.unpack(frame)[1:])


def _read_start_at(frame: bytes) -> StartAt:
    return StartAt(*START_AT.unpack(frame)[1:])


def _read_refused(frame: bytes) -> Refused:
    _, slot, code = REFUSED.unpack_from(frame)
    return Refused(slot, code, _text(frame, REFUSED.size))


def _text(frame: bytes, at: int) -> str:
    if len(frame) - at > TEXT_BYTES_MAX:
        raise BadFrame(f"a text of {len(frame) - at} bytes is longer than {TEXT_BYTES_MAX}")
    return frame[at:].decode(errors="replace")


_READERS: dict[int, Callable[[bytes], Frame]] = {
    KIND_HELLO: _read_hello,
    KIND_FOLLOWS: _read_follows,
    KIND_UNFOLLOW: _read_unfollow,
    KIND_ACK: _read_ack,
    KIND_WELCOME: _read_welcome,
    KIND_DATA: _read_data,
    KIND_WATERMARKS: _read_watermarks,
    KIND_DIVERGED: _read_diverged,
    KIND_START_AT: _read_start_at,
    KIND_REFUSED: _read_refused,
}
