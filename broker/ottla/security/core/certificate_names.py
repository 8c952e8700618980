"""The name in a certificate, written exactly as Java's `X500Principal.getName()` does (RFC 2253). Pure.

Rules and ACLs of a Kafka fleet were written against those texts, so each space and backslash counts.
"""

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Attribute", "BadCertificate", "distinguished_name", "subject_of"]

SEQUENCE, SET, OBJECT_ID, CONTEXT_0 = 0x30, 0x31, 0x06, 0xA0
UTF8, PRINTABLE, T61, IA5, GENERAL, BMP = 0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E
STRINGS = {UTF8: "utf-8", PRINTABLE: "utf-8", T61: "utf-8", IA5: "utf-8", GENERAL: "utf-8", BMP: "utf-8"}
"""Java reads the bytes of all of them as UTF-8."""
KEYWORDS = {
    "2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "STREET", "2.5.4.10": "O",
    "2.5.4.11": "OU", "0.9.2342.19200300.100.1.25": "DC", "0.9.2342.19200300.100.1.1": "UID",
}  # fmt: skip
ESCAPED = ',=+<>#;"\\'
BLANK = " \r"
SUBJECT_AT = 4  # behind serial number, algorithm, issuer and validity


class BadCertificate(ValueError):
    """The bytes are no X.509 certificate."""


class Attribute(NamedTuple):
    oid: str
    tag: int
    data: bytes
    der: bytes
    """The whole value, tag and length included."""


Name = list[list[Attribute]]
"""Relative names in the order of the certificate; each has one attribute or, rarely, several."""


def distinguished_name(name: Name) -> str:
    return ",".join("+".join(map(_attribute, each)) for each in reversed(name))


def subject_of(certificate: bytes) -> Name:
    """Of a certificate in DER. Raises BadCertificate."""
    try:
        whole = next(_elements(certificate))
        signed = next(_elements(whole.content))
        parts = [part for part in _elements(signed.content) if part.tag != CONTEXT_0]  # which is the version
        return [[_read(each) for each in _elements(one.content)] for one in _elements(parts[SUBJECT_AT].content)]
    except (IndexError, StopIteration) as error:
        raise BadCertificate("not a certificate") from error


class _Element(NamedTuple):
    tag: int
    content: bytes
    der: bytes


def _elements(data: bytes) -> Iterator[_Element]:
    position = 0
    while position < len(data):
        size, begin = data[position + 1], position + 2
        if size & 0x80:
            count = size & 0x7F
            size, begin = int.from_bytes(data[begin : begin + count], "big"), begin + count
        if begin + size > len(data):
            raise BadCertificate("not a certificate: it ends too early")
        yield _Element(data[position], data[begin : begin + size], data[position : begin + size])
        position = begin + size


def _read(element: _Element) -> Attribute:
    oid, value = _elements(element.content)
    return Attribute(_dotted(oid.content), value.tag, value.content, value.der)


def _dotted(data: bytes) -> str:
    numbers, number = [], 0
    for byte in data:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _attribute(attribute: Attribute) -> str:
    keyword = KEYWORDS.get(attribute.oid)
    if keyword is None or attribute.tag not in STRINGS:
        return f"{keyword or attribute.oid}=#{attribute.der.hex()}"
    return f"{keyword}={_escaped(attribute.data.decode(STRINGS[attribute.tag], 'replace'))}"


def _escaped(text: str) -> str:
    escaped = "".join(f"\\{c}" if c in ESCAPED else "\\00" if c == "\0" else c for c in text)
    inner = escaped.strip(BLANK)
    if not inner:
        return "".join(f"\\{c}" for c in escaped)
    lead = escaped.index(inner)
    trail = escaped[lead + len(inner) :]
    return "".join(f"\\{c}" for c in escaped[:lead]) + inner + "".join(f"\\{c}" for c in trail)
