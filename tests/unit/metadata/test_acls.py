"""ACLs: what the controller accepts, keeps and removes, and what filters mean."""

import itertools

import msgspec
import pytest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions import acls
from ottla.metadata.decisions.acls import fits, matching
from ottla.metadata.decisions.commands import AclFilter, CreateAcls, DeleteAcls, Limits
from ottla.metadata.decisions.features import SUPPORTED_FEATURES
from ottla.metadata.model.acls import AclBinding, PatternType, Permission
from ottla.metadata.model.changes import compare
from ottla.metadata.model.image import Image
from ottla.rpc.packing import pack_command, unpack_command
from support.decisions import Fleet

TOPIC, READ, WRITE = 2, 3, 4
ORDERS = AclBinding(TOPIC, PatternType.LITERAL, "orders", "User:ann", "*", READ, Permission.ALLOW)
PREFIX = AclBinding(TOPIC, PatternType.PREFIXED, "ord", "User:ann", "*", READ, Permission.ALLOW)
ALL = AclBinding(TOPIC, PatternType.LITERAL, "*", "User:bob", "10.0.0.1", WRITE, Permission.DENY)
EVERYTHING = AclFilter(1, PatternType.ANY, None, None, None, 1, 1)


def create(fleet: Fleet, *bindings: AclBinding) -> list[Code]:
    return [outcome.code for outcome in fleet.ask(CreateAcls(bindings))]


def exactly(binding: AclBinding) -> AclFilter:
    return AclFilter(
        binding.resource_type,
        binding.pattern_type,
        binding.resource_name,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission,
    )


def test_acls_are_made_once_and_removed_by_filters() -> None:
    fleet = Fleet()
    assert create(fleet, ORDERS, ORDERS, PREFIX, ALL) == [Code.none] * 4
    version = fleet.image.version
    assert create(fleet, ORDERS) == [Code.none]
    assert fleet.image.version == version
    assert set(fleet.image.acls.values()) == {ORDERS, PREFIX, ALL}
    first, second = fleet.ask(DeleteAcls([exactly(ORDERS), msgspec.structs.replace(EVERYTHING, principal="User:ann")]))
    assert (first.value, set(second.value)) == ([ORDERS], {ORDERS, PREFIX})
    assert list(fleet.image.acls.values()) == [ALL]


def test_a_snapshot_has_them_all() -> None:
    fleet = Fleet()
    create(fleet, ORDERS, PREFIX, ALL)
    again = Image.from_snapshot(fleet.image.to_snapshot())
    assert again.acls == fleet.image.acls
    assert not compare(fleet.image, again)


def test_changes_name_what_came_and_went() -> None:
    fleet = Fleet()
    create(fleet, ORDERS)
    before = fleet.image
    create(fleet, PREFIX)
    fleet.ask(DeleteAcls([exactly(ORDERS)]))
    changes = compare(before, fleet.image)
    assert list(changes.acls_added.values()) == [PREFIX]
    assert list(changes.acls_removed.values()) == [ORDERS]


def test_within_one_batch_the_last_word_counts() -> None:
    fleet = Fleet()
    create(fleet, ORDERS)
    remove, add = acls.remove_acl_record(ORDERS.id), acls.acl_record(ORDERS.id, ORDERS)
    _, changes = fleet.image.apply([remove, add], version=99, epoch=1)
    assert (list(changes.acls_removed), list(changes.acls_added)) == ([ORDERS.id], [ORDERS.id])
    _, changes = fleet.image.apply([remove, add, remove], version=99, epoch=1)
    assert (list(changes.acls_removed), list(changes.acls_added)) == ([ORDERS.id], [])
    other = acls.acl_record(PREFIX.id, PREFIX)
    _, changes = fleet.image.apply([other, acls.remove_acl_record(PREFIX.id)], version=99, epoch=1)
    assert not changes


@pytest.mark.parametrize(
    ("binding", "sentence"),
    [
        (msgspec.structs.replace(ORDERS, resource_type=1), "Invalid resourceType ANY"),
        (msgspec.structs.replace(ORDERS, resource_type=77), "Invalid resourceType UNKNOWN"),
        (msgspec.structs.replace(ORDERS, pattern_type=2), "Invalid patternType MATCH"),
        (msgspec.structs.replace(ORDERS, operation=1), "Invalid operation ANY"),
        (msgspec.structs.replace(ORDERS, permission=1), "Invalid permissionType ANY"),
        (msgspec.structs.replace(ORDERS, resource_name=""), "Invalid empty resource name"),
        (msgspec.structs.replace(ORDERS, host="h" * 40_000), "The host of an ACL has at most 32767 bytes"),
        (msgspec.structs.replace(ORDERS, resource_type=4), "The only valid name for the CLUSTER resource is kafka-clu"),
    ],
)
def test_what_means_nobody_or_nothing_is_refused(binding: AclBinding, sentence: str) -> None:
    good, bad = (fleet := Fleet()).ask(CreateAcls([ORDERS, binding]))
    assert (good.code, bad.code) == (Code.none, Code.invalid_request)
    assert bad.message.startswith(sentence)
    assert list(fleet.image.acls.values()) == [ORDERS]


def test_filters_that_nobody_knows_are_refused() -> None:
    strange = msgspec.structs.replace(EVERYTHING, pattern_type=9)
    other = msgspec.structs.replace(EVERYTHING, operation=99)
    outcomes = Fleet().ask(DeleteAcls([strange, other, EVERYTHING]))
    assert [each.message for each in outcomes] == ["Unknown patternFilter.", "Unknown entryFilter.", None]


def test_a_fleet_has_room_for_so_many() -> None:
    fleet = Fleet(limits=Limits(acls_in_fleet_max=2))
    create(fleet, ORDERS, PREFIX)
    with pytest.raises(KafkaError, match="room for 2 ACLs") as refused:
        create(fleet, ALL)
    assert refused.value.code is Code.policy_violation
    assert create(fleet, ORDERS) == [Code.none]


def test_many_open_filters_over_many_acls_are_refused() -> None:
    fleet = Fleet()
    create(fleet, *(msgspec.structs.replace(ORDERS, resource_name=f"t{number}") for number in range(300)))
    with pytest.raises(KafkaError, match="split the request"):
        fleet.ask(DeleteAcls([EVERYTHING] * 1000))
    assert len(fleet.ask(DeleteAcls([exactly(ORDERS)] * 1000))) == 1000


def test_nothing_is_written_while_a_broker_would_not_know_it() -> None:
    fleet = Fleet()
    old = {name: levels for name, levels in SUPPORTED_FEATURES.items() if not name.startswith("ottla.")}
    fleet.join(7, features=old)
    with pytest.raises(KafkaError, match=r"Broker 7 .*Upgrade it first") as refused:
        create(fleet, ORDERS)
    assert refused.value.code is Code.unsupported_version


def test_a_filter_with_nothing_open_finds_what_a_search_would() -> None:
    for one, other in itertools.product([ORDERS, PREFIX, ALL], repeat=2):
        found = list(matching({one.id: one}, exactly(other)))
        assert found == ([one] if fits(exactly(other), one) else [])


def test_commands_travel() -> None:
    for command in (CreateAcls([ORDERS, ALL]), DeleteAcls([EVERYTHING])):
        assert unpack_command(*pack_command(command)) == command
