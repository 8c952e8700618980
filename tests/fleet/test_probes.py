"""Probes of real processes: alive without a quorum, ready with one, and not any more while leaving."""

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.ottla_broker import OttlaBroker
from support.ports import free_port
from support.waiting import eventually

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


class Probed(OttlaBroker):
    """One of three voters, with probes."""

    def __init__(self, folder: Path, node_id: int, voters: str) -> None:
        self.health_port = free_port()
        own = {
            "node.id": str(node_id),
            "cluster.id": CLUSTER_ID,
            "controller.quorum.voters": voters,
            "ottla.health.port": str(self.health_port),
        }
        super().__init__(folder, settings=own)

    def answer(self, path: str) -> tuple[int, str]:
        """0 when nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.health_port, timeout=5)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode().strip()
        except OSError as error:
            return 0, str(error)
        finally:
            connection.close()


@pytest.fixture
def voters(tmp_path: Path) -> Iterator[list[Probed]]:
    ports = [free_port() for _ in range(3)]
    names = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(ports))
    members = [Probed(tmp_path / str(number), number, names) for number in range(3)]
    yield members
    for member in members:
        member.close()


def test_alive_without_a_quorum_and_ready_with_one(voters: list[Probed]) -> None:
    first, second, _ = voters
    first.start(wait=False)
    eventually(lambda: first.answer("/livez"), lambda seen: seen == (200, "alive"))
    assert first.answer("/readyz") == (503, "node 0 starts")
    second.start(wait=False)
    for member in (first, second):
        eventually(lambda member=member: member.answer("/readyz"), lambda seen: seen == (200, "ready"))
    assert first.answer("/elsewhere")[0] == 404
    told = [metrics(member) for member in (first, second)]
    assert sum(one["kafka_controller_kafkacontroller_activecontrollercount"] for one in told) == 1
    assert sum(one["kafka_controller_kafkacontroller_activebrokercount"] for one in told) == 2
    assert all(one['ottla_loop_lag_seconds{loop="data"}'] < 5 for one in told)
    assert all(one["process_resident_memory_bytes"] > 10 << 20 for one in told)


def metrics(member: Probed) -> dict[str, float]:
    code, text = member.answer("/metrics")
    assert code == 200
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def test_a_node_that_is_told_to_stop_while_it_waits_for_a_quorum_stops(voters: list[Probed]) -> None:
    first = voters[0]
    first.start(wait=False)
    eventually(lambda: first.answer("/livez"), lambda seen: seen == (200, "alive"))
    first.stop()
    assert first.answer("/livez")[0] == 0
