"""Zigzag varints of Kafka's record format (v2). Pure."""

from ottla.errors import Code, KafkaError

__all__ = ["put", "rest", "take"]

BYTES_MAX = 10  # of a 64-bit number


def take(data: bytes, position: int) -> tuple[int, int]:
    """The signed number at `position`, and the position behind it. IndexError at the end of `data`."""
    raw = data[position]
    position += 1
    if raw >= 0x80:
        raw, position = rest(data, position, raw)
    return (raw >> 1) ^ -(raw & 1), position


def rest(data: bytes, position: int, first: int) -> tuple[int, int]:
    """The unsigned number whose `first` byte says that more bytes follow, and the position behind it."""
    raw = first & 0x7F
    for shift in range(7, 7 * BYTES_MAX, 7):
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw, position
    raise KafkaError(Code.invalid_record, f"a varint in a record is longer than {BYTES_MAX} bytes")


def put(out: bytearray, value: int) -> None:
    raw = value << 1 if value >= 0 else ~(value << 1)
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
