"""Parts of an answer, joined."""

from ottla.ports import Part
from ottla.wire.chunks import CHUNK_BYTES, CHUNK_PARTS_MAX, LARGE_PART_BYTES, Chunks
from ottla.wire.fetch_response import Fetched, encode, encode_joined


def test_nothing_is_lost_and_little_is_left_to_handle() -> None:
    parts = [b"%d," % number for number in range(10_000)]
    chunks = Chunks[bytes]()
    assert chunks.add(parts) == len(b"".join(parts))
    found = chunks.finish()
    assert b"".join(found) == b"".join(parts)
    assert len(found) == 10_000 / CHUNK_PARTS_MAX
    assert all(len(one) <= CHUNK_BYTES + LARGE_PART_BYTES for one in found)


def test_a_large_part_is_not_copied() -> None:
    large = bytes(LARGE_PART_BYTES)
    chunks = Chunks[bytes]()
    chunks.add([b"a", b"b", large, b"c"])
    first, second, third = chunks.finish()
    assert (first, third) == (b"ab", b"c")
    assert second is large


def test_a_fetch_over_many_partitions_has_few_parts() -> None:
    class Region:
        def __len__(self) -> int:
            return 5

    records: Part = Region()  # type: ignore[assignment]
    answers = [Fetched(number, records=records if number == 7 else b"") for number in range(10_000)]
    arguments = {"error_code": 0, "session_id": 3, "topics": [("events", answers)]}
    plain, joined = encode(13, **arguments), encode_joined(13, **arguments)  # type: ignore[arg-type]

    def shown(parts: list[Part]) -> bytes:
        return b"".join(b"<records>" if part is records else bytes(part) for part in parts)  # type: ignore[arg-type]

    assert shown(joined) == shown(plain)
    assert sum(part is records for part in joined) == 1
    assert len(joined) < 20 < 20_000 < len(plain)
