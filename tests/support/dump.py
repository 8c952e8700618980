"""Kafka's DumpLogSegments over a data folder of a stopped broker."""

import re
from dataclasses import dataclass
from pathlib import Path

from support.java import java_tool

TOOL = "kafka.tools.DumpLogSegments"
COMPLAINTS = re.compile(r"mismatch|corrupt|invalid|non-secutive|exception|error|extra bytes|could not", re.IGNORECASE)


@dataclass(frozen=True)
class Batch:
    base_offset: int
    last_offset: int
    codec: str
    timestamp_type: str
    producer_id: int
    valid: bool


def dump(files: list[Path], *, deep: bool = True) -> str:
    """The tool's whole output for all files in one go; fails on any complaint of the tool."""
    flags = ["--deep-iteration"] if deep else []
    text = java_tool(TOOL, *flags, "--files", ",".join(map(str, files))).text
    complaint = COMPLAINTS.search(text.replace("isvalid", ""))
    assert complaint is None, f"DumpLogSegments complains:\n{text[:4000]}"
    return text


def batches(text: str) -> list[Batch]:
    """The batch lines among a dump."""
    pattern = (
        r"baseOffset: (\d+) lastOffset: (\d+) .*?producerId: (-?\d+) .*?(CreateTime|LogAppendTime): \d+ .*?"
        r"compresscodec: (\w+) .*?isvalid: (\w+)"
    )
    return [
        Batch(int(m[1]), int(m[2]), codec=m[5], timestamp_type=m[4], producer_id=int(m[3]), valid=m[6] == "true")
        for m in re.finditer(pattern, text)
    ]


def files_of(data_dir: Path, topic: str, *suffixes: str, partition: int = 0) -> list[Path]:
    folder = data_dir / f"{topic}-{partition}"
    return sorted(path for path in folder.iterdir() if path.name.endswith(suffixes))
