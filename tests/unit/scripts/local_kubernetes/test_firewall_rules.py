"""Taking the cluster down leaves the rules of others."""

from scripts.local_kubernetes.teardown import rules_of_kubernetes, without_kubernetes

RULES = """\
*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:DOCKER - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A PREROUTING -j DOCKER
COMMIT
"""


def test_only_rules_and_chains_of_kubernetes_go() -> None:
    assert without_kubernetes(RULES).splitlines() == [
        "*nat",
        ":PREROUTING ACCEPT [0:0]",
        ":DOCKER - [0:0]",
        "-A PREROUTING -j DOCKER",
        "COMMIT",
    ]


def test_rules_of_a_kubernetes_that_is_here_already_are_seen() -> None:
    assert [line.split()[-1] for line in rules_of_kubernetes(RULES)] == ["KUBE-SERVICES", "CNI-HOSTPORT-DNAT"]
    assert rules_of_kubernetes(without_kubernetes(RULES)) == []
