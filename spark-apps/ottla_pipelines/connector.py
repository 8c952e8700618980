"""Spark's Kafka connector: four jars, fetched once into the user's cache by Spark's own Ivy and checked by SHA-256.

`python -m ottla_pipelines.connector [DIR]` prints the folder, or copies the jars into DIR (the Spark image does that).
Spark's own `spark.jars.packages` would resolve them at each start, over the network and without a check.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SPARK_VERSION", "ConnectorUnavailable", "connector_jars"]

SPARK_VERSION = "4.0.0"
MIRROR_VARIABLE = "OTTLA_MAVEN_REPOSITORY"
FETCH_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Jar:
    organisation: str
    name: str
    revision: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.revision}.jar"


JARS = (
    Jar(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        SPARK_VERSION,
        "33a3b8b04df4a2e43c9d5bf8ca5972936a1ac662f2714e014d00ef6f27468bf3",
    ),
    Jar(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        SPARK_VERSION,
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    ),
    Jar(
        "org.apache.kafka",
        "kafka-clients",
        "3.9.0",
        "15c1e137f2c2c94398e27abc4060a03b6bde10bf9fac15e8f70c02320b202f18",
    ),
    Jar(
        "org.apache.commons",
        "commons-pool2",
        "2.12.0",
        "6d3bd18df8410f3e31b031aca582cc109342358a62a2759ebd0c4cdf30d06f8b",
    ),
)


class ConnectorUnavailable(RuntimeError):
    """The jars could not be fetched; the message says what to do."""


def connector_jars(report: Callable[[str], None] = lambda line: None) -> list[Path]:
    """Fetches them the first time. Safe to run twice at once: the folder appears by rename."""
    folder = _cache_folder()
    if not folder.is_dir():
        report(f"fetching Spark's Kafka connector {SPARK_VERSION} into {folder} …")
        _fetch_all(folder)
    return sorted(folder.glob("*.jar"))


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ottla" / f"spark-kafka-{SPARK_VERSION}"


def _fetch_all(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetch-") as scratch:
        work = Path(scratch)
        _run_ivy(work)
        for jar in JARS:
            _check(work / "jars" / jar.file_name, jar)
        try:
            (work / "jars").rename(folder)
        except OSError:
            # Another process was faster, with the same content.
            if not folder.is_dir():
                raise


def _run_ivy(work: Path) -> None:
    (work / "ivy.xml").write_text(_module())
    command = ["java", "-jar", _ivy_jar(), "-ivy", "ivy.xml", "-cache", f"{work}/cache", "-types", "jar"]
    command += ["-retrieve", "jars/[artifact]-[revision].[ext]"]
    if mirror := os.environ.get(MIRROR_VARIABLE):
        (work / "settings.xml").write_text(_settings(mirror))
        command += ["-settings", "settings.xml"]
    try:
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S)
    except FileNotFoundError:
        raise ConnectorUnavailable("java is missing: Spark needs Java 17 or newer, and so does its Ivy") from None
    except subprocess.TimeoutExpired:
        raise ConnectorUnavailable(_unreachable(mirror, f"no end within {FETCH_TIMEOUT_S:g} s")) from None
    if done.returncode != 0 or not (work / "jars").is_dir():
        raise ConnectorUnavailable(_unreachable(mirror, _complaint(done.stdout + done.stderr)))


def _ivy_jar() -> str:
    pyspark = importlib.util.find_spec("pyspark")
    assert pyspark is not None and pyspark.origin is not None
    return str(next(Path(pyspark.origin).parent.glob("jars/ivy-*.jar")))


def _module() -> str:
    wanted = "".join(
        f'<dependency org="{jar.organisation}" name="{jar.name}" rev="{jar.revision}" transitive="false"'
        ' conf="*->default"/>'
        for jar in JARS
    )
    info = '<info organisation="ottla" module="connector"/>'
    return f'<ivy-module version="2.0">{info}<dependencies>{wanted}</dependencies></ivy-module>'


def _settings(mirror: str) -> str:
    resolver = f'<ibiblio name="mirror" m2compatible="true" usepoms="false" root="{mirror.rstrip("/")}/"/>'
    return f'<ivysettings><settings defaultResolver="mirror"/><resolvers>{resolver}</resolvers></ivysettings>'


def _complaint(said: str) -> str:
    """The line of Ivy's report that names the reason."""
    lines = [line.strip() for line in said.splitlines()]
    reasons = [line for line in lines if "UNRESOLVED" in line or "Exception" in line or "not found" in line]
    return reasons[0].strip(": ") if reasons else "Ivy did not say why"


def _unreachable(mirror: str | None, reason: str) -> str:
    place = mirror or "Maven Central"
    return (
        f"cannot fetch Spark's Kafka connector from {place}: {reason}; set {MIRROR_VARIABLE} to a Maven repository"
        " that is reachable here"
    )


def _check(path: Path, jar: Jar) -> None:
    if hashlib.sha256(path.read_bytes()).hexdigest() != jar.sha256:
        raise ConnectorUnavailable(
            f"{jar.file_name} is not the file it should be (SHA-256 differs); is a proxy in between?"
        )


def main(words: list[str]) -> int:
    jars = connector_jars(lambda line: print(line, file=sys.stderr, flush=True))
    if words:
        Path(words[0]).mkdir(parents=True, exist_ok=True)
        for jar in jars:
            shutil.copy(jar, words[0])
    print(words[0] if words else jars[0].parent)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ConnectorUnavailable as problem:
        sys.exit(str(problem))
