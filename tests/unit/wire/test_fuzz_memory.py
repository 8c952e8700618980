"""Hostile bytes under a memory limit: the frame reader, every request decoder, records, and the recovery scan.

Runs in a process of its own that may grow by 64 MB and no more: a length that is believed before its bytes are there
ends it with a MemoryError.
"""

import contextlib
import resource
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

from ottla.api.registry import load_all
from ottla.errors import KafkaError
from ottla.storage.core.settings import LogSettings
from ottla.storage.directories.files import FileCache
from ottla.storage.log.log import Log
from ottla.system import System
from ottla.wire.batch import iterate as batches
from ottla.wire.frames import FrameBuffer
from ottla.wire.reader import Malformed
from ottla.wire.records import iterate as records

ROUNDS = 2000
ROUNDS_PER_DECODER = 40
GROWTH_BYTES_MAX = 64 << 20
HOSTILE = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x04", b"\x00")


def test_hostile_bytes_take_no_memory() -> None:
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def garbage(random: Random) -> bytes:
    """Lengths that promise much, between random bytes."""
    pieces = ((random.choice(HOSTILE), random.randbytes(random.randrange(40))) for _ in range(8))
    return b"".join(random.choice(pair) for pair in pieces)


def fuzz_decoders(random: Random) -> None:
    readers = [api.reader(v) for api in load_all().values() for v in range(api.version_min, api.version_max + 1)]
    limit_memory()
    for read in readers:
        for _ in range(ROUNDS_PER_DECODER):
            with contextlib.suppress(Malformed, IndexError, UnicodeDecodeError, struct.error):
                read(memoryview(garbage(random)), 0)


def limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + GROWTH_BYTES_MAX
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def fuzz_frames(random: Random) -> None:
    for _ in range(ROUNDS):
        buffer, data = FrameBuffer(frame_bytes_max=100 << 20), garbage(random)
        buffer.free_space()[: len(data)] = data
        buffer.received(len(data))
        with contextlib.suppress(Malformed):
            list(buffer.frames())


def fuzz_records(random: Random) -> None:
    for _ in range(ROUNDS):
        with contextlib.suppress(KafkaError):
            for batch in batches(garbage(random) + bytes(61)):
                list(records(batch))


def fuzz_recovery(random: Random, folder: Path) -> None:
    system = System()
    for number in range(50):
        place = folder / f"t-{number}"
        place.mkdir()
        (place / f"{0:020}.log").write_bytes(garbage(random) + bytes(100) + garbage(random))
        (place / f"{0:020}.index").write_bytes(garbage(random))
        files = FileCache(system.disk, 10)
        log = Log.open(str(place), settings=LogSettings(), system=system, files=files, clean=False)
        assert log.end_offset == 0, "garbage is no batch"


def main() -> None:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else Random().getrandbits(32)
    print("seed", seed)
    random = Random(seed)
    fuzz_decoders(random)
    fuzz_frames(random)
    fuzz_records(random)
    with tempfile.TemporaryDirectory() as folder:
        fuzz_recovery(random, Path(folder))


if __name__ == "__main__":
    main()
