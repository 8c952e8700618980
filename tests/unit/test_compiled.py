"""Binaries of compiled modules: taken only when they are made from the source that is there, and never needed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import ottla
import pytest
from ottla import compiled

PACKAGE = Path(next(iter(ottla.__path__)))
SCRIPT = Path(__file__).parents[2] / "scripts" / "compile_modules.py"
WHICH = (
    "import importlib, sys\nfrom ottla import compiled\n"
    "print(compiled.is_compiled(importlib.import_module(sys.argv[1])))"
)


def is_compiled(module: str, folder: Path, **environment: str) -> bool:
    """In a Python of its own whose package is `folder`/ottla."""
    done = subprocess.run(
        [sys.executable, "-c", WHICH, module],
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip() == "True"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(PACKAGE, tmp_path / "ottla", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def has_binary(module: str) -> bool:
    return Path(compiled.binary_folder(module, str(PACKAGE))).is_dir()


@pytest.mark.parametrize("module", compiled.MODULES)
def test_a_binary_of_other_source_is_not_imported(module: str, copy: Path) -> None:
    if not has_binary(module):
        pytest.skip("no binary of its source here")
    assert is_compiled(module, copy)
    assert not is_compiled(module, copy, OTTLA_INTERPRETED="1")
    source = (copy / Path(*module.split("."))).with_suffix(".py")
    before = source.stat()
    good = source.read_text()
    source.write_text(good + "# sabotaged\n")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))  # as after a checkout: time says nothing
    assert not is_compiled(module, copy)
    source.write_text(good)
    assert is_compiled(module, copy), "back to the same source, back to its binary"


def test_without_a_compiler_all_is_interpreted_and_one_line_says_so(copy: Path) -> None:
    shutil.rmtree(copy / "ottla" / compiled.FOLDER, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, SCRIPT, copy / "ottla"], env={"PATH": "/nowhere"}, capture_output=True, text=True, check=True
    )
    assert done.stderr.count("\n") == 1
    assert "all are interpreted (no C compiler" in done.stderr
    assert not is_compiled(compiled.MODULES[0], copy)


@pytest.mark.parametrize("module", compiled.MODULES)
def test_listed_modules_import_nothing_of_ottla_that_a_binary_could_go_stale_by(module: str) -> None:
    source = PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py").read_text()
    imported = [line.split()[1] for line in source.splitlines() if line.startswith(("from ottla", "import ottla"))]
    assert set(imported) <= {"ottla.errors", *compiled.MODULES}
