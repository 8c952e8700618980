"""`ottla format --add-scram`: the metadata log begins with these users, whatever happens before the first start."""

import subprocess
import sys
from pathlib import Path

import pytest
from kio.schema.describe_user_scram_credentials.v0.request import DescribeUserScramCredentialsRequest
from kio.schema.describe_user_scram_credentials.v0.response import DescribeUserScramCredentialsResponse
from support.frames import Connection
from support.ottla_broker import OttlaBroker

OTTLA = Path(sys.executable).parent / "ottla"
SHA_256, SHA_512 = 1, 2


def format_with(folder: Path, *users: str) -> None:
    given = [part for user in users for part in ("--add-scram", user)]
    command = [OTTLA, "format", "--data-dir", folder, "--set", "node.id=1", *given, "--ignore-formatted"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def credentials(broker: OttlaBroker) -> dict[str, list[tuple[int, int]]]:
    with Connection(broker.port) as connection:
        answer = connection.ask(DescribeUserScramCredentialsRequest(users=None), DescribeUserScramCredentialsResponse)
    return {one.user: [(info.mechanism, info.iterations) for info in one.credential_infos] for one in answer.results}


def test_a_fleet_begins_with_its_first_users(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--peer") != "ottla":
        pytest.skip("is about Ottla's own command")
    broker = OttlaBroker(tmp_path)
    format_with(
        broker.data_dir,
        "SCRAM-SHA-256=[name=ann,password=x,iterations=8192]",
        "SCRAM-SHA-512=[name=ann,password=x]",
        'SCRAM-SHA-256=[name=bob,salt="c2FsdA==",saltedpassword="AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="]',
    )
    everybody = {"ann": [(SHA_256, 8192), (SHA_512, 4096)], "bob": [(SHA_256, 4096)]}
    try:
        broker.start()
        assert credentials(broker) == everybody
        broker.kill()
        format_with(broker.data_dir, "SCRAM-SHA-256=[name=eve,password=x]")  # too late: it is formatted
        broker.start()
        assert credentials(broker) == everybody
    finally:
        broker.close()
