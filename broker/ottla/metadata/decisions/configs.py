"""Decisions about settings of topics, brokers, client metrics and groups. Pure.

All changes of a resource are made, or none.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import (
    AlterConfigs,
    Context,
    Decision,
    IncrementalAlterConfigs,
    Outcome,
    SettingChange,
    SettingOperation,
)
from ottla.metadata.decisions.partitions import recompute_elr
from ottla.metadata.decisions.topic_rules import MIN_INSYNC_REPLICAS, elr_enabled
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import Record, config_record
from ottla.metadata.model.state import ConfigResource, ResourceType
from ottla.metadata.model.topic_names import check_topic_name
from ottla.wire.text_limits import NAME_BYTES_MAX, is_too_long

__all__ = ["change", "check_settings", "replace"]

Settings = Mapping[str, str | None]
_Wanted = TypeVar("_Wanted")


VALUE_CHARACTERS_MAX = 2**15 - 1  # Kafka's limit; every node has all settings in memory and in its metadata log


def check_settings(resource: ConfigResource, settings: Settings, context: Context) -> None:
    for key, value in settings.items():
        if value is None:
            continue
        _check_size(value)
        if (problem := context.check_config(resource, key, value)) is not None:
            raise KafkaError(Code.invalid_config, problem)


def _check_size(value: str) -> None:
    if len(value) > VALUE_CHARACTERS_MAX:
        raise KafkaError(
            Code.invalid_config,
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{VALUE_CHARACTERS_MAX} bytes.",
        )


def replace(image: Image, command: AlterConfigs, context: Context) -> Decision[list[Outcome[ConfigResource]]]:
    def new_settings(resource: ConfigResource, wanted: Settings) -> Settings:
        _refuse_nulls(key for key, value in wanted.items() if value is None)
        gone = dict.fromkeys(image.config(*resource).keys() - wanted.keys())
        return {**wanted, **gone}

    return _per_resource(image, command.resources, new_settings, context, validate_only=command.validate_only)


def change(image: Image, command: IncrementalAlterConfigs, context: Context) -> Decision[list[Outcome[ConfigResource]]]:
    def new_settings(resource: ConfigResource, changes: Sequence[SettingChange]) -> Settings:
        if len({each.key for each in changes}) < len(changes):
            raise KafkaError(Code.invalid_request, "Error due to duplicate config keys")
        _refuse_nulls(each.key for each in changes if each.value is None and each.operation != SettingOperation.DELETE)
        return {each.key: _changed(image.config(*resource), resource, each, context) for each in changes}

    return _per_resource(image, command.resources, new_settings, context, validate_only=command.validate_only)


def _per_resource(
    image: Image,
    resources: Sequence[tuple[ConfigResource, _Wanted]],
    new_settings: Callable[[ConfigResource, _Wanted], Settings],
    context: Context,
    *,
    validate_only: bool,
) -> Decision[list[Outcome[ConfigResource]]]:
    occurrences = Counter(resource for resource, _ in resources)
    records: list[Record] = []
    outcomes: dict[ConfigResource, Outcome[ConfigResource]] = {}
    for resource, wanted in resources:
        try:
            if occurrences[resource] > 1:
                raise KafkaError(Code.invalid_request, "Each resource must appear at most once.")
            _check_resource_name(image, resource)
            settings = new_settings(resource, wanted)
            check_settings(resource, settings, context)
            _check_min_insync_replicas(image, resource, settings)
            _check_resource_exists(image, resource, context)
        except KafkaError as error:
            outcomes[resource] = Outcome(resource, error.code, error.message)
        else:
            outcomes[resource] = Outcome(resource)
            records += _config_records(image, resource, settings)
    records += _elr_records(image, records, context)
    return Decision(list(outcomes.values()), () if validate_only else records)


def _config_records(image: Image, resource: ConfigResource, settings: Settings) -> list[Record]:
    """An unchanged broker setting is written too: brokers then reload key stores (KAFKA-14136)."""
    present, always = image.config(*resource), resource[0] == ResourceType.BROKER
    return [
        config_record(resource_type=resource[0], resource_name=resource[1], key=key, value=value)
        for key, value in settings.items()
        if always or present.get(key) != value
    ]


def _elr_records(image: Image, records: Sequence[Record], context: Context) -> list[Record]:
    """ELR members (KIP-966) may lack records that are committed under a lower min.insync.replicas: recompute the
    ELR."""
    if all(record.config.key != MIN_INSYNC_REPLICAS for record in records):
        return []
    image_after, _ = image.apply(records, version=image.version, epoch=image.epoch)
    return recompute_elr(image_after, context)


def _check_min_insync_replicas(image: Image, resource: ConfigResource, settings: Settings) -> None:
    """While ELR is enabled, controller and leaders must agree on min.insync.replicas, so brokers have none of their
    own."""
    resource_type, name = resource
    if resource_type != ResourceType.BROKER or MIN_INSYNC_REPLICAS not in settings or not elr_enabled(image):
        return
    if name:
        raise KafkaError(
            Code.invalid_config, f"Broker-level {MIN_INSYNC_REPLICAS} cannot be altered while ELR is enabled."
        )
    if settings[MIN_INSYNC_REPLICAS] is None:
        raise KafkaError(
            Code.invalid_config, f"Cluster-level {MIN_INSYNC_REPLICAS} cannot be removed while ELR is enabled."
        )


def _refuse_nulls(keys: Iterable[str]) -> None:
    if names := list(keys):
        raise KafkaError(Code.invalid_request, f"Null value not supported for : {','.join(names)}")


def _changed(
    present: Mapping[str, str], resource: ConfigResource, change: SettingChange, context: Context
) -> str | None:
    if change.operation in (SettingOperation.SET, SettingOperation.DELETE):
        return change.value if change.operation == SettingOperation.SET else None
    if change.operation not in (SettingOperation.APPEND, SettingOperation.SUBTRACT):
        raise KafkaError(Code.invalid_request, f"Unknown operation {change.operation} for {change.key}.")
    word = "APPEND" if change.operation == SettingOperation.APPEND else "SUBTRACT"
    if not context.is_list_setting(resource[0], change.key):
        raise KafkaError(Code.invalid_config, f"Can't {word} to key {change.key} because its type is not LIST.")
    _check_size(change.value or "")  # before it is split, because this runs on the control loop
    current = present.get(change.key, context.default_setting(resource[0], change.key))
    items = [item for item in (current or "").split(",") if item]
    named = dict.fromkeys((change.value or "").split(","))
    if word == "APPEND":
        known = set(items)
        return ",".join(items + [item for item in named if item not in known])
    return ",".join(item for item in items if item not in named)


def _check_resource_name(image: Image, resource: ConfigResource) -> None:
    resource_type, name = resource
    if resource_type == ResourceType.TOPIC:
        if not name:
            raise KafkaError(Code.invalid_request, "Default topic resources are not allowed.")
        check_topic_name(name)
    elif resource_type == ResourceType.BROKER:
        _check_broker_name(name)
    elif resource_type == ResourceType.GROUP:
        if not name:
            raise KafkaError(Code.invalid_request, "Default group resources are not allowed.")
        if is_too_long(name, bytes_max=NAME_BYTES_MAX) and resource not in image.configs:
            raise KafkaError(
                Code.invalid_request, f"A group with settings has a name of {NAME_BYTES_MAX} bytes at most."
            )
    elif resource_type != ResourceType.CLIENT_METRICS:
        raise KafkaError(Code.invalid_request, f"Unknown resource type {resource_type}")


def _check_broker_name(name: str) -> None:
    """An empty name is the default of the whole fleet."""
    if not name:
        return
    try:
        broker = int(name)
    except ValueError:
        raise KafkaError(Code.invalid_request, "Unable to parse broker name as a base 10 number.") from None
    if broker < 0:
        raise KafkaError(Code.invalid_request, "Invalid negative broker ID.")


def _check_resource_exists(image: Image, resource: ConfigResource, context: Context) -> None:
    resource_type, name = resource
    if resource_type == ResourceType.TOPIC and name not in image.topics:
        raise KafkaError(Code.unknown_topic_or_partition, f"The topic '{name}' does not exist.")
    is_node = resource_type == ResourceType.BROKER and name
    if is_node and int(name) not in image.brokers and int(name) != context.node_id:
        raise KafkaError(Code.broker_id_not_registered, f"No node with id {int(name)} found.")
