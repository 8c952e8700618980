"""A broker secured by hand, as docs/security.md says; confluent-kafka comes in by both mechanisms."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from support.documents import all_blocks
from support.ports import free_port
from support.waiting import eventually

BLOCKS = [block for block in all_blocks() if (block.document, block.heading) == ("docs/security.md", "How to")]
START = "ottla serve"
STEP_S_MAX = 60


def run(text: str, folder: Path, port: int) -> str:
    text = text.replace("127.0.0.1:9092", f"127.0.0.1:{port}").replace(".venv/bin/", f"{Path(sys.executable).parent}/")
    command = ["bash", "-euo", "pipefail", "-c", text]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=STEP_S_MAX)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_broker_secured_by_hand(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--peer") != "ottla":
        pytest.skip("is about Ottla's own commands")
    port = free_port()

    def client(user: str, mechanism: str) -> dict[str, str]:
        return {
            "bootstrap.servers": f"127.0.0.1:{port}", "security.protocol": "SASL_SSL", "sasl.mechanism": mechanism,
            "ssl.ca.location": str(tmp_path / "ca.pem"), "sasl.username": user, "sasl.password": f"{user}-secret",
        }  # fmt: skip

    try:
        for block in BLOCKS:
            said = run(block.text, tmp_path, port)
            if START in block.text:
                eventually(lambda: "serves SASL_SSL" in (tmp_path / "broker.log").read_text(), bool)
        assert "allowed: User:bob WRITE topic:orders" in said
        producer, failures = Producer(client("bob", "PLAIN")), []
        producer.produce("orders", b"one", on_delivery=lambda error, _: failures.append(error))
        assert producer.flush(30) == 0 and failures == [None]
        assert "orders" not in AdminClient(client("alice", "SCRAM-SHA-512")).list_topics(timeout=30).topics
        assert "User:admin" in (tmp_path / "audit.log").read_text()
    finally:
        if (pid := tmp_path / "broker.pid").exists():
            os.kill(int(pid.read_text()), signal.SIGTERM)
