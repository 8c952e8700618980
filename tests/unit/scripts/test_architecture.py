"""ARCHITECTURE.md names files and folders that exist, and every folder of the broker has its line."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
BROKER = ROOT / "broker" / "ottla"
ROW = re.compile(r"^\| `(?P<folder>[a-z_/-]+/)` \|.*\| (?P<first>[^|]*) \|$", re.MULTILINE)
GENERATED = {"pb"}


def test_files_to_begin_with_exist() -> None:
    missing = []
    for row in ROW.finditer(TEXT):
        folder = next(base for base in (BROKER / row["folder"], ROOT / row["folder"]) if base.is_dir())
        names = re.findall(r"`([^`]+)`", row["first"])
        missing += [f"{row['folder']}{name}" for name in names if not (folder / name).exists()]
    assert not missing


def test_every_folder_of_the_broker_has_a_line() -> None:
    folders = {path.parent.name for path in BROKER.glob("*/__init__.py")} - GENERATED
    assert folders <= {row["folder"].rstrip("/") for row in ROW.finditer(TEXT)}


def test_no_folder_has_more_than_25_modules() -> None:
    """But `api/`, where every file is one of Kafka's APIs or stands for some."""
    for root in (ROOT / "broker" / "ottla", ROOT / "operator" / "ottla_operator"):
        for folder in (root, *(each for each in root.rglob("*") if each.is_dir())):
            modules = [each for each in folder.glob("*.py") if each.name != "__init__.py"]
            assert len(modules) <= 25 or folder.name == "api", f"{folder}: {len(modules)} modules"
