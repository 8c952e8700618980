"""File names inside a partition's folder: 20 digits of the first offset, then what it is. Pure."""

__all__ = ["CLEANED", "DELETED", "INDEX", "LOG", "SNAPSHOT", "SWAP", "TIME_INDEX", "TXN_INDEX", "name", "offset_of"]

LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT = ".log", ".index", ".timeindex", ".txnindex", ".snapshot"
DELETED, CLEANED, SWAP = ".deleted", ".cleaned", ".swap"
DIGITS = 20


def name(offset: int, kind: str) -> str:
    return f"{offset:0{DIGITS}d}{kind}"


def offset_of(file_name: str) -> int | None:
    """The offset that a file's name begins with; None for other files."""
    digits = file_name.partition(".")[0]
    return int(digits) if len(digits) == DIGITS and digits.isascii() and digits.isdigit() else None
