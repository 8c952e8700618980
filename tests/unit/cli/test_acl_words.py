"""ACLs in words, and the reasons of a verdict."""

import pytest
from ottla.cli.acl.verdict import AuthorizerFacts, verdict
from ottla.cli.acl.words import (
    check_host,
    check_possible,
    operations_of,
    pattern_of,
    principal_of,
    sentence,
    shown_pattern,
)
from ottla.errors import Refusal
from ottla.metadata.model.acls import AclBinding, PatternType, Permission
from ottla.security.core.access import Operation, Resource

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("topic:orders", (Resource.TOPIC, LITERAL, "orders")),
        ("Topic:ord*", (Resource.TOPIC, PREFIXED, "ord")),
        ("group:*", (Resource.GROUP, LITERAL, "*")),
        ("cluster", (Resource.CLUSTER, LITERAL, "kafka-cluster")),
        ("transactional-id:a:b", (Resource.TRANSACTIONAL_ID, LITERAL, "a:b")),
    ],
)
def test_resources_are_read_and_shown_alike(text: str, pattern: tuple[Resource, PatternType, str]) -> None:
    assert pattern_of(text) == pattern
    binding = AclBinding(*pattern, "User:a", "*", Operation.READ, Permission.ALLOW)
    assert pattern_of(shown_pattern(binding)) == pattern


@pytest.mark.parametrize("text", ["orders", "topic:", "cluster:mine", "user:a", ""])
def test_what_is_no_resource_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="expected topic:NAME"):
        pattern_of(text)


def test_principals_and_operations() -> None:
    assert [principal_of(text) for text in ("ann", "*", "User:ann")] == ["User:ann", "User:*", "User:ann"]
    assert operations_of("read,describe-configs,READ") == [Operation.READ, Operation.DESCRIBE_CONFIGS]
    with pytest.raises(Refusal, match="create_tokens: no such operation"):
        operations_of("create-tokens")


def test_reasons() -> None:
    deny = AclBinding(Resource.TOPIC, PREFIXED, "a", "User:*", "10.0.0.1", Operation.READ, Permission.DENY)
    assert sentence(deny) == "User:* must not READ topic:a* from 10.0.0.1"

    def ask(who: str, host: str, *bindings: AclBinding, **facts: object) -> tuple[bool, str]:
        found = verdict(
            who,
            Operation.READ,
            pattern_of("topic:ab"),
            host=host,
            bindings=bindings,
            rules=AuthorizerFacts(**facts),  # type: ignore[arg-type]
        )
        return found.allowed, found.by

    assert ask("User:x", "10.0.0.1", deny, allow_if_no_acl=True) == (False, "acl")
    assert ask("User:x", "10.0.0.2", deny, allow_if_no_acl=True) == (False, "default")
    assert ask("User:x", "10.0.0.1", allow_if_no_acl=True) == (True, "allow.everyone.if.no.acl.found")
    assert ask("User:x", "10.0.0.1", deny, super_users=frozenset({"User:x"})) == (True, "super.users")
    assert ask("User:x", "10.0.0.1") == (False, "default")
    denied = verdict(
        "User:x",
        Operation.READ,
        pattern_of("topic:ab"),
        host="10.0.0.2",
        bindings=[deny],
        rules=AuthorizerFacts(),
    )
    assert denied.sentence().endswith("no ACL allows READ to User:x; 1 ACL is about topic:ab")
    assert denied.remedy == "ottla acls add x read topic:ab"


def test_what_the_brokers_do_not_tell_leaves_it_undecided() -> None:
    def ask(*bindings: AclBinding, **facts: object) -> bool | None:
        what, rules = pattern_of("topic:ab"), AuthorizerFacts(**facts)  # type: ignore[arg-type]
        return verdict("User:x", Operation.READ, what, host="::1", bindings=bindings, rules=rules).allowed

    allow = AclBinding(Resource.TOPIC, LITERAL, "ab", "User:x", "*", Operation.READ, Permission.ALLOW)
    other = AclBinding(Resource.TOPIC, LITERAL, "ab", "User:y", "*", Operation.READ, Permission.ALLOW)
    assert ask(super_users=None) is None
    assert ask(allow, super_users=None) is True
    assert ask(allow_if_no_acl=None) is None
    assert ask(other, allow_if_no_acl=None) is False


def test_what_no_request_would_ask_for_is_refused() -> None:
    check_possible(Operation.ALL, Resource.CLUSTER)
    check_possible(Operation.ALTER, Resource.CLUSTER)
    with pytest.raises(Refusal, match="read: not of a cluster; possible are all, create, alter"):
        check_possible(Operation.READ, Resource.CLUSTER)
    for host in ("*", "10.0.0.1", "::1"):
        check_host(host)
    with pytest.raises(Refusal, match="--host nothost: an address is expected"):
        check_host("nothost")
