"""Requests of every API and version, made at random and then damaged; by a seed."""

from collections.abc import Iterator, Sequence
from random import Random

from ottla.api.registry import load_all
from ottla.wire.schema import request_struct
from ottla.wire.writer import writer_of
from support.frames import framed
from support.kio_oracle import kio_bytes, random_values, request_entity
from support.raw_requests import header

__all__ = ["mutated_requests"]

HOSTILE = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff", b"\x00", b"\x80", b"\x00\x00\x00\x01")
SAMPLES = 4
CHANGES_MAX = 4


def mutated_requests(random: Random, known: Sequence[str]) -> Iterator[bytes]:
    """Without end. Half of them are rough, of which one in two is left as it is; of the others one in eight.

    `known`: names of topics and groups that exist.
    """
    versions = every_version()
    samples = [sample for each in versions for sample in samples_of(random, *each)]
    while True:
        is_rough = random.random() < 0.5
        data = bytearray(rough_request(random, *random.choice(versions), known) if is_rough else random.choice(samples))
        if random.randrange(2 if is_rough else 8):
            for _ in range(random.randrange(1, CHANGES_MAX + 1)):
                mutate(data, random)
        yield framed(bytes(data))


def every_version() -> list[tuple[int, int]]:
    apis = load_all().values()
    return [(api.key, version) for api in apis for version in range(api.version_min, api.version_max + 1)]


def samples_of(random: Random, key: int, version: int) -> list[bytes]:
    struct, entity = request_struct(key, version), request_entity(key, version)
    head = header(key, version) + (b"\0" if struct.flexible else b"")
    return [head + kio_bytes(entity, random_values(random, struct)) for _ in range(SAMPLES)]


def rough_request(random: Random, key: int, version: int, known: Sequence[str]) -> bytes:
    """Well formed, with values that no client sends."""
    struct = request_struct(key, version)
    parts = [header(key, version) + (b"\0" if struct.flexible else b"")]
    writer_of(struct)(parts, random_values(random, struct, known=known))
    return b"".join(parts)


def mutate(data: bytearray, random: Random) -> None:
    """Only bytes behind the API's key: a request of an unknown API is refused by its first bytes."""
    place = random.randrange(min(10, len(data)), len(data) + 1)
    kind = random.randrange(4)
    if kind == 0:
        data[place : place + 1] = random.randbytes(1)
    elif kind == 1:
        hostile = random.choice(HOSTILE)
        data[place : place + len(hostile)] = hostile
    elif kind == 2:
        del data[place:]
    else:
        data[place:place] = data[random.randrange(len(data) + 1) :][: random.randrange(40)]
