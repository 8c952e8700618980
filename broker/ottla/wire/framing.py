"""The framing of a batch's records (v2): lengths, count, offset deltas and headers, checked and never decoded. Pure.

Record: length varint · attributes 1 · timestamp delta varlong · offset delta varint · key · value · header count varint
· (header key · header value)…; a key or value is a varint length, -1 for null, and so many bytes.

mypyc compiles this module where a C compiler is there (see `ottla.compiled`); elsewhere the same source is interpreted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.errors import Code, KafkaError

if TYPE_CHECKING:
    from mypy_extensions import i64

__all__ = ["KEYLESS_SHOWN_MAX", "RECORD_BYTES_MIN", "Framing"]

RECORD_BYTES_MIN: Final = 7  # a length and six fields of one byte
KEYLESS_SHOWN_MAX: Final = 100  # indexes of records without a key that are listed
INT_SHIFT_MAX: Final = 28  # of the fifth byte of a varint
LONG_SHIFT_MAX: Final = 63  # of the tenth
INT_RAW_MAX: Final = (1 << 32) - 1
LONG_RAW_MAX: Final = (1 << 64) - 1

# What the next byte of a record belongs to.
SIZE: Final = 0
ATTRIBUTES: Final = 1
TIMESTAMP: Final = 2
OFFSET: Final = 3
KEY: Final = 4
VALUE: Final = 5
HEADERS: Final = 6
HEADER_KEY: Final = 7
HEADER_VALUE: Final = 8
END: Final = 9


class Framing:
    """The records of one batch, fed in pieces of any size. Holds no bytes, whatever lengths claim.

    `feed` and `finish` raise KafkaError(INVALID_RECORD) at the first flaw. Records without a key are counted in
    `keyless`, and the first of them listed in `keyless_indexes`.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.index = 0
        """Of the record that is being read or comes next."""
        self.keyless = 0
        self.keyless_indexes: list[int] = []
        self._stage = SIZE
        self._left = 0  # bytes of the record that no field has claimed yet
        self._skip = 0  # bytes of a key or value that are still to come
        self._raw = 0  # of a varint whose last byte is still to come
        self._shift = 0
        self._headers = 0  # still to come

    def feed(self, data: bytes) -> None:
        position = 0
        while position < len(data):
            if self._stage == SIZE and self._shift == 0:
                position = self._whole_records(data, position)
            if position < len(data):
                position = self._record_in_pieces(data, position)

    def finish(self) -> None:
        """To be called after the last piece."""
        if self._stage != SIZE or self._shift:
            raise self._flaw("runs over the end of its batch")
        if self.index != self.count:
            raise _invalid(f"a batch claims {self.count} records and holds {self.index}")

    def _whole_records(self, data: bytes, position: i64) -> i64:
        """Read good records as long as they are whole; where the first one begins that is not.

        The hot loop: it leaves whatever is unusual to `_record_in_pieces`, so that flaws are reported in one place, and
        reads the usual numbers, of one or two bytes, without a call. Numbers stay zigzag: twice the value, or
        odd when negative (1 is -1).
        """
        index: i64 = self.index
        count: i64 = self.count
        length: i64 = len(data)
        size: i64
        second: i64
        offset: i64
        key: i64
        value: i64
        end: i64
        start = position
        try:
            while index < count and length - start >= RECORD_BYTES_MIN:
                position = start
                size = data[position]
                position += 1
                if size >= 0x80:
                    second = data[position]
                    if second < 0x80:
                        size += (second << 7) - 0x80
                        position += 1
                    else:
                        size, position = _rest(data, position, size)
                end = position + (size >> 1)
                if size & 1 or end > length:
                    break
                position += 1  # attributes, unused
                if data[position] < 0x80:
                    position += 1
                else:
                    position = _long_end(data, position + 1)
                offset = data[position]
                position += 1
                if offset >= 0x80:
                    second = data[position]
                    if second < 0x80:
                        offset += (second << 7) - 0x80
                        position += 1
                    else:
                        offset, position = _rest(data, position, offset)
                key = data[position]
                position += 1
                if key >= 0x80:
                    key, position = _rest(data, position, key)
                if key != 1:
                    position += key >> 1
                value = data[position]
                position += 1
                if value >= 0x80:
                    second = data[position]
                    if second < 0x80:
                        value += (second << 7) - 0x80
                        position += 1
                    else:
                        value, position = _rest(data, position, value)
                if value != 1:
                    position += value >> 1
                if data[position] == 0:
                    position += 1
                else:
                    position = _headers_end(data, position)
                if position != end or offset != index << 1 or (key & 1 and key != 1) or (value & 1 and value != 1):
                    break
                if key == 1:
                    self._note_keyless(index)
                index += 1
                start = end
        except IndexError:
            pass
        self.index = index
        return start

    def _record_in_pieces(self, data: bytes, position: int) -> int:
        """Read on byte by byte, to the end of the record or of the data; the position behind that."""
        if self._stage == SIZE and self._shift == 0 and self.index >= self.count:
            raise _invalid(f"at least {len(data) - position} bytes follow the {self.count} records of a batch")
        while position < len(data):
            if self._skip:
                step = min(self._skip, len(data) - position)
                self._skip -= step
                position += step
            else:
                self._take(data[position])
                position += 1
            if self._stage == END and self._skip == 0:
                self._end_record()
                break
        return position

    def _take(self, byte: int) -> None:
        stage = self._stage
        if stage != SIZE:
            if self._left == 0:
                raise self._flaw("is shorter than its fields")
            self._left -= 1
        if stage == ATTRIBUTES:
            self._stage = TIMESTAMP
            return
        raw = self._raw | (byte & 0x7F) << self._shift
        if byte >= 0x80 and self._shift < (LONG_SHIFT_MAX if stage == TIMESTAMP else INT_SHIFT_MAX):
            self._raw = raw
            self._shift += 7
            return
        if byte >= 0x80 or raw > (LONG_RAW_MAX if stage == TIMESTAMP else INT_RAW_MAX):
            raise self._flaw("holds a number that is too large for its field")
        self._raw = self._shift = 0
        self._number(raw >> 1 ^ -(raw & 1))

    def _number(self, value: int) -> None:
        """One of the record's numbers is there."""
        stage = self._stage
        self._stage = stage + 1
        if stage == SIZE:
            if value < RECORD_BYTES_MIN - 1:
                raise self._flaw(f"claims a length of {value} bytes")
            self._left = value
        elif stage == OFFSET:
            if value != self.index:
                raise self._flaw(f"has the offset delta {value}")
        elif stage == KEY:
            self._claim(value)
            if value < 0:
                self._note_keyless(self.index)
        elif stage == VALUE:
            self._claim(value)
        elif stage == HEADERS:
            if not 0 <= value <= self._left:
                raise self._flaw(f"claims {value} headers in {self._left} bytes")
            self._headers = value
            self._stage = HEADER_KEY if value else END
        elif stage == HEADER_KEY:
            if value < 0:
                raise self._flaw("has a header without a name")
            self._claim(value)
        elif stage == HEADER_VALUE:
            self._claim(value)
            self._headers -= 1
            self._stage = HEADER_KEY if self._headers else END

    def _claim(self, length: int) -> None:
        """So many bytes of a key or value follow; -1 is null."""
        if length < -1 or length > self._left:
            raise self._flaw(f"claims a field of {length} bytes where {self._left} remain")
        if length > 0:
            self._left -= length
            self._skip = length

    def _end_record(self) -> None:
        if self._left:
            raise self._flaw(f"is {self._left} bytes longer than its fields")
        self._stage = SIZE
        self.index += 1

    def _note_keyless(self, index: i64) -> None:
        self.keyless += 1
        if self.keyless <= KEYLESS_SHOWN_MAX:
            self.keyless_indexes.append(index)

    def _flaw(self, what: str) -> KafkaError:
        return _invalid(f"record {self.index} of a batch {what}")


