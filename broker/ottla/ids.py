"""Kafka's spelling of ids. Pure."""

import base64
import uuid

__all__ = ["uuid_text"]


def uuid_text(value: uuid.UUID) -> str:
    """22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()
