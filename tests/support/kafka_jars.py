"""Apache Kafka's own jars (broker, clients, command-line tools), fetched once from Maven into the user's cache.

`python -m support.kafka_jars` prints the folder. Safe to run twice at once: the folder appears by rename.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.debian import NotInstalled, can_install, install

KAFKA_VERSION = "4.1.1"
ARTIFACTS = ("kafka_2.13", "kafka-tools")
DOWNLOAD_TIMEOUT_S = 900


class MissingProgram(RuntimeError):
    """A program that this machine lacks, with what to install."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ottla" / f"kafka-{KAFKA_VERSION}"


def kafka_jars() -> Path:
    """The folder with all jars; fetches them the first time."""
    folder = cache_folder()
    if not folder.is_dir():
        require_program("java", debian_package="default-jdk-headless")
        require_program("mvn", debian_package="maven")
        _fetch(folder)
    return folder


def require_program(name: str, *, debian_package: str) -> str:
    """Its path; as root on Debian a missing one is installed, otherwise MissingProgram says what to do."""
    if found := shutil.which(name):
        return found
    if not can_install():
        raise MissingProgram(f"{name} is missing: install it (Debian: sudo apt-get install {debian_package})")
    print(f"installing {debian_package} …", file=sys.stderr, flush=True)
    try:
        install(debian_package)
    except NotInstalled as failed:
        raise MissingProgram(str(failed)) from None
    if found := shutil.which(name):
        return found
    raise MissingProgram(f"{name} is still missing after installing {debian_package}")


def _fetch(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    print(f"fetching Apache Kafka {KAFKA_VERSION} from Maven into {folder} …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetch-") as scratch:
        work = Path(scratch)
        (work / "pom.xml").write_text(_pom())
        _run_maven(work)
        try:
            (work / "lib").rename(folder)
        except OSError:
            # Another process was faster; its copy is as good as ours.
            if not folder.is_dir():
                raise
    print(f"fetched {len(list(folder.glob('*.jar')))} jars", file=sys.stderr, flush=True)


def _run_maven(work: Path) -> None:
    command = ["mvn", "-B", "-q", "dependency:copy-dependencies", "-DoutputDirectory=lib", "-DincludeScope=runtime"]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=DOWNLOAD_TIMEOUT_S)
    if done.returncode != 0:
        said = done.stdout[-3000:] + done.stderr[-3000:]
        raise RuntimeError(f"mvn could not fetch Apache Kafka {KAFKA_VERSION}:\n{said}")


def _pom() -> str:
    dependencies = "".join(
        f"<dependency><groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{KAFKA_VERSION}</version></dependency>"
        for artifact in ARTIFACTS
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>ottla</groupId><artifactId>kafka-jars</artifactId>"
        f"<version>1</version><dependencies>{dependencies}</dependencies></project>"
    )


if __name__ == "__main__":
    try:
        print(kafka_jars())
    except MissingProgram as missing:
        sys.exit(str(missing))
