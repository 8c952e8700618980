"""Pins the requirements of the development environment and of each image from pyproject.toml, with the newest versions.

`make lock`. An image gets the versions that the tests ran with: requirements/dev.txt binds the others.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

FOLDER = Path("requirements")
DEV = FOLDER / "dev.txt"
PLAIN = ("--quiet", "--generate-hashes", "--no-emit-index-url", "--no-header", "--python-version", "3.11")
IMAGE = (*PLAIN, "--python-platform", "x86_64-manylinux_2_28", "--constraint", str(DEV), "--no-annotate")


def main() -> None:
    extras = ("--extra", "dev", "--extra", "operator", "--extra", "spark")
    if "--images-only" not in sys.argv:
        compile_to(DEV, "--upgrade", "--universal", *PLAIN, *extras, "pyproject.toml")
    compile_to(FOLDER / "broker.txt", *IMAGE, "pyproject.toml")
    compile_to(FOLDER / "operator.txt", *IMAGE, "--extra", "operator", "pyproject.toml")
    # Executors and clients hold nothing of the broker.
    spark = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]["spark"]
    compile_to(FOLDER / "spark.txt", *IMAGE, "-", stdin="\n".join(spark))
    # What the broker's image is built with, and does not hold.
    compile_to(FOLDER / "compile.txt", *IMAGE, "-", stdin="mypy\nsetuptools")
    compile_to(FOLDER / "client.txt", *IMAGE, "-", stdin="confluent-kafka")


def compile_to(target: Path, *arguments: str, stdin: str | None = None) -> None:
    print(f"pinning {target} …", flush=True)
    command = [f"{sys.prefix}/bin/uv", "pip", "compile", *arguments, "-o", str(target)]
    subprocess.run(command, input=stdin, text=True, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
