"""Spark's Kafka connector: four jars from Maven Central, fetched once into the user's cache and checked by SHA-256.

`python -m ottla_pipelines.connector [DIR]` prints the folder, or copies the jars into DIR (the Spark image does that).
Spark's own `spark.jars.packages` would resolve them anew, over the network, at each start.
"""

import hashlib
import os
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

__all__ = ["SPARK_VERSION", "ConnectorUnavailable", "connector_jars"]

SPARK_VERSION = "4.0.0"
MAVEN = "https://repo1.maven.org/maven2"
MIRROR_VARIABLE = "OTTLA_MAVEN_REPOSITORY"
DOWNLOAD_TIMEOUT_S = 120.0
DOWNLOAD_TRIES_MAX = 3
JARS = {
    f"org/apache/spark/spark-sql-kafka-0-10_2.13/{SPARK_VERSION}/spark-sql-kafka-0-10_2.13-{SPARK_VERSION}.jar": (
        "33a3b8b04df4a2e43c9d5bf8ca5972936a1ac662f2714e014d00ef6f27468bf3"
    ),
    f"org/apache/spark/spark-token-provider-kafka-0-10_2.13/{SPARK_VERSION}/"
    f"spark-token-provider-kafka-0-10_2.13-{SPARK_VERSION}.jar": (
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767"
    ),
    "org/apache/kafka/kafka-clients/3.9.0/kafka-clients-3.9.0.jar": (
        "15c1e137f2c2c94398e27abc4060a03b6bde10bf9fac15e8f70c02320b202f18"
    ),
    "org/apache/commons/commons-pool2/2.12.0/commons-pool2-2.12.0.jar": (
        "6d3bd18df8410f3e31b031aca582cc109342358a62a2759ebd0c4cdf30d06f8b"
    ),
}


class ConnectorUnavailable(RuntimeError):
    """The jars could not be fetched; the message says what to do."""


def connector_jars(tell: Callable[[str], None] = lambda line: None) -> list[Path]:
    """Fetches them the first time. Safe to run twice at once: the folder appears by rename."""
    folder = _cache_folder()
    if not folder.is_dir():
        tell(f"fetching Spark's Kafka connector {SPARK_VERSION} into {folder} …")
        _fetch_all(folder)
    return sorted(folder.glob("*.jar"))


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ottla" / f"spark-kafka-{SPARK_VERSION}"


def _fetch_all(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetch-") as scratch:
        made = Path(scratch) / "jars"
        made.mkdir()
        for place, digest in JARS.items():
            (made / place.rsplit("/", 1)[1]).write_bytes(_fetch(place, digest))
        try:
            made.rename(folder)
        except OSError:
            # Another process was faster; its copy is as good as ours.
            if not folder.is_dir():
                raise


def _fetch(place: str, digest: str) -> bytes:
    url = f"{os.environ.get(MIRROR_VARIABLE, MAVEN).rstrip('/')}/{place}"
    for attempt in range(1, DOWNLOAD_TRIES_MAX + 1):
        try:
            with urllib.request.urlopen(url, timeout=DOWNLOAD_TIMEOUT_S) as answer:
                content: bytes = answer.read()
            break
        except (urllib.error.URLError, TimeoutError) as error:
            if attempt == DOWNLOAD_TRIES_MAX:
                raise ConnectorUnavailable(
                    f"cannot fetch {url}: {error}; set {MIRROR_VARIABLE} to a Maven repository that is reachable here"
                ) from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise ConnectorUnavailable(f"{url} is not the file it should be (SHA-256 differs); is a proxy in between?")
    return content


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
