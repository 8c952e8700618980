"""What is packed in tests/versions: the code of the broker that landed before this one, and what it wrote."""

import tarfile
from pathlib import Path

__all__ = ["FOLDER", "PREVIOUS", "commit_of", "unpack"]

FOLDER = Path(__file__).parents[1] / "versions"
PREVIOUS = "previous"  # unpacked, it is a folder with the package `ottla`


def unpack(name: str, folder: Path) -> Path:
    with tarfile.open(FOLDER / f"{name}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder


def commit_of(name: str) -> str:
    """What the archive was made of: `git archive` notes it."""
    with tarfile.open(FOLDER / f"{name}.tar.xz") as packed:
        return packed.pax_headers["comment"]
