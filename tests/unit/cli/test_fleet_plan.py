"""A local fleet's plan: ports, folders, settings, and the cluster id that stays."""

import socket
from io import StringIO
from pathlib import Path

import pytest
from ottla.cli.fleet import with_port
from ottla.cli.fleet_plan import FleetPlan, check_settings, keep, kept_control_addresses, make_plan, refuse_taken_ports
from ottla.cli.fleet_view import render
from ottla.errors import Refusal
from ottla.pb import control_pb2 as pb
from rich.console import Console


def plan(folder: Path, *, count: int = 3, racks: tuple[str, ...] = ("a", "b", "c"), **settings: str) -> FleetPlan:
    return make_plan(str(folder), count=count, racks=racks, port=19092, settings=settings)


def test_each_broker_has_its_place(tmp_path: Path) -> None:
    made = plan(tmp_path)
    assert [(b.id, b.rack, b.port, b.grpc_port, b.replication_port) for b in made.brokers] == [
        (0, "a", 19092, 19192, 19292),
        (1, "b", 19093, 19193, 19293),
        (2, "c", 19094, 19194, 19294),
    ]
    assert made.bootstrap == "127.0.0.1:19092,127.0.0.1:19093,127.0.0.1:19094"
    assert {b.settings["controller.quorum.voters"] for b in made.brokers} == {
        "0@127.0.0.1:19192,1@127.0.0.1:19193,2@127.0.0.1:19194"
    }
    assert [b.pid_file for b in made.brokers] == [f"{tmp_path}/broker-{n}/ottla.pid" for n in range(3)]
    check_settings(made)


def test_the_settings_given_win(tmp_path: Path) -> None:
    made = plan(tmp_path, **{"offsets.topic.replication.factor": "2"})
    assert {b.settings["offsets.topic.replication.factor"] for b in made.brokers} == {"2"}
    assert "offsets.topic.replication.factor=2" in made.brokers[0].arguments()


@pytest.mark.parametrize(("count", "factor", "min_isr"), [(1, "1", "1"), (2, "2", "2"), (5, "3", "2")])
def test_internal_topics_fit_the_fleet(tmp_path: Path, count: int, factor: str, min_isr: str) -> None:
    settings = plan(tmp_path, count=count, racks=()).brokers[0].settings
    assert settings["transaction.state.log.replication.factor"] == factor
    assert settings["transaction.state.log.min.isr"] == min_isr
    assert settings["share.coordinator.state.topic.replication.factor"] == factor
    assert settings["share.coordinator.state.topic.min.isr"] == min_isr
    assert "broker.rack" not in settings


def test_the_cluster_id_stays(tmp_path: Path) -> None:
    first = plan(tmp_path)
    assert plan(tmp_path).cluster_id != first.cluster_id, "nothing was kept yet"
    keep(first)
    assert plan(tmp_path).cluster_id == first.cluster_id
    assert kept_control_addresses(str(tmp_path)) == ["127.0.0.1:19192", "127.0.0.1:19193", "127.0.0.1:19194"]


def test_what_is_made_is_no_matter_for_git(tmp_path: Path) -> None:
    keep(plan(tmp_path))
    assert (tmp_path / ".gitignore").read_text() == "*\n"


def test_a_name_that_nobody_knows_is_warned_about_once(tmp_path: Path) -> None:
    (warning,) = check_settings(plan(tmp_path, **{"log.retention.hour": "1"}))
    assert "log.retention.hour" in warning


def test_the_advice_keeps_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["ottla", "fleet", "up", "-n", "3", "--port", "9092", "--secure", "--data-dir", "my data"]
    monkeypatch.setattr("sys.argv", words)
    assert with_port(19092) == "ottla fleet up -n 3 --secure --data-dir 'my data' --port 19092"


def test_a_broker_that_leads_nothing_is_drained() -> None:
    nodes = [pb.Node(id=number, roles=["broker"], replicas=4, partitions_led=led) for number, led in enumerate((4, 0))]
    console = Console(width=200, record=True, file=StringIO())
    console.print(render(pb.DescribeFleetReply(nodes=nodes)))
    first, second = [line for line in console.export_text().splitlines() if "running" in line]
    assert "drained" not in first and "running, drained" in second


def test_another_size_is_refused(tmp_path: Path) -> None:
    keep(plan(tmp_path))
    with pytest.raises(Refusal, match="has 3 brokers: start it with -n 3"):
        plan(tmp_path, count=1, racks=())


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cluster_id": "x"}', '{"cluster_id": "x", "brokers": "many"}'])
def test_a_malformed_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "fleet.json").write_text(text)
    with pytest.raises(Refusal, match="is malformed"):
        plan(tmp_path)


def test_each_broker_has_probes_at_a_port_of_its_own(tmp_path: Path) -> None:
    made = plan(tmp_path, **{"ottla.health.port": "19500"})
    assert [b.health_port for b in made.brokers] == [19500, 19501, 19502]
    assert [b.settings["ottla.health.port"] for b in made.brokers] == ["19500", "19501", "19502"]
    assert plan(tmp_path).brokers[0].health_port is None
    assert plan(tmp_path, **{"ottla.health.port": "0"}).brokers[2].settings["ottla.health.port"] == "0"
    with pytest.raises(Refusal, match=r"ottla.health.port=x: expected a number"):
        check_settings(plan(tmp_path, **{"ottla.health.port": "x"}))


def test_ports_that_are_taken_are_named_with_what_works(tmp_path: Path) -> None:
    made = make_plan(str(tmp_path), count=2, racks=(), port=23_310, settings={"ottla.health.port": "23311"})
    with pytest.raises(Refusal, match=r"port 23311 \(broker 0, probes\) is in use by broker 1, Kafka clients"):
        refuse_taken_ports(made, advice="`ottla up`")
    with socket.create_server(("127.0.0.1", 23_410)), pytest.raises(Refusal, match=r"gRPC\) .* others: `ottla up`"):
        refuse_taken_ports(made, advice="`ottla up`")
    assert made.other_port == 33_310
    with pytest.raises(Refusal, match="--port -1: the first port of 3 brokers is 1 to 65333"):
        make_plan(str(tmp_path), count=3, racks=(), port=-1, settings={})
