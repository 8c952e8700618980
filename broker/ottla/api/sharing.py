"""Whether share groups are served here: they are off until the fleet finalizes them, as in Kafka 4.1."""

from ottla.api.call import Call
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.features import SHARE_VERSION

__all__ = ["check_shares_served"]


def check_shares_served(call: Call) -> None:
    """UNSUPPORTED_VERSION until the fleet has finalized share groups."""
    if call.node.image.features.get(SHARE_VERSION, 0) < 1:
        raise KafkaError(
            Code.unsupported_version,
            "share.version 1 is not finalized: kafka-features upgrade --feature share.version=1",
        )
