"""The memory that texts take in the metadata: counted as they come and go, and limited for the fleet as a whole."""

import pytest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions import commands as ask
from ottla.metadata.decisions.commands import Limits, NewTopic, QuotaChange, SettingChange, SettingOperation, TopicRef
from ottla.metadata.decisions.controller import decide
from ottla.metadata.model.acls import AclBinding
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import client_quota_record
from ottla.metadata.model.state import QuotaEntity, ResourceType
from ottla.metadata.model.text_bytes import RECORD_BYTES
from ottla.wire.text_limits import NAME_BYTES_MAX
from support.decisions import Fleet

LIMIT = 10_000
GROUP_SETTING = "consumer.session.timeout.ms"
LONG = "n" * NAME_BYTES_MAX


def app(name: str) -> QuotaEntity:
    return (("client-id", name),)


def quota(fleet: Fleet, name: str, value: float | None = 1.0) -> Code:
    (outcome,) = fleet.ask(ask.AlterClientQuotas([QuotaChange(app(name), [("request_percentage", value)])]))
    code: Code = outcome.code
    return code


def group(fleet: Fleet, name: str, value: str | None = "50000") -> Code:
    operation = SettingOperation.SET if value is not None else SettingOperation.DELETE
    change = SettingChange(GROUP_SETTING, operation, value)
    (outcome,) = fleet.ask(ask.IncrementalAlterConfigs([((ResourceType.GROUP, name), [change])]))
    code: Code = outcome.code
    return code


def limited(bytes_max: int = LIMIT) -> Fleet:
    return Fleet(limits=Limits(text_bytes_in_fleet_max=bytes_max))


def refused(fleet: Fleet, command: ask.Command[object]) -> bool:
    before = fleet.image
    try:
        fleet.ask(command)
    except KafkaError as error:
        assert error.code is Code.policy_violation and "remove some" in str(error)
        assert fleet.image is before
        return True
    return False


def test_they_are_counted_as_they_come_and_go() -> None:
    fleet = Fleet()
    nothing = fleet.image.text_bytes
    for name in ("a", "b"):
        quota(fleet, name)
        group(fleet, name)
    quota(fleet, "a", 2.0)
    fleet.topic([0], name="t", retention_ms="1000")
    full = fleet.image.text_bytes
    assert full > nothing
    assert Image.from_snapshot(fleet.image.to_snapshot()).text_bytes == full
    for name in ("a", "b"):
        quota(fleet, name, None)
        group(fleet, name, None)
    fleet.ask(ask.DeleteTopics([TopicRef(name="t")]))
    assert fleet.image.text_bytes == nothing


def test_a_longer_name_counts_for_more() -> None:
    fleet, sizes = Fleet(), []
    for name in ("a", "a" * 11, "ä" * 11):
        before = fleet.image.text_bytes
        quota(fleet, name)
        sizes.append(fleet.image.text_bytes - before)
    assert [size - sizes[0] for size in sizes] == [0, 10, 21]


def test_beyond_the_limit_nothing_is_added_and_all_can_be_removed() -> None:
    fleet = limited()
    names = [f"{number}{LONG}"[:NAME_BYTES_MAX] for number in range(20)]
    added = 0
    for name in names:
        if refused(fleet, ask.AlterClientQuotas([QuotaChange(app(name), [("request_percentage", 1.0)])])):
            break
        added += 1
    assert 0 < added < 10
    assert fleet.image.text_bytes <= LIMIT
    change = SettingChange(GROUP_SETTING, SettingOperation.SET, "50000")
    assert refused(fleet, ask.IncrementalAlterConfigs([((ResourceType.GROUP, LONG), [change])]))
    assert refused(fleet, ask.CreateTopics([NewTopic("t", 1, 1, configs=[("a", "v" * LIMIT)])]))
    assert not refused(fleet, ask.CreateTopics([NewTopic("t", 1, 1)]))
    assert quota(fleet, names[0], 2.0) is Code.none, "in the place of another value"
    assert quota(fleet, names[0], None) is Code.none
    assert quota(fleet, names[1], 3.0) is Code.none


def test_a_log_beyond_the_limit_loads_and_can_be_emptied() -> None:
    """Written by a version without these limits."""
    fleet = limited()
    old = ["x" * 32_000, "y" * 32_000]
    fleet.apply([client_quota_record(app(name), key="request_percentage", value=1.0) for name in old])
    assert fleet.image.text_bytes > LIMIT
    assert refused(fleet, ask.AlterClientQuotas([QuotaChange(app("new"), [("request_percentage", 1.0)])]))
    for name in old:
        assert quota(fleet, name, None) is Code.none
    assert quota(fleet, "new") is Code.none


def test_no_record_adds_more_than_its_size_and_a_constant() -> None:
    fleet, name, setting = Fleet(), "ä" * 100, SettingChange(GROUP_SETTING, SettingOperation.SET, "ö" * 50)
    for command in (
        ask.AlterClientQuotas([QuotaChange((("client-id", name), ("user", name)), [("request_percentage", 1.0)])]),
        ask.IncrementalAlterConfigs([((ResourceType.GROUP, name), [setting])]),
        ask.CreateAcls([AclBinding(2, 3, name, f"User:{name}", "*", 3, 3)]),
    ):
        before = fleet.image.text_bytes
        records = decide(fleet.image, command, fleet.context()).records
        fleet.apply(records)
        assert 0 < fleet.image.text_bytes - before <= sum(record.ByteSize() + RECORD_BYTES for record in records)


@pytest.mark.parametrize("letter", ["n", "ä"])
def test_names_have_a_length(letter: str) -> None:
    fleet = Fleet()
    fits = letter * (NAME_BYTES_MAX // len(letter.encode()))
    assert quota(fleet, fits) is group(fleet, fits) is Code.none
    assert quota(fleet, fits + letter) is group(fleet, fits + letter) is Code.invalid_request
