"""Aborted transactions of a segment, in Kafka's file format (.txnindex)."""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple

from ottla.storage import names
from ottla.system import Disk

__all__ = ["AbortedTransaction", "read_all", "write"]

ENTRY = Struct(">hqqqq")
VERSION = 0


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def read_all(disk: Disk, folder: str, bases: Iterable[int]) -> list[AbortedTransaction]:
    """Those of all these segments; most have none and no file. An entry that is still being written is not one yet."""
    found: list[AbortedTransaction] = []
    for base in bases:
        try:
            data = disk.read_file(f"{folder}/{names.name(base, names.TXN_INDEX)}")
        except FileNotFoundError:
            continue
        whole = len(data) - len(data) % ENTRY.size
        found.extend(AbortedTransaction(*fields[1:]) for fields in ENTRY.iter_unpack(data[:whole]))
    return found


def write(disk: Disk, path: str, aborted: Sequence[AbortedTransaction]) -> None:
    """No transaction, no file."""
    if aborted:
        disk.replace_file(path, b"".join(ENTRY.pack(VERSION, *one) for one in aborted))
