"""What a workload gets: fresh brokers of one peer, and the size of the run."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.fleet import FleetOf
from support.librdkafka import make_topic
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

    def scaled(self, count: int) -> int:
        """Work to do, smaller in a quick run; a multiple of 1000."""
        return max(1000, int(count * (QUICK_SHARE if self.quick else 1)) // 1000 * 1000)

    @contextmanager
    def broker(self, settings: Mapping[str, str] | None = None) -> Iterator[BrokerProcess]:
        """Started, on an empty folder that is removed afterwards."""
        make = PEERS[self.peer]
        with scratch(f"bench-{self.peer}-") as folder, closing(make(Path(folder), settings=settings)) as broker:
            broker.start()
            yield broker

    @contextmanager
    def fleet(self) -> Iterator[FleetOf]:
        """Three brokers in three racks at default settings, started; removed afterwards."""
        with scratch(f"bench-fleet-{self.peer}-") as folder, closing(FleetOf(self.peer, Path(folder))) as fleet:
            fleet.start()
            yield fleet


def scratch(prefix: str) -> AbstractContextManager[str]:
    return tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)


def fresh_topic(broker: BrokerProcess, name: str, partitions: int = 1) -> str:
    return make_topic(broker.bootstrap, name, partitions=partitions)
