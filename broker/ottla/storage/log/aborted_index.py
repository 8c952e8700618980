"""The file of a segment's aborted transactions, in Kafka's file format (.txnindex).

An entry is in the index of the segment with the transaction's marker, and is written to the file together with it: a
lost index would look like an empty one, and aborted records would be read. After a crash, the indexes of verified
segments are rebuilt from the records.
"""

from collections.abc import Iterable, Sequence
from struct import Struct

from ottla.ports import Disk
from ottla.storage.core import names
from ottla.storage.core.aborted import AbortedTransaction

__all__ = ["encode", "read", "read_all", "write"]

ENTRY = Struct(">hqqqq")
VERSION = 0


def encode(aborted: Iterable[AbortedTransaction]) -> bytes:
    return b"".join(ENTRY.pack(VERSION, *one) for one in aborted)


def read(disk: Disk, path: str) -> list[AbortedTransaction]:
    """Most segments have no aborted transactions and no file. A partial entry at the end is ignored."""
    try:
        data = disk.read_file(path)
    except FileNotFoundError:
        return []
    whole = len(data) - len(data) % ENTRY.size
    return [AbortedTransaction(*fields[1:]) for fields in ENTRY.iter_unpack(data[:whole])]


def read_all(disk: Disk, folder: str, bases: Iterable[int]) -> list[AbortedTransaction]:
    """Those of all these segments."""
    return [one for base in bases for one in read(disk, f"{folder}/{names.name(base, names.TXN_INDEX)}")]


def write(disk: Disk, path: str, aborted: Sequence[AbortedTransaction]) -> None:
    """Without a transaction the file is removed."""
    if aborted:
        disk.replace_file(path, encode(aborted))
