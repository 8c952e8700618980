"""Compile the hot pure modules (`ottla.compiled.MODULES`) with mypyc, where a C compiler is there.

    compile_modules.py [package folder]        default: broker/ottla

Needs mypy and setuptools in the Python that runs it. Does nothing where the binaries fit their source already. Never
fails for lack of a compiler: the modules are then interpreted, and one line says so.
"""

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent.parent / "broker" / "ottla"
KEPT_OF_EACH = 4  # binaries of a module's other sources: a checkout back and forth compiles once
BUILD_SECONDS_MAX = 300
SETUP = """
import sys
from mypyc.build import mypycify
from setuptools import setup
source, into = sys.argv[1:]
options = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent", "--cache-dir=mypy"]
setup(
    name="ottla-compiled",
    ext_modules=mypycify([*options, source], opt_level="3", debug_level="0"),
    script_args=["--quiet", "build_ext", "--build-lib", into],
)
"""


def main(package: Path) -> None:
    compiled = runpy.run_path(str(package / "compiled.py"))  # without importing the package: it needs dependencies
    missing = [each for each in compiled["MODULES"] if not Path(folder_of(each, package, compiled)).is_dir()]
    if not missing:
        return
    if (obstacle := what_is_missing()) is not None:
        print(f"compiled modules: none, all are interpreted ({obstacle})", file=sys.stderr, flush=True)
        return
    for module in missing:
        failure = build(module, package, Path(folder_of(module, package, compiled)))
        result = "compiled by mypyc" if failure is None else f"interpreted, for mypyc failed: {failure}"
        print(f"{module}: {result}", file=sys.stderr, flush=True)


def folder_of(module: str, package: Path, compiled: dict[str, Any]) -> str:
    return str(compiled["binary_folder"](module, str(package)))


def what_is_missing() -> str | None:
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if not shutil.which(compiler):
        return f"no C compiler: {compiler} is not there"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "no Python.h; Debian has it in python3-dev"
    return None


def build(module: str, package: Path, target: Path) -> str | None:
    """Put the binary in its place; why not, if that fails."""
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        source = package.joinpath(*module.split(".")[1:]).with_suffix(".py").resolve()
        command = [sys.executable, "-c", SETUP, str(source), f"{work}/out"]
        environment = {**os.environ, "MYPYPATH": str(package.parent.resolve())}
        try:
            done = subprocess.run(
                command, cwd=work, env=environment, capture_output=True, text=True, timeout=BUILD_SECONDS_MAX
            )
        except subprocess.TimeoutExpired:
            return f"no binary within {BUILD_SECONDS_MAX} s"
        built = Path(work, "out", *module.split(".")[:-1])
        if done.returncode != 0 or not built.is_dir():
            return (done.stderr.strip() or done.stdout.strip() or "no word").splitlines()[-1]
        try:
            built.rename(target)
        except OSError:
            if not target.is_dir():  # otherwise another build was faster
                raise
    forget_older(module, target)
    return None


def forget_older(module: str, target: Path) -> None:
    others = [each for each in target.parent.glob(f"{module}-*") if each != target]
    for each in sorted(others, key=lambda one: one.stat().st_mtime)[:-KEPT_OF_EACH]:
        shutil.rmtree(each, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE)
