"""The authorizer beside a slow one that reads Kafka's rules word for word."""

from collections.abc import Iterable
from random import Random

import pytest
from ottla.metadata.model.acls import AclBinding, PatternType, Permission
from ottla.security.core.access import EVERYTHING, Operation, Resource
from ottla.security.core.acls import KEPT_MAX, AclAuthorizer
from ottla.security.core.principals import Principal

ANN, BOB = Principal("User", "ann"), Principal("User", "bob")
HERE, THERE = "10.0.0.1", "10.0.0.2"
ALLOW, DENY = Permission.ALLOW, Permission.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
DESCRIBED_BY = {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
CONFIGS_DESCRIBED_BY = {Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}


def acl(
    operation: Operation = Operation.READ,
    name: str = "orders",
    *,
    who: str = "User:ann",
    permission: Permission = ALLOW,
    pattern: PatternType = LITERAL,
    host: str = "*",
    resource: Resource = Resource.TOPIC,
) -> AclBinding:
    return AclBinding(resource, pattern, name, who, host, operation, permission)


def may(authorizer: AclAuthorizer, who: Principal, operation: Operation, name: str, host: str = HERE) -> bool:
    return authorizer.access_of(who, host).may(operation, Resource.TOPIC, name)


def slow(
    bindings: Iterable[AclBinding], who: Principal, host: str, operation: Operation, name: str, *, if_no_acl: bool
) -> bool:
    """StandardAuthorizer, one ACL after the other."""
    about = [
        each
        for each in bindings
        if each.resource_type == Resource.TOPIC
        and (
            name.startswith(each.resource_name) if each.pattern_type == PREFIXED else each.resource_name in (name, "*")
        )
    ]
    matching = [each for each in about if each.principal in (str(who), "User:*") and each.host in (host, "*")]
    if any(each.permission == DENY and each.operation in (operation, Operation.ALL) for each in matching):
        return False
    implied = {Operation.DESCRIBE: DESCRIBED_BY, Operation.DESCRIBE_CONFIGS: CONFIGS_DESCRIBED_BY}
    enough = {*implied.get(operation, {operation}), Operation.ALL}
    if any(each.permission == ALLOW and each.operation in enough for each in matching):
        return True
    return not about and if_no_acl


def slow_any(
    bindings: Iterable[AclBinding], who: Principal, host: str, operation: Operation, *, if_no_acl: bool
) -> bool:
    """Authorizer.authorizeByResourceType."""
    bindings = list(bindings)
    if slow(bindings, who, host, operation, "hardcode", if_no_acl=if_no_acl):
        return True
    mine = [
        each
        for each in bindings
        if each.resource_type == Resource.TOPIC
        and each.principal in (str(who), "User:*")
        and each.host in (host, "*")
        and each.operation in (operation, Operation.ALL)
    ]
    denied = {(each.pattern_type, each.resource_name) for each in mine if each.permission == DENY}
    allowed = {(each.pattern_type, each.resource_name) for each in mine if each.permission == ALLOW}
    if (LITERAL, "*") in denied:
        return False
    if (LITERAL, "*") in allowed:
        return True
    for pattern, name in allowed:
        if pattern == LITERAL and (LITERAL, name) in denied:
            continue
        if not any((PREFIXED, name[:size]) in denied for size in range(1, len(name) + 1)):
            return True
    return False


NAMES = ["a", "ab", "abc", "abd", "b", "hard", "*"]
OPERATIONS = [
    Operation.ALL,
    Operation.READ,
    Operation.WRITE,
    Operation.DESCRIBE,
    Operation.ALTER_CONFIGS,
    Operation.DESCRIBE_CONFIGS,
]


def random_acl(random: Random) -> AclBinding:
    return acl(
        random.choice(OPERATIONS),
        random.choice(NAMES),
        who=random.choice(["User:ann", "User:ann", "User:*", "User:bob"]),
        permission=random.choice([ALLOW, ALLOW, DENY]),
        pattern=random.choice([LITERAL, PREFIXED]),
        host=random.choice(["*", "*", HERE, THERE]),
        resource=random.choice([Resource.TOPIC, Resource.TOPIC, Resource.GROUP]),
    )


@pytest.mark.parametrize("if_no_acl", [False, True])
@pytest.mark.parametrize("seed", range(150))
def test_it_decides_as_kafka_does_while_acls_come_and_go(seed: int, if_no_acl: bool) -> None:
    random = Random(seed)
    bindings = {random_acl(random) for _ in range(random.randrange(8))}
    authorizer = AclAuthorizer(bindings, allow_if_no_acl=if_no_acl)
    accesses = {(who, host): authorizer.access_of(who, host) for who in (ANN, BOB) for host in (HERE, THERE)}
    for _ in range(6):
        for (who, host), access in accesses.items():
            for operation in OPERATIONS[1:]:
                for name in NAMES:
                    expected = slow(bindings, who, host, operation, name, if_no_acl=if_no_acl)
                    assert access.may(operation, Resource.TOPIC, name) == expected, (bindings, who, operation, name)
                expected = slow_any(bindings, who, host, operation, if_no_acl=if_no_acl)
                assert access.may_any(operation, Resource.TOPIC) == expected, (bindings, who, host, operation)
        added = {random_acl(random) for _ in range(2)} - bindings
        removed = set(random.sample(sorted(bindings, key=repr), k=min(2, len(bindings))))
        authorizer.change(removed=removed, added=added)
        bindings = bindings - removed | added


@pytest.mark.parametrize("seed", range(20))
def test_prefixes_within_prefixes_are_all_found(seed: int) -> None:
    random = Random(seed)

    def name() -> str:
        return "".join(random.choice("ab") for _ in range(random.randrange(1, 8)))

    bindings = {acl(name=name(), pattern=PREFIXED, permission=random.choice([ALLOW, DENY])) for _ in range(25)}
    authorizer = AclAuthorizer(bindings)
    gone = set(random.sample(sorted(bindings, key=repr), k=10))
    authorizer.change(removed=gone, added=())
    for one in {name() for _ in range(200)}:
        expected = slow(bindings - gone, ANN, HERE, Operation.READ, one, if_no_acl=False)
        assert may(authorizer, ANN, Operation.READ, one) == expected, one


def test_a_new_name_costs_little_beside_many_prefixes() -> None:
    """A client may name ten thousand. Work is counted, since time depends on the machine."""
    random, looked_at = Random(1), []

    class Watched(str):
        def __getitem__(self, part: slice) -> str:  # type: ignore[override]
            looked_at.append(part)
            return str(self)[part]

    def name() -> str:
        return "".join(random.choice("abcdefgh") for _ in range(random.randrange(3, 60)))

    authorizer = AclAuthorizer(acl(name=name(), pattern=PREFIXED) for _ in range(7_000))
    access = authorizer.access_of(ANN, HERE)
    for _ in range(100):
        access.may(Operation.READ, Resource.TOPIC, Watched(name()))
    assert len(looked_at) < 100 * 12


def test_denial_comes_first_and_implies_nothing() -> None:
    authorizer = AclAuthorizer([acl(), acl(permission=DENY, who="User:*", host=THERE)])
    assert may(authorizer, ANN, Operation.READ, "orders")
    assert not may(authorizer, ANN, Operation.READ, "orders", THERE)
    assert may(authorizer, ANN, Operation.DESCRIBE, "orders", THERE)
    assert not may(authorizer, BOB, Operation.READ, "orders")


def test_super_users_are_asked_nothing() -> None:
    authorizer = AclAuthorizer([acl(permission=DENY)], super_users={"User:ann"})
    assert authorizer.access_of(ANN, HERE) is EVERYTHING
    assert authorizer.access_of(BOB, HERE) is not EVERYTHING


def test_one_address_has_one_rule_however_it_is_written() -> None:
    authorizer = AclAuthorizer([acl(host="0:0:0:0:0:0:0:1"), acl(name="paid", host="10.0.0.1")])
    assert may(authorizer, ANN, Operation.READ, "orders", "::1")
    assert may(authorizer, ANN, Operation.READ, "paid", "::ffff:10.0.0.1")
    assert not may(authorizer, ANN, Operation.READ, "orders", "::2")


def test_clients_of_one_user_share_what_was_decided() -> None:
    authorizer = AclAuthorizer([acl(), acl(name="x", host=HERE)])
    asked: list[str] = []
    decide = authorizer.decide

    def counting(who: Principal, host: str, operation: Operation, resource: Resource, name: str) -> bool:
        asked.append(host)
        return decide(who, host, operation, resource, name)

    authorizer.decide = counting  # type: ignore[method-assign]
    accesses = [authorizer.access_of(ANN, host) for host in (HERE, "10.1.0.1", "10.1.0.2", "10.1.0.1")]
    assert all(access.may(Operation.READ, Resource.TOPIC, "orders") for access in accesses for _ in range(3))
    assert asked == [HERE, "10.1.0.1"]


def test_what_is_kept_is_bounded() -> None:
    authorizer = AclAuthorizer([acl(pattern=PREFIXED, name="o")])
    access = authorizer.access_of(ANN, HERE)
    version = authorizer.version
    for number in range(KEPT_MAX + 10):
        access.may(Operation.READ, Resource.TOPIC, f"orders-{number}")
    assert authorizer.version == version + 1
    kept = authorizer.decisions_of(ANN, HERE).by_kind
    assert sum(map(len, kept)) <= 10
    access.may(Operation.READ, Resource.TOPIC, "o" * 1000)
    assert "o" * 1000 not in {name for names in kept for name in names}


def test_changes_forget_decisions_at_once() -> None:
    authorizer = AclAuthorizer([acl()])
    access = authorizer.access_of(ANN, HERE)
    assert access.may(Operation.READ, Resource.TOPIC, "orders")
    authorizer.change(removed=[acl()], added=[])
    assert not access.may(Operation.READ, Resource.TOPIC, "orders")
    authorizer.change(removed=[], added=[acl(name="ord", pattern=PREFIXED)])
    assert access.may(Operation.READ, Resource.TOPIC, "orders")
