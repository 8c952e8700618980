"""What is packed in tests/versions: the code of the broker that landed before this one, and what it wrote."""

import tarfile
from pathlib import Path

__all__ = ["FOLDER", "PREVIOUS", "unpack"]

FOLDER = Path(__file__).parents[1] / "versions"
PREVIOUS = "previous"  # unpacked, it is a folder with the package `ottla`


def unpack(name: str, folder: Path) -> Path:
    with tarfile.open(FOLDER / f"{name}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder
