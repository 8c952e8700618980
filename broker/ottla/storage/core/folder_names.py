"""Names of partition folders inside a log dir. Pure."""

import uuid

__all__ = ["DELETE", "STRAY", "TopicPartition", "folder_name", "marked", "parse_folder"]

DELETE, STRAY = "-delete", "-stray"
NAME_BYTES_MAX = 255

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
