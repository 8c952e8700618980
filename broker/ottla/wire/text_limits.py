"""How long a text may be wherever it can end up. Pure.

Flexible versions count a text's bytes with a varint. The keys of records and all older versions count them with an
int16: a longer name that came in could not be written to the log, nor be listed to an older client.
"""

__all__ = ["NAME_BYTES_MAX", "TEXT_BYTES_MAX", "cut", "is_too_long", "size_bytes"]

TEXT_BYTES_MAX = 2**15 - 1
# Of what the metadata keeps for good: users, client ids and groups with quotas or settings. Names in certificates have
# some hundred, and client ids count by their first 1,000 characters.
NAME_BYTES_MAX = 1_000
BYTES_PER_CHARACTER_MAX = 4


def is_too_long(text: str | None, *, bytes_max: int = TEXT_BYTES_MAX) -> bool:
    if text is None or len(text) * BYTES_PER_CHARACTER_MAX <= bytes_max:
        return False
    return len(text.encode()) > bytes_max


def size_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def cut(data: bytes) -> bytes:
    """The beginning of a text in UTF-8 that fits, in whole characters."""
    if len(data) <= TEXT_BYTES_MAX:
        return data
    return data[:TEXT_BYTES_MAX].decode(errors="ignore").encode()
