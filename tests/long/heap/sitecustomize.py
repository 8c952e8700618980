"""Python loads this file in a broker when PYTHONPATH names its folder, as `--soak-heap` of the soak does.

Each minute a thread appends a line of JSON to OTTLA_SOAK_HEAP/PID: how many objects there are of each type, how many
blocks Python allocated, and what malloc holds, so that a leak is told from fragmentation.
"""

import ctypes
import gc
import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path

PERIOD_S = 60.0
TYPES_MAX = 400


class MallocInfo(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def malloc_bytes() -> dict[str, int]:
    """`used`, `free` and `mapped`; of all arenas, and nothing where libc is not glibc."""
    try:
        call = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return {}
    call.restype = MallocInfo
    told = call()
    return {"used": told.uordblks, "free": told.fordblks, "mapped": told.hblkhd, "arena": told.arena}


def watch(path: Path) -> None:
    begin = time.monotonic()
    while True:
        types = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
        line = {
            "minute": round((time.monotonic() - begin) / 60, 2),
            "blocks": sys.getallocatedblocks(),
            "malloc": malloc_bytes(),
            "rss_pages": int(Path("/proc/self/statm").read_text().split()[1]),
            "types": dict(types.most_common(TYPES_MAX)),
        }
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        time.sleep(PERIOD_S)


if folder := os.environ.get("OTTLA_SOAK_HEAP"):
    threading.Thread(target=watch, args=(Path(folder) / str(os.getpid()),), daemon=True).start()
