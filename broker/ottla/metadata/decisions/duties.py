"""Periodic work of the active controller. Pure: each duty has an interval, and returns the command to submit now.

    records = at_activation(image, context)       proposed when a node becomes the active controller
    for duty in PERIODIC: every duty.seconds(setting), submit duty.due(image, context, setting) unless it is None

`setting` returns the current value of a broker setting.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from ottla.metadata.decisions.balance import preferred_due, unclean_due
from ottla.metadata.decisions.commands import Command, Context
from ottla.metadata.decisions.credential_expiry import expiry_due
from ottla.metadata.decisions.features import eligible_safety_records, initial_feature_records
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import Record

__all__ = ["PERIODIC", "Duty", "at_activation"]

Setting = Callable[[str], Any]

# They are no longer good when their time is over; this is when they are forgotten.
OLD_PASSWORDS_SECONDS = 30.0


def at_activation(image: Image, context: Context) -> list[Record]:
    """A new fleet's features, and what it was formatted with; and what an older one lacks."""
    records = [] if image.features else [*initial_feature_records(), *context.bootstrap]
    image_after, _ = image.apply(records, version=image.version, epoch=image.epoch)
    return records + eligible_safety_records(image_after, context)


class Duty(msgspec.Struct, frozen=True):
    name: str
    seconds: Callable[[Setting], float]
    due: Callable[[Image, Context, Setting], Command[Any] | None]


def _preferred_leaders(image: Image, context: Context, setting: Setting) -> Command[Any] | None:
    return preferred_due(image) if setting("auto.leader.rebalance.enable") else None


def _unclean_elections(image: Image, context: Context, setting: Setting) -> Command[Any] | None:
    return unclean_due(image, context)


def _expired_credentials(image: Image, context: Context, setting: Setting) -> Command[Any] | None:
    return expiry_due(image, context)


PERIODIC = (
    Duty(
        "preferred leaders",
        seconds=lambda setting: float(setting("leader.imbalance.check.interval.seconds")),
        due=_preferred_leaders,
    ),
    Duty(
        "unclean elections",
        seconds=lambda setting: setting("unclean.leader.election.interval.ms") / 1000,
        due=_unclean_elections,
    ),
    Duty(
        "expired credentials",
        seconds=lambda setting: min(OLD_PASSWORDS_SECONDS, setting("delegation.token.expiry.check.interval.ms") / 1000),
        due=_expired_credentials,
    ),
)
