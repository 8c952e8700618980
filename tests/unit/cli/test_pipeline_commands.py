"""`ottla pipeline` where no Spark is started."""

import subprocess
import sys

import pytest

LISTING = """
import sys
from ottla.cli.main import app
try:
    app(["pipeline", "list"])
except SystemExit as end:
    assert end.code == 0
print("pyspark" in sys.modules, "confluent_kafka" in sys.modules)
"""


def ottla(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "ottla", *words], capture_output=True, text=True, timeout=60)


def test_listing_needs_neither_spark_nor_a_kafka_client() -> None:
    done = subprocess.run([sys.executable, "-c", LISTING], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "False False", done.stderr
    assert "sessions-result, clicks-dead-letter" in done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["session"], "there is no pipeline session; there are: sessions"),
        (["sessions", "--events", "5"], "5 events are too few for every kind of record: at least 100"),
    ],
)
def test_bad_words_are_refused_in_one_line(words: list[str], sentence: str) -> None:
    done = ottla("pipeline", "run", *words)
    assert (done.returncode, done.stderr) == (1, f"ottla pipeline: {sentence}\n")
