"""Names of partition folders, and of the files inside: 20 digits of the first offset, then the kind. Pure."""

import uuid

__all__ = [
    "CLEANED",
    "DELETE",
    "DELETED",
    "INDEX",
    "LOG",
    "SNAPSHOT",
    "STRAY",
    "SWAP",
    "TIME_INDEX",
    "TXN_INDEX",
    "TopicPartition",
    "folder_name",
    "marked",
    "name",
    "offset_of",
    "parse_folder",
]

LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT = ".log", ".index", ".timeindex", ".txnindex", ".snapshot"
DELETED, CLEANED, SWAP = ".deleted", ".cleaned", ".swap"
DIGITS = 20

DELETE, STRAY = "-delete", "-stray"  # suffixes of folders
NAME_BYTES_MAX = 255


def name(offset: int, kind: str) -> str:
    return f"{offset:0{DIGITS}d}{kind}"


def offset_of(file_name: str) -> int | None:
    """The offset that a file's name begins with; None for other files."""
    digits = file_name.partition(".")[0]
    return int(digits) if len(digits) == DIGITS and digits.isascii() and digits.isdigit() else None


# partition folders

TopicPartition = tuple[str, int]


def folder_name(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def parse_folder(name: str) -> TopicPartition | None:
    """The partition of a folder name: its number follows the last dash. None for other names."""
    topic, _, number = name.rpartition("-")
    if not topic or not number.isascii() or not number.isdigit() or str(int(number)) != number:
        return None
    return topic, int(number)


def marked(topic: str, partition: int, unique: uuid.UUID, suffix: str) -> str:
    """The name of a folder that waits for its removal (or, as stray, for an operator); cut to the file system's
    limit."""
    tail = f"-{partition}.{unique.hex}{suffix}"
    return topic[: NAME_BYTES_MAX - len(tail)] + tail
