"""What a metadata log begins with that has no entry yet: `<metadata dir>/__ottla_metadata/bootstrap`, written by
`ottla format`. A checksum, then the bytes of one entry. It is read at every start, and without meaning once a leader
has made the first entries: it need not be removed, and a crash at any time changes nothing."""

import zlib

from ottla.errors import Refusal
from ottla.ports import Disk
from ottla.raft.store import FOLDER_NAME

__all__ = ["read_bootstrap", "write_bootstrap"]

NAME = "bootstrap"
CHECKSUM_SIZE = 4


def write_bootstrap(disk: Disk, metadata_dir: str, data: bytes) -> None:
    folder = f"{metadata_dir}/{FOLDER_NAME}"
    disk.make_folder(folder, private=True)  # keys of users
    disk.replace_file(f"{folder}/{NAME}", zlib.crc32(data).to_bytes(CHECKSUM_SIZE, "big") + data)
    disk.sync_folder(metadata_dir)


def read_bootstrap(disk: Disk, metadata_dir: str) -> bytes:
    """Empty when there is none."""
    path = f"{metadata_dir}/{FOLDER_NAME}/{NAME}"
    if not disk.exists(path):
        return b""
    content = disk.read_file(path)
    checksum, data = content[:CHECKSUM_SIZE], content[CHECKSUM_SIZE:]
    if zlib.crc32(data).to_bytes(CHECKSUM_SIZE, "big") != checksum:
        raise Refusal(f"{path} is damaged; format the data directory again")
    return data
