"""Kafka's offset checkpoints: one small text file per log dir and kind, written whole and atomically.

0                     the format's version
2                     number of the following lines
orders 0 1500         topic, partition, offset
orders 1 320
"""

from collections.abc import Mapping

from ottla.errors import Refusal
from ottla.ports import Disk

__all__ = ["CLEANER", "HIGH_WATERMARK", "LOG_START", "RECOVERY_POINT", "Offsets", "decode", "encode", "read", "write"]

RECOVERY_POINT = "recovery-point-offset-checkpoint"
HIGH_WATERMARK = "replication-offset-checkpoint"
LOG_START = "log-start-offset-checkpoint"
CLEANER = "cleaner-offset-checkpoint"

VERSION = "0"
Offsets = dict[tuple[str, int], int]


def encode(offsets: Mapping[tuple[str, int], int]) -> bytes:
    lines = [
        VERSION,
        str(len(offsets)),
        *(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()),
    ]
    return ("\n".join(lines) + "\n").encode()


def decode(data: bytes, *, path: str) -> Offsets:
    """An empty file has no offsets, as in Kafka. Anything malformed is a Refusal that names the file and the line."""
    lines = data.decode("utf-8", "replace").splitlines()
    if not lines:
        return {}
    if lines[0] != VERSION:
        raise _malformed(path, 1, f"version {lines[0]!r}, expected {VERSION}")
    entries = dict(_entry(line, path=path, number=number) for number, line in enumerate(lines[2:], start=3))
    if len(lines) > 1 and lines[1] != str(len(lines) - 2):
        raise _malformed(path, 2, f"{lines[1]!r} entries announced, {len(lines) - 2} found")
    return entries


def _entry(line: str, *, path: str, number: int) -> tuple[tuple[str, int], int]:
    try:
        topic, partition, offset = line.split(" ")
        return (topic, int(partition)), int(offset)
    except ValueError:
        raise _malformed(path, number, f"{line!r} is not 'topic partition offset'") from None


def _malformed(path: str, number: int, what: str) -> Refusal:
    return Refusal(f"checkpoint {path}, line {number}: {what}; remove the file to recover from the logs themselves")


def read(disk: Disk, folder: str, name: str) -> Offsets:
    """The offsets in `folder`; empty if the file does not exist."""
    path = f"{folder}/{name}"
    try:
        return decode(disk.read_file(path), path=path)
    except FileNotFoundError:
        return {}


def write(disk: Disk, folder: str, name: str, offsets: Mapping[tuple[str, int], int]) -> None:
    disk.replace_file(f"{folder}/{name}", encode(offsets))
