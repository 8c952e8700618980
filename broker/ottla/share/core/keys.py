"""The key of a share-partition in FindCoordinator requests. Pure."""

import base64
import binascii

__all__ = ["is_key_text"]

ID_BYTES = 16
INT_MAX = 2**31 - 1


def is_key_text(text: str) -> bool:
    """group:topic id:partition. Groups with a colon in their id are not possible, as in Kafka."""
    parts = text.split(":")
    return len(parts) == 3 and bool(parts[0].strip()) and _is_id(parts[1]) and _is_int(parts[2])


def _is_id(text: str) -> bool:
    try:
        return len(base64.b64decode(text + "==", altchars=b"-_", validate=True)) == ID_BYTES
    except (binascii.Error, ValueError):
        return False


def _is_int(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) <= INT_MAX
