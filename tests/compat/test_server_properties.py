"""The file that Apache Kafka 4.1 ships starts a broker here, as the README says."""

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.kafkas_own_file import KAFKAS_OWN_FILE
from support.librdkafka import Sent, read, send
from support.ottla_broker import OttlaBroker


class FromKafkasFile(OttlaBroker):
    """As shipped, but for ports and folder."""

    def command(self) -> list[str]:
        text = KAFKAS_OWN_FILE.replace("9092", str(self.port)).replace("/tmp/kraft-combined-logs", str(self.data_dir))
        file = self.folder / "server.properties"
        file.write_text(text)
        return [str(Path(sys.executable).parent / "ottla"), "serve", "--config", str(file)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OttlaBroker]:
    with closing(FromKafkasFile(tmp_path)) as broker:
        broker.start()
        yield broker


def test_kafkas_own_file(broker: OttlaBroker) -> None:
    values = [b"hello", b"again"]
    assert not send(broker.bootstrap, "greetings", map(Sent, values)).errors
    assert broker.stop() == 0
    broker.start()
    assert [message.value() for message in read(broker.bootstrap, "greetings")] == values
