"""The limit of all texts that clients leave in the metadata. Pure.

A log that was written before there was a limit may be beyond it: then nothing may be added until enough was removed.
"""

from collections.abc import Sequence

from ottla.errors import Code, KafkaError
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import Record
from ottla.metadata.model.text_bytes import RECORD_BYTES

__all__ = ["check_texts"]

KINDS = {"config", "client_quota", "acl", "scram_credential", "remove_scram_credential", "delegation_token"}


def check_texts(image: Image, records: Sequence[Record], bytes_max: int) -> None:
    """KafkaError when these records would go beyond the limit."""
    texts = [record for record in records if record.WhichOneof("kind") in KINDS]
    if image.text_bytes + sum(record.ByteSize() + RECORD_BYTES for record in texts) <= bytes_max:
        return  # without a copy of the tables, unless it is close
    if not texts:
        return
    after, _ = image.apply(texts, version=image.version, epoch=image.epoch)
    if after.text_bytes > max(bytes_max, image.text_bytes):
        raise KafkaError(
            Code.policy_violation,
            f"Settings, quotas, ACLs and credentials of the fleet would take {after.text_bytes} bytes, more than "
            f"{bytes_max}; use shorter names or remove some first",
        )
