"""SCRAM users over Kafka's APIs 50 and 51, by kafka-configs and by hand: codes and sentences are Kafka's."""

from collections.abc import Iterator

import pytest
from kio.schema.alter_user_scram_credentials.v0 import request as alter
from kio.schema.alter_user_scram_credentials.v0.response import AlterUserScramCredentialsResponse
from kio.schema.describe_user_scram_credentials.v0 import request as describe
from kio.schema.describe_user_scram_credentials.v0.response import DescribeUserScramCredentialsResponse
from kio.schema.errors import ErrorCode as Code
from support.frames import Connection
from support.java import Finished, java_tool
from support.process import BrokerProcess
from support.waiting import eventually

SALTED = bytes(range(32))


@pytest.fixture
def connection(broker: BrokerProcess) -> Iterator[Connection]:
    with Connection(broker.port) as opened:
        yield opened


def configs(bootstrap: str, *arguments: str, code: int = 0) -> Finished:
    tool = "kafka.admin.ConfigCommand"
    return java_tool(tool, "--bootstrap-server", bootstrap, *arguments, "--entity-type", "users", code=code)


def test_kafka_configs(bootstrap: str, name: str) -> None:
    user = ("--entity-name", name)
    changed = configs(bootstrap, "--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=x]", *user)
    assert f"Completed updating config for user {name}." in changed.out
    configs(bootstrap, "--alter", "--add-config", "SCRAM-SHA-512=[password=y]", *user)
    shown = configs(bootstrap, "--describe", *user).out
    assert f"SCRAM credential configs for user-principal '{name}' are " in shown
    assert "SCRAM-SHA-256=iterations=8192" in shown
    assert "SCRAM-SHA-512=iterations=4096" in shown
    configs(bootstrap, "--alter", "--delete-config", "SCRAM-SHA-512", *user)
    assert "SCRAM-SHA-512" not in configs(bootstrap, "--describe", *user).out
    configs(bootstrap, "--alter", "--delete-config", "SCRAM-SHA-256", *user)
    assert "SCRAM" not in configs(bootstrap, "--describe", *user).out


def changed(connection: Connection, *changes: object) -> dict[str, tuple[Code, str | None]]:
    deletions = tuple(one for one in changes if isinstance(one, alter.ScramCredentialDeletion))
    upsertions = tuple(one for one in changes if isinstance(one, alter.ScramCredentialUpsertion))
    request = alter.AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    answer = connection.ask(request, AlterUserScramCredentialsResponse)
    return {one.user: (one.error_code, one.error_message) for one in answer.results}


def upsertion(user: str, mechanism: int = 1, iterations: int = 4096) -> alter.ScramCredentialUpsertion:
    salted = SALTED * mechanism
    return alter.ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted
    )


def deletion(user: str, mechanism: int = 1) -> alter.ScramCredentialDeletion:
    return alter.ScramCredentialDeletion(name=user, mechanism=mechanism)


NONE = (Code.none, None)
TWICE = (Code.duplicate_resource, "A user credential cannot be altered twice in the same request")


def test_refusals_have_kafkas_codes_and_words(connection: Connection, name: str) -> None:
    unacceptable, unknown = Code.unacceptable_credential, (Code.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")
    missing = (Code.resource_not_found, "Attempt to delete a user credential that does not exist")
    answers = changed(
        connection,
        deletion(f"{name}-gone"),
        deletion(f"{name}-odd", 3),
        upsertion(f"{name}-few", iterations=4095),
        upsertion(f"{name}-many", iterations=16385),
        upsertion(f"{name}-strange", mechanism=0),
        upsertion(""),
        upsertion(f"{name}-twice"),
        upsertion(f"{name}-twice", mechanism=2),
        upsertion(name),
    )
    assert answers == {
        f"{name}-gone": missing,
        f"{name}-odd": unknown,
        f"{name}-few": (unacceptable, "Too few iterations"),
        f"{name}-many": (unacceptable, "Too many iterations"),
        f"{name}-strange": unknown,
        "": (unacceptable, "Username must not be empty"),
        f"{name}-twice": TWICE,
        name: NONE,
    }
    assert changed(connection, deletion(name), upsertion(name)) == {name: TWICE}
    assert changed(connection, deletion(name)) == {name: NONE}


def test_descriptions(connection: Connection, name: str) -> None:
    changed(connection, upsertion(name), upsertion(f"{name}-2", mechanism=2, iterations=5000))

    def described(*users: str) -> dict[str, tuple[Code, str | None, list[tuple[int, int]]]]:
        named = tuple(describe.UserName(name=user) for user in users)
        request = describe.DescribeUserScramCredentialsRequest(users=named or None)
        answer = connection.ask(request, DescribeUserScramCredentialsResponse)
        assert answer.error_code == Code.none
        return {
            one.user: (
                one.error_code,
                one.error_message,
                [(info.mechanism, info.iterations) for info in one.credential_infos],
            )
            for one in answer.results
        }

    # A genuine broker answers a change before it has seen it.
    everybody = eventually(described, lambda found: f"{name}-2" in found)
    assert everybody[name] == (*NONE, [(1, 4096)])
    assert everybody[f"{name}-2"] == (*NONE, [(2, 5000)])
    twice = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
    nobody = f"Attempt to describe a user credential that does not exist: {name}-3"
    assert described(name, f"{name}-3", name) == {
        name: (Code.duplicate_resource, twice, []),
        f"{name}-3": (Code.resource_not_found, nobody, []),
    }
