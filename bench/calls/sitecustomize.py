"""Python loads this file in a process when PYTHONPATH names its folder, as `python -m bench.walks` does.

It counts the calls of every function whose file is below a folder `/$COUNT_CALLS_PACKAGE/`, in all threads, and writes
the counts four times a second to COUNT_CALLS_FOLDER/PID.json. Modules that are compiled are not seen.
"""

import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

PERIOD_S = 0.25


def count_calls(folder: Path, package: str) -> None:
    counts: Counter[CodeType] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            counts[frame.f_code] += 1

    threading.Thread(target=write, args=(folder / f"{os.getpid()}.json", counts, f"/{package}/"), daemon=True).start()
    threading.setprofile(count)
    sys.setprofile(count)


def write(path: Path, counts: "Counter[CodeType]", within: str) -> None:
    while True:
        found = {
            f"{code.co_filename.partition(within)[2]}:{code.co_firstlineno} {code.co_name}": number
            for code, number in list(counts.items())
            if within in code.co_filename
        }
        path.with_suffix(".new").write_text(json.dumps({"at": time.time(), "calls": found}))
        path.with_suffix(".new").replace(path)
        time.sleep(PERIOD_S)


if wanted := os.environ.get("COUNT_CALLS_FOLDER"):
    count_calls(Path(wanted), os.environ["COUNT_CALLS_PACKAGE"])
