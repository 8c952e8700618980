"""Make the development environment: a virtual environment with pinned requirements and Ottla itself, editable.

Runs with the system's Python, before anything is installed. Usage: environment.py .venv
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PYTHON_MIN = (3, 11)


def main(folder: Path) -> None:
    if sys.version_info < PYTHON_MIN:
        found = ".".join(map(str, sys.version_info[:2]))
        sys.exit(f"make env: Python {found} is too old; install 3.11 or newer and run `make env PYTHON=python3.11`")
    ensure_venv_module()
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"making {folder} …", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"uv=={uv_version()}")
    uv = [folder / "bin" / "uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", python]
    run(*uv, "--require-hashes", "-r", "requirements/dev.txt")
    run(*uv, "--no-deps", "--no-build-isolation", "--editable", ".")
    run(python, "-m", "compileall", "-q", "broker")  # a broker starts in half the time
    (folder / ".ready").touch()
    print(f"{folder}/bin/ottla is ready", file=sys.stderr, flush=True)


def uv_version() -> str:
    """Pinned with everything else in requirements/dev.txt."""
    lines = Path("requirements/dev.txt").read_text().splitlines()
    return next(line.split("==")[1].split()[0] for line in lines if line.startswith("uv=="))


def ensure_venv_module() -> None:
    """Debian ships Python without it."""
    if subprocess.run([sys.executable, "-c", "import ensurepip"], capture_output=True).returncode == 0:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        sys.exit("make env: this Python has no venv; install the package python3-venv")
    run("apt-get", "update", "-qq")
    run("apt-get", "install", "-y", "-qq", "python3-venv")


def run(*command: object) -> None:
    subprocess.run(list(map(str, command)), check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
