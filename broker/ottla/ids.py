"""Kafka's spelling of ids. Pure."""

import base64
import binascii
import uuid

__all__ = ["uuid_from_text", "uuid_text"]


def uuid_text(value: uuid.UUID) -> str:
    """22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def uuid_from_text(text: str) -> uuid.UUID:
    """Kafka's 22 characters of URL-safe base64. ValueError when they are not."""
    try:
        return uuid.UUID(bytes=base64.b64decode(text + "==", altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        raise ValueError(f"{text!r} is not a base64 uuid") from None
