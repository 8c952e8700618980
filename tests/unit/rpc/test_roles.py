"""Whose method is whose, and what a certificate must say."""

import pytest
from ottla.rpc.roles import METHODS, Caller, refusal
from ottla.security.core.identities import ROLES, Identity, identity_among, node_host

HERE, THERE = "MkU3OEVBNTcwNTJENDM2Qg", "AAAAAAAAAAAAAAAAAAAAAA"
SUBMIT, DESCRIBE = "/ottla.pb.Control/Submit", "/ottla.pb.Control/DescribeFleet"
EXCHANGE, COPY = "/ottla.pb.Quorum/Exchange", "/ottla.pb.Replication/Copy"
NOW_S = 1_700_000_000.0


def caller(role: str, *, cluster: str = HERE, says: str | None = HERE) -> Caller:
    return Caller(True, Identity(cluster, role, "1"), says, certified_until_s=NOW_S)


@pytest.mark.parametrize(
    "method, roles",
    [
        (SUBMIT, {"broker", "controller"}),
        ("/ottla.pb.Control/Heartbeat", {"broker"}),
        (EXCHANGE, {"broker", "controller"}),
        ("/ottla.pb.Quorum/SendSnapshot", {"broker", "controller"}),
        (COPY, {"broker"}),
        ("/ottla.pb.Transactions/WriteMarkers", {"broker"}),
        (DESCRIBE, set(ROLES)),
        ("/ottla.pb.Control/Drain", set(ROLES)),
        ("/ottla.pb.Control/NotYetThought", set()),
        ("/other.Service/Method", set()),
    ],
)
def test_a_method_is_for_its_roles(method: str, roles: set[str]) -> None:
    allowed = {
        role for role in (*ROLES, "ca", "king") if refusal(method, caller(role), cluster_id=HERE, now_s=NOW_S) is None
    }
    assert allowed == roles


def test_without_tls_everybody_may_call_but_not_for_another_cluster() -> None:
    for method in (SUBMIT, EXCHANGE, "/other.Service/Method"):
        assert refusal(method, Caller(False, None, None), cluster_id=HERE, now_s=NOW_S) is None
        assert refusal(method, Caller(False, None, HERE), cluster_id=HERE, now_s=NOW_S) is None
        assert refusal(method, Caller(False, None, THERE), cluster_id=None, now_s=NOW_S) is None
        assert "another cluster" in str(refusal(method, Caller(False, None, THERE), cluster_id=HERE, now_s=NOW_S))


def test_a_certificate_must_say_whose_it_is_and_of_this_cluster() -> None:
    nobody = refusal(DESCRIBE, Caller(True, None, HERE, NOW_S), cluster_id=HERE, now_s=NOW_S)
    assert nobody is not None and nobody.unknown
    foreign = refusal(DESCRIBE, caller("broker", cluster=THERE), cluster_id=HERE, now_s=NOW_S)
    assert foreign is not None and not foreign.unknown and "another cluster" in str(foreign)
    assert refusal(DESCRIBE, caller("broker"), cluster_id=None, now_s=NOW_S) is not None


def test_a_certificate_that_has_ended_is_nobodys() -> None:
    """Also one of which nobody knows when it ends."""
    for ended in (
        caller("broker")._replace(certified_until_s=NOW_S - 1),
        caller("broker")._replace(certified_until_s=0),
    ):
        denied = refusal(DESCRIBE, ended, cluster_id=HERE, now_s=NOW_S)
        assert denied is not None and denied.unknown and "certificate of broker 1 has expired" in str(denied)


def test_commands_name_their_cluster() -> None:
    assert "names no cluster" in str(refusal(SUBMIT, caller("broker", says=None), cluster_id=HERE, now_s=NOW_S))
    assert "another cluster" in str(refusal(SUBMIT, caller("broker", says=THERE), cluster_id=HERE, now_s=NOW_S))
    assert refusal(DESCRIBE, caller("person", says=None), cluster_id=HERE, now_s=NOW_S) is None


def test_only_one_uri_of_ours_counts() -> None:
    good = f"ottla://{HERE}/broker/1"
    assert identity_among(["spiffe://x/y", good]) == Identity(HERE, "broker", "1")
    bad = [
        "ottla://x/broker/1",
        f"{good}/more",
        f"{good}\n",
        f"ottla://{HERE}/broker/",
        f"ottla://{HERE}/BROKER/1",
        f"ottla://{HERE}/broker/ä",
    ]
    for one in bad:
        assert identity_among([one]) is None, one
        assert identity_among([good, one]) is None, one
    assert identity_among([]) is None


@pytest.mark.parametrize("name, number", [("1", 1), ("0", 0), ("01", None), ("x", None), ("-1", None), ("1.5", None)])
def test_the_name_of_a_node_is_its_id(name: str, number: int | None) -> None:
    assert Identity(HERE, "broker", name).node_id == number
    assert Identity(HERE, "person", name).node_id is None


def test_a_nodes_host_name_tells_clusters_apart_that_differ_in_case() -> None:
    assert node_host(HERE).lower() != node_host(HERE.swapcase()).lower()
    assert all(len(label) <= 63 for label in node_host(HERE).split("."))


def test_no_service_is_both_named_as_a_whole_and_in_part() -> None:
    whole = {method.removesuffix("*") for method in METHODS if method.endswith("*")}
    assert not [method for method in METHODS if not method.endswith("*") and method.rpartition("/")[0] + "/" in whole]
