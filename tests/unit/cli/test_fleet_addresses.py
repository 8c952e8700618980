"""Whom `ottla fleet status` asks, and what it says when nobody answers."""

import json
import socket
import struct
import threading
from pathlib import Path

import pytest
from ottla.cli.control import NobodyAnswers
from ottla.cli.fleet_addresses import control_addresses, explained
from ottla.cli.fleet_plan import keep, make_plan
from ottla.cli.kafka.client import KafkaClient
from ottla.errors import Refusal


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_addresses_have_ports() -> None:
    assert control_addresses("a:1, [::1]:9192", "data") == ["a:1", "[::1]:9192"]
    for text in ("127.0.0.1", "[::1]"):
        with pytest.raises(Refusal, match=r"no port given; give the gRPC port \(ottla.grpc.port\), such as .*:9192"):
            control_addresses(text, "data")
    for text in ("a:0", "a:65536", "a:x", ":9192", "a:999999999"):
        with pytest.raises(Refusal, match="expected HOST:PORT with a port of 1 to 65535"):
            control_addresses(text, "data")
    with pytest.raises(Refusal, match="host:port is expected"):
        KafkaClient("127.0.0.1:99999")


def test_a_port_for_kafka_clients_is_named() -> None:
    """Something that answers ApiVersions: it knows none."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            client, _ = server.accept()
            with client:
                client.recv(4096)
                body = struct.pack(">ihi", 0, 0, 0)
                client.sendall(struct.pack(">i", len(body)) + body)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            with (
                pytest.raises(Refusal, match=f": {port} looks like a port for Kafka clients; give the gRPC port"),
                explained(f"127.0.0.1:{port}", "data"),
            ):
                raise NobodyAnswers("UNAVAILABLE", [f"127.0.0.1:{port}"])
        finally:
            thread.join()


def test_other_silence_is_told_as_it_is() -> None:
    with pytest.raises(NobodyAnswers, match=r"no active controller answers \(gone\)"), explained("a:1", "data"):
        raise NobodyAnswers("gone", [f"127.0.0.1:{free_port()}"])


def test_a_fleet_that_is_stopped_is_named(tmp_path: Path) -> None:
    plan = make_plan(str(tmp_path), count=2, racks=["a", "b"], port=23_150, settings={})
    keep(plan)
    words = f"is not running; start it with: ottla fleet up -n 2 --data-dir {tmp_path} --racks a,b --port 23150"
    with pytest.raises(Refusal, match=words), explained(None, str(tmp_path)):
        raise NobodyAnswers("refused", plan.control_addresses)
    kept = json.loads((tmp_path / "fleet.json").read_text())
    del kept["racks"]  # as it was written before
    (tmp_path / "fleet.json").write_text(json.dumps(kept))
    with pytest.raises(Refusal, match=r"--port 23150$"), explained(None, str(tmp_path)):
        raise NobodyAnswers("refused", plan.control_addresses)


def test_one_broker_alone_is_no_fleet(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"opens none unless started as `ottla serve --set ottla.grpc.port=9094`"):
        control_addresses(None, str(tmp_path))
