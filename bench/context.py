"""What a workload gets: fresh brokers of one peer, and the size of the run."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.fleet import FleetOf
from support.genuine import GROWING_HEAP_OPTIONS, GenuineKafka
from support.librdkafka import make_topic
from support.ottla_broker import OttlaBroker
from support.peers import PEERS
from support.process import BrokerProcess

QUICK_SHARE = 0.1
# Half of what Apache Kafka takes of 1 KB records on two cores, when no measurement of this run says better.
HALF_LOAD_RECORDS_PER_S = 50_000


@dataclass
class Context:
    peer: str
    quick: bool
    half_load_records_per_s: int = HALF_LOAD_RECORDS_PER_S
    program: Path | None = None  # of another version of Ottla

    def scaled(self, count: int) -> int:
        """Work to do, smaller in a quick run; a multiple of 1000."""
        return max(1000, int(count * (QUICK_SHARE if self.quick else 1)) // 1000 * 1000)

    @contextmanager
    def broker(
        self, settings: Mapping[str, str] | None = None, *, growing_heap: bool = False
    ) -> Iterator[BrokerProcess]:
        """Started, on an empty folder that is removed afterwards. `growing_heap`: a JVM begins with a small one."""
        with self.stopped_broker(settings) as broker:
            if growing_heap and isinstance(broker, GenuineKafka):
                broker.heap_options = GROWING_HEAP_OPTIONS
            broker.start()
            yield broker

    @contextmanager
    def stopped_broker(self, settings: Mapping[str, str] | None = None) -> Iterator[BrokerProcess]:
        """For the caller to start."""
        make = PEERS[self.peer]
        with scratch(f"bench-{self.peer}-") as folder, closing(make(Path(folder), settings=settings)) as broker:
            self._fit(broker)
            yield broker

    @contextmanager
    def fleet(self, settings: Mapping[str, str] | None = None) -> Iterator[FleetOf]:
        """Three brokers in three racks, at default settings but for these, started; removed afterwards."""
        with (
            scratch(f"bench-fleet-{self.peer}-") as folder,
            closing(FleetOf(self.peer, Path(folder), settings=settings)) as fleet,
        ):
            for member in fleet.members:
                self._fit(member)
            fleet.start()
            yield fleet

    def _fit(self, broker: BrokerProcess) -> None:
        if self.program is not None and isinstance(broker, OttlaBroker):
            broker.program = self.program


def scratch(prefix: str) -> AbstractContextManager[str]:
    return tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)


def fresh_topic(broker: BrokerProcess, name: str, partitions: int = 1) -> str:
    return make_topic(broker.bootstrap, name, partitions=partitions)