def _rest(data: bytes, position: i64, first: i64) -> tuple[i64, i64]:
    """The unsigned number of at most five bytes whose `first` byte says that more follow, and the position behind it.
    IndexError when it is longer, as at the end of the data."""
    raw = first & 0x7F
    shift: i64 = 7
    byte: i64
    while shift <= INT_SHIFT_MAX:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw, position
        shift += 7
    raise IndexError


def _long_end(data: bytes, position: i64) -> i64:
    """The position behind a varlong of at most 64 bits whose second byte is at `position`; IndexError likewise."""
    last = position + 8
    while position <= last:
        byte = data[position]
        position += 1
        if byte < 0x80:
            if position > last and byte > 1:
                raise IndexError
            return position
    raise IndexError


def _headers_end(data: bytes, position: i64) -> i64:
    """The position behind the headers whose count is at `position`; IndexError when they are unusual."""
    key: i64
    value: i64
    count: i64 = data[position]
    position += 1
    if count >= 0x80:
        count, position = _rest(data, position, count)
    if count & 1:
        raise IndexError
    while count:
        key = data[position]
        position += 1
        if key >= 0x80:
            key, position = _rest(data, position, key)
        if key & 1:
            raise IndexError
        position += key >> 1
        value = data[position]
        position += 1
        if value >= 0x80:
            value, position = _rest(data, position, value)
        if value != 1:
            if value & 1:
                raise IndexError
            position += value >> 1
        count -= 2
    return position


def _invalid(message: str) -> KafkaError:
    return KafkaError(Code.invalid_record, message)
