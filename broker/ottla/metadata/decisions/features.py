"""Decisions about finalized features, and those of a new fleet. Pure."""

from collections.abc import Mapping

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import Context, Decision, UpdateFeatures, UpgradeType
from ottla.metadata.decisions.topic_rules import ELIGIBLE_LEADER_REPLICAS, MIN_INSYNC_REPLICAS, elr_enabled
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import Record, config_record, feature_record
from ottla.metadata.model.state import ResourceType

__all__ = [
    "METADATA_VERSION",
    "SECURITY_VERSION",
    "SUPPORTED_FEATURES",
    "eligible_safety_records",
    "initial_feature_records",
    "security_records",
    "update",
]

METADATA_VERSION = "metadata.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
SECURITY_VERSION = "ottla.security.version"
# Kafka 4.1's levels: 3.3-IV3 (7) to 4.1-IV1 (27).
SUPPORTED_FEATURES: Mapping[str, tuple[int, int]] = {
    METADATA_VERSION: (7, 27),
    ELIGIBLE_LEADER_REPLICAS: (0, 1),
    GROUP_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
    SECURITY_VERSION: (0, 1),  # raised by the first credential or rule: see `security_records`
    SHARE_VERSION: (0, 1),  # a preview in Kafka 4.1: off until `kafka-features upgrade --feature share.version=1`
}
_INITIAL_LEVELS = {METADATA_VERSION: 27, ELIGIBLE_LEADER_REPLICAS: 1, GROUP_VERSION: 1, TRANSACTION_VERSION: 2}
# Levels of metadata.version that changed the records: Kafka refuses to go below one.
_LEVELS_WITH_NEW_RECORDS = frozenset({7, 8, 11, 13, 14, 15, 17, 23})
_NEEDS_METADATA_VERSION = {(GROUP_VERSION, 1): 22, (ELIGIBLE_LEADER_REPLICAS, 1): 23}


def initial_feature_records() -> list[Record]:
    return [feature_record(name=name, level=level) for name, level in _INITIAL_LEVELS.items()]


def eligible_safety_records(image: Image, context: Context) -> list[Record]:
    """With ELR all brokers must use the same min.insync.replicas, so it is written to the metadata."""
    if not elr_enabled(image):
        return []
    records = []
    if MIN_INSYNC_REPLICAS not in image.config(ResourceType.BROKER, ""):
        records.append(_broker_setting("", str(context.min_insync_replicas)))
    records += [
        _broker_setting(name, None)
        for (kind, name), settings in image.configs.items()
        if kind == ResourceType.BROKER and name and MIN_INSYNC_REPLICAS in settings
    ]
    return records


def _broker_setting(name: str, value: str | None) -> Record:
    return config_record(resource_type=ResourceType.BROKER, resource_name=name, key=MIN_INSYNC_REPLICAS, value=value)


def security_records(image: Image, context: Context) -> list[Record]:
    """To go before the first credential or rule: nodes that cannot read those would stop, and are refused from then on.

    KafkaError(UNSUPPORTED_VERSION) while such a broker is registered.
    """
    if image.features.get(SECURITY_VERSION, 0):
        return []
    if reason := _reason_unsupported(image, SECURITY_VERSION, 1, context):
        message = f"Credentials and rules need {SECURITY_VERSION} 1. {reason} Upgrade it first."
        raise KafkaError(Code.unsupported_version, message)
    return [feature_record(name=SECURITY_VERSION, level=1)]


def update(image: Image, command: UpdateFeatures, context: Context) -> Decision[list[str]]:
    proposed = {**image.features, **{name: level for name, level, _ in command.updates}}
    for name, level, upgrade_type in command.updates:
        if reason := _reason_refused(image, name, level, upgrade_type, proposed, context):
            raise KafkaError(
                Code.invalid_update_version,
                f"The update failed for all features since the following feature had an error: {reason}",
            )
    names = [name for name, _, _ in command.updates]
    records = [feature_record(name=name, level=level) for name, level, _ in command.updates]
    image_after, _ = image.apply(records, version=image.version, epoch=image.epoch)
    records += eligible_safety_records(image_after, context)
    return Decision(names, () if command.validate_only else records)


def _reason_refused(
    image: Image, name: str, level: int, upgrade_type: int, proposed: Mapping[str, int], context: Context
) -> str | None:
    reason = (
        _reason_unsupported(image, name, level, context)
        or _reason_direction(level, image.features.get(name, 0), upgrade_type)
        or _reason_dependency(name, level, proposed)
    )
    if reason:
        return f"Invalid update version {level} for feature {name}. {reason}"
    if name == SECURITY_VERSION and level < image.features.get(name, 0):
        return f"Invalid update version {level} for feature {name}. The metadata log may hold credentials and rules."
    if name == METADATA_VERSION and (reason := _reason_lossy(level, image.features.get(name, 0), upgrade_type)):
        return f"Invalid metadata.version {level}. {reason}"
    return None


def _reason_unsupported(image: Image, name: str, level: int, context: Context) -> str | None:
    if level < 0:
        return "A feature version cannot be less than 0."
    parties = {f"Local controller {context.node_id}": context.supported_features}
    parties |= {f"Broker {broker.id}": broker.features for broker in image.brokers.values()}
    for who, features in parties.items():
        low, high = features.get(name, (0, 0))
        if low <= level <= high:
            continue
        if high == 0:
            return f"{who} does not support this feature."
        return f"{who} only supports versions {low if low == high else f'{low}-{high}'}"
    return None


def _reason_direction(level: int, current: int, upgrade_type: int) -> str | None:
    if upgrade_type not in (UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if level < current and upgrade_type == UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if level > current and upgrade_type != UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    return None


def _reason_dependency(name: str, level: int, proposed: Mapping[str, int]) -> str | None:
    needed = _NEEDS_METADATA_VERSION.get((name, level), 0)
    if proposed.get(METADATA_VERSION, 0) >= needed:
        return None
    return f"{name} could not be set to {level} because it depends on {METADATA_VERSION} level {needed}"


def _reason_lossy(level: int, current: int, upgrade_type: int) -> str | None:
    if not _LEVELS_WITH_NEW_RECORDS.intersection(range(level + 1, current + 1)):
        return None
    if upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
        return "Unsafe metadata downgrade is not supported in this version."
    return "Refusing to perform the requested downgrade because it might delete metadata information."
