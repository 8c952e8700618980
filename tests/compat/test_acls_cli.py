"""`ottla acls` on a real broker, of either kind."""

import json
import subprocess
import sys
from pathlib import Path

from support.process import BrokerProcess

BROKER_SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
}
DENIED, UNDECIDED = 3, 4


def acls(bootstrap: str, *words: str, status: int = 0) -> str:
    program = Path(sys.executable).parent / "ottla"
    command = [program, "acls", *words, "--bootstrap", bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_add_list_and_remove(bootstrap: str) -> None:
    said = acls(bootstrap, "add", "ann", "read,describe-configs", "topic:cli-*", "--host", "10.0.0.1")
    assert said.splitlines() == [
        "User:ann may READ topic:cli-* from 10.0.0.1",
        "User:ann may DESCRIBE_CONFIGS topic:cli-* from 10.0.0.1",
    ]
    acls(bootstrap, "add", "*", "write", "topic:cli-orders", "--deny")
    acls(bootstrap, "add", "ann", "alter", "cluster")
    heading, *rows = acls(bootstrap, "list", "topic:cli-orders").splitlines()
    assert heading.split() == ["principal", "permission", "operation", "resource", "host"]
    assert [row.split() for row in rows] == [
        ["User:ann", "ALLOW", "READ", "topic:cli-*", "10.0.0.1"],
        ["User:ann", "ALLOW", "DESCRIBE_CONFIGS", "topic:cli-*", "10.0.0.1"],
        ["User:*", "DENY", "WRITE", "topic:cli-orders", "*"],
    ]
    found = json.loads(acls(bootstrap, "list", "--principal", "ann", "-o", "json"))
    assert [(each["resource"], each["operation"]) for each in found] == [
        ("topic:cli-*", "READ"), ("topic:cli-*", "DESCRIBE_CONFIGS"), ("cluster", "ALTER"),
    ]  # fmt: skip
    acls(bootstrap, "remove", "ann", "read,describe-configs", "topic:cli-*", "--host", "10.0.0.1")
    acls(bootstrap, "remove", "User:*", "write", "topic:cli-orders", "--deny")
    acls(bootstrap, "remove", "ann", "alter", "cluster")
    assert acls(bootstrap, "list") == "no ACLs\n"
    assert "there is no ACL that says: User:ann may ALTER cluster" in acls(
        bootstrap, "remove", "ann", "alter", "cluster", status=1
    )


def test_may_somebody_and_why(bootstrap: str, broker: BrokerProcess) -> None:
    acls(bootstrap, "add", "bob", "read", "topic:why-*")
    acls(bootstrap, "add", "bob", "all", "topic:why-secret", "--deny")

    def said(*words: str, status: int = 0) -> str:
        return acls(bootstrap, "test", *words, status=status).strip()

    # What super.users says is no secret to Ottla's administrators; Kafka does not tell.
    no = UNDECIDED if broker.name == "kafka" else DENIED
    assert said("bob", "describe", "topic:why-orders", "--host", "10.0.0.9") == (
        "allowed: User:bob DESCRIBE topic:why-orders from 10.0.0.9: an ACL says: User:bob may READ topic:why-*"
    )
    assert "User:bob must not ALL topic:why-secret" in said("bob", "read", "topic:why-secret", status=no)
    denied = said("bob", "write", "topic:why-orders", status=no)
    assert "no ACL allows WRITE to User:bob; 1 ACL is about topic:why-orders" in denied
    assert denied.endswith("to allow it: ottla acls add bob write topic:why-orders")
    assert "0 ACLs are about topic:else" in said("bob", "read", "topic:else", status=no)
    if broker.name == "ottla":
        assert said("admin", "alter", "cluster").endswith("super.users names it")
    told = json.loads(said("bob", "read", "topic:why-secret", "-o", "json", status=no))
    assert (told["allowed"], told["by"]) == (None if no == UNDECIDED else False, "acl")


def test_words_that_mean_nothing_are_explained(bootstrap: str) -> None:
    assert "expected topic:NAME" in acls(bootstrap, "add", "ann", "read", "orders", status=1)
    assert "no such operation; there are all, read" in acls(bootstrap, "add", "ann", "reed", "topic:a", status=1)
    assert "one resource is expected" in acls(bootstrap, "test", "ann", "read", "topic:a*", status=1)
    assert "there are table and json" in acls(bootstrap, "list", "-o", "xml", status=1)
