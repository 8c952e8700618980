"""Whom to ask for the active controller."""

from ottla.rpc.leader_search import LEADER_ADDRESS_KEY, LEADER_ID_KEY, LeaderSearch, named_leader


def test_each_node_is_asked_once_and_a_named_leader_next() -> None:
    search = LeaderSearch(["a", "b", "c"])
    asked = []
    for node in search:
        asked.append(node)
        search.ask_first("c")
    assert asked == ["a", "c", "b"]


def test_the_leader_that_a_refusal_names() -> None:
    metadata = (("other", "x"), (LEADER_ID_KEY, "2"), (LEADER_ADDRESS_KEY, "host:9093"))
    assert named_leader(metadata, LEADER_ID_KEY) == "2"
    assert named_leader(metadata, LEADER_ADDRESS_KEY) == "host:9093"
    assert named_leader(None, LEADER_ID_KEY) == named_leader((), LEADER_ID_KEY) == ""
