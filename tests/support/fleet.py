"""A fleet of brokers, Ottla's or Apache Kafka's, on loopback or each in a cell of its own."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.cells import Cells
from support.fleet_members import Seat, make_members
from support.fleet_view import PartitionView, View, newest, view_of
from support.genuine import new_cluster_id
from support.ports import free_port
from support.process import BrokerProcess
from support.slow_disk import slowed_while
from support.waiting import eventually

RACKS = ("a", "b", "c")


class FleetOf:
    """Node ids are 0, 1, 2, … as the racks are given.

    In cells brokers can be cut off from each other; there `disk_mb` gives each a disk of that size, which can be made
    slow and full.
    """

    def __init__(
        self,
        peer: str,
        folder: Path,
        *,
        racks: Sequence[str] = RACKS,
        settings: Mapping[str, str] | None = None,
        cells: bool = False,
        disk_mb: int | None = None,
    ) -> None:
        self.peer, self.folder = peer, folder
        self.cells = Cells(len(racks)) if cells else None
        self._paused: set[int] = set()
        self.members: list[BrokerProcess] = make_members(peer, folder, self._seats(racks), settings or {})
        if disk_mb is not None:
            assert self.cells is not None, "only a cell has a disk of its own"
            for cell, member in zip(self.cells.cells, self.members, strict=True):
                cell.own_disk(member.data_dir, disk_mb)

    @property
    def ids(self) -> range:
        return range(len(self.members))

    @property
    def bootstrap(self) -> str:
        return ",".join(member.bootstrap for member in self.members)

    def start(self) -> None:
        """All at once: a quorum needs more than one."""
        for member in self.members:
            member.start(wait=False)
        for member in self.members:
            member.wait_until_ready()
        eventually(self._alive, lambda seen: seen == set(self.ids))

    def stop(self) -> None:
        """All cleanly and at once, as a machine going down does it."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(BrokerProcess.stop, [member for member in self.members if member.running]))

    def close(self) -> None:
        for member in self.members:
            member.close()
        if self.cells is not None:
            self.cells.close()

    def pause(self, broker: int) -> None:
        self._paused.add(broker)
        self.members[broker].pause()

    def resume(self, broker: int) -> None:
        self.members[broker].resume()
        self._paused.discard(broker)

    def isolate(self, broker: int, *, sending: bool = True, hearing: bool = True) -> None:
        """Cut from the other brokers, or only one way; clients still reach it."""
        assert self.cells is not None, "only cells can be cut off"
        for other in self.ids:
            if other != broker and sending:
                self.cells.cut(broker, other)
            if other != broker and hearing:
                self.cells.cut(other, broker)

    def mend(self) -> None:
        if self.cells is not None:
            self.cells.mend_all()

    def slow_disk(self, broker: int) -> None:
        assert self.cells is not None, "only a cell's disk can be slow"
        self._slow_flag(broker).touch()

    def fast_disk(self, broker: int) -> None:
        self._slow_flag(broker).unlink()

    def views(self, topics: Sequence[str] | None = None) -> list[View]:
        """Of the brokers that answer."""
        asked = [m for i, m in enumerate(self.members) if m.running and i not in self._paused]
        return [view for member in asked if (view := view_of(member, topics)) is not None]

    def partition(self, topic: str, partition: int) -> PartitionView | None:
        return newest(self.views([topic]), topic, partition)

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """Waits while there is none."""
        found = eventually(lambda: self.partition(topic, partition), lambda seen: seen is not None and seen.leader >= 0)
        assert found is not None
        return found.leader

    def wait_in_sync(self, timeout_s: float = 60.0) -> None:
        """Until every broker says that every replica of every partition is in sync."""

        def complaints() -> list[str]:
            views = self.views()
            silent = [f"{len(self.members) - len(views)} brokers do not answer"] if len(views) < len(self.ids) else []
            alive = [f"sees only {set(view.brokers)}" for view in views if view.brokers != set(self.ids)]
            partial = [f"{key}: {one}" for view in views for key, one in view.partitions.items() if not one.whole]
            return [*silent, *alive, *partial]

        eventually(complaints, lambda seen: not seen, timeout_s=timeout_s)

    def pids(self) -> list[int]:
        return [pid for member in self.members for pid in member.pids()]

    def cpu_seconds(self) -> float:
        return sum(member.cpu_seconds() for member in self.members)

    def log_tails(self, lines: int = 25) -> str:
        return "\n".join(
            f"── broker {i} (running: {m.running})\n{m.log_tail(lines)}" for i, m in enumerate(self.members)
        )

    def _alive(self) -> set[int]:
        views = self.views([])
        return set.intersection(*(set(view.brokers) for view in views)) if views else set()

    def _inside(self, broker: int) -> tuple[str, ...]:
        if self.cells is None:
            return ()
        return (*self.cells.cells[broker].enter, *slowed_while(self._slow_flag(broker)))

    def _slow_flag(self, broker: int) -> Path:
        return self.folder / f"broker-{broker}-is-slow"

    def _seats(self, racks: Sequence[str]) -> list[Seat]:
        cells = self.cells.cells if self.cells is not None else []
        hosts = [cell.host for cell in cells] or ["127.0.0.1"] * len(racks)
        ports = [free_port() for _ in racks]
        voters = ",".join(f"{i}@{host}:{port}" for i, (host, port) in enumerate(zip(hosts, ports, strict=True)))
        cluster_id = new_cluster_id()
        return [Seat(i, rack, hosts[i], ports[i], cluster_id, voters, self._inside(i)) for i, rack in enumerate(racks)]
