"""Client quotas: what the controller accepts, and what a description finds."""

import pytest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.client_quotas import MATCH_ANY, MATCH_DEFAULT, MATCH_EXACT, QuotaFilter
from ottla.metadata.decisions.commands import AlterClientQuotas, QuotaChange
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import QuotaEntity
from ottla.rpc.packing import pack_command, unpack_command
from support.decisions import Fleet

ANN: QuotaEntity = (("user", "ann"),)
APP: QuotaEntity = (("client-id", "app"),)
BOTH: QuotaEntity = (("client-id", "app"), ("user", "ann"))


def alter(fleet: Fleet, entity: QuotaEntity, *changes: tuple[str, float | None], **more: bool) -> Code:
    (outcome,) = fleet.ask(AlterClientQuotas([QuotaChange(entity, changes)], **more))
    assert outcome.value == entity
    code: Code = outcome.code
    return code


def test_quotas_are_set_changed_and_removed() -> None:
    fleet = Fleet()
    assert alter(fleet, ANN, ("producer_byte_rate", 5.0), ("request_percentage", 12.5)) is Code.none
    assert fleet.image.client_quotas == {ANN: {"producer_byte_rate": 5.0, "request_percentage": 12.5}}
    alter(fleet, ANN, ("producer_byte_rate", 7.0), ("request_percentage", None))
    assert fleet.image.client_quotas == {ANN: {"producer_byte_rate": 7.0}}
    alter(fleet, ANN, ("producer_byte_rate", None))
    assert fleet.image.client_quotas == {}


def test_the_order_of_the_types_does_not_matter() -> None:
    fleet = Fleet()
    alter(fleet, (("user", "ann"), ("client-id", "app")), ("producer_byte_rate", 5.0))
    assert fleet.image.client_quotas == {BOTH: {"producer_byte_rate": 5.0}}


def test_nothing_is_written_for_nothing() -> None:
    fleet = Fleet()
    alter(fleet, ANN, ("producer_byte_rate", 5.0))
    version = fleet.image.version
    alter(fleet, ANN, ("producer_byte_rate", 5.0), ("consumer_byte_rate", None))
    alter(fleet, APP, ("producer_byte_rate", 5.0), validate_only=True)
    assert fleet.image.version == version


def test_they_survive_a_snapshot() -> None:
    fleet = Fleet()
    alter(fleet, (("user", None),), ("producer_byte_rate", 5.0))
    alter(fleet, BOTH, ("request_percentage", 0.5))
    again = Image.from_snapshot(fleet.image.to_snapshot())
    assert again.client_quotas == fleet.image.client_quotas


def test_they_travel_between_nodes() -> None:
    command = AlterClientQuotas([QuotaChange((("user", None),), [("producer_byte_rate", None)])])
    assert unpack_command(*pack_command(command)) == AlterClientQuotas(
        [QuotaChange((("user", None),), [("producer_byte_rate", None)])]
    )


@pytest.mark.parametrize(
    ("entity", "change"),
    [
        ((), ("producer_byte_rate", 1.0)),
        ((("group", "g"),), ("producer_byte_rate", 1.0)),
        ((("user", ""),), ("producer_byte_rate", 1.0)),
        ((("user", "a"), ("user", "b")), ("producer_byte_rate", 1.0)),
        ((("ip", "1.2.3.4"), ("user", "a")), ("connection_creation_rate", 1.0)),
        ((("ip", "not an address"),), ("connection_creation_rate", 1.0)),
        ((("ip", "1.2.3.4"),), ("producer_byte_rate", 1.0)),
        (ANN, ("connection_creation_rate", 1.0)),
        (ANN, ("nonsense", 1.0)),
        (ANN, ("producer_byte_rate", 0.0)),
        (ANN, ("producer_byte_rate", float("nan"))),
        (ANN, ("producer_byte_rate", 1.5)),
        (ANN, ("producer_byte_rate", 1e20)),
        (ANN, ("producer_byte_rate", 1e-7)),
        (ANN, ("consumer_byte_rate", 5e-324)),
        ((("ip", None),), ("connection_creation_rate", 1e-320)),
    ],
)
def test_bad_ones_are_refused(entity: QuotaEntity, change: tuple[str, float]) -> None:
    fleet = Fleet()
    assert alter(fleet, entity, change) is Code.invalid_request
    assert fleet.image.client_quotas == {}


def test_a_key_or_an_entity_twice_is_refused() -> None:
    fleet = Fleet()
    assert alter(fleet, ANN, ("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)) is Code.invalid_request
    change = QuotaChange(ANN, [("producer_byte_rate", 1.0)])
    (outcome,) = fleet.ask(AlterClientQuotas([change, change]))
    assert outcome.code is Code.invalid_request


QUOTAS: dict[QuotaEntity, dict[str, float]] = {
    ANN: {"producer_byte_rate": 1.0},
    (("user", None),): {"producer_byte_rate": 2.0},
    APP: {"producer_byte_rate": 3.0},
    BOTH: {"producer_byte_rate": 4.0},
}


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, [1, 2, 3, 4]),
        ([], True, []),
        ([("user", MATCH_ANY, None)], False, [1, 2, 4]),
        ([("user", MATCH_ANY, None)], True, [1, 2]),
        ([("user", MATCH_EXACT, "ann")], True, [1]),
        ([("user", MATCH_DEFAULT, None)], False, [2]),
        ([("user", MATCH_EXACT, "ann"), ("client-id", MATCH_ANY, None)], True, [4]),
        ([("ip", MATCH_ANY, None)], False, []),
    ],
)
def test_describing(components: list[tuple[str, int, str | None]], strict: bool, found: list[int]) -> None:
    asked = QuotaFilter(components, strict=strict)
    candidates = [each for each in asked.candidates(QUOTAS) if each in QUOTAS]
    assert [QUOTAS[each]["producer_byte_rate"] for each in candidates if asked.matches(each)] == found


def test_a_filter_that_names_an_entity_whole_looks_at_no_other() -> None:
    asked = QuotaFilter([("user", MATCH_EXACT, "ann"), ("client-id", MATCH_DEFAULT, None)], strict=True)
    assert asked.candidates(QUOTAS) == [(("client-id", None), ("user", "ann"))]


@pytest.mark.parametrize(
    "components",
    [
        [("", MATCH_ANY, None)],
        [("user", MATCH_ANY, None), ("user", MATCH_DEFAULT, None)],
        [("group", MATCH_ANY, None)],
        [("user", 7, None)],
        [("user", MATCH_EXACT, None)],
        [("user", MATCH_DEFAULT, "ann")],
    ],
)
def test_bad_filters_are_refused(components: list[tuple[str, int, str | None]]) -> None:
    with pytest.raises(KafkaError):
        QuotaFilter(components, strict=False)


def test_a_whole_number_may_be_a_little_off() -> None:
    fleet = Fleet()
    assert alter(fleet, ANN, ("producer_byte_rate", 4.9999999)) is Code.none
    assert alter(fleet, ANN, ("consumer_byte_rate", 1.0000001)) is Code.none
