"""Why something is not possible now. Pure."""

import msgspec

__all__ = ["Obstacle", "TemporaryFailure"]


class Obstacle(msgspec.Struct, frozen=True):
    """A word for programs, and a sentence with the next step for people."""

    reason: str
    message: str


class TemporaryFailure(Exception):
    """The API server or the brokers do not answer, or refuse. Expected: logged by its text and tried again. Any other
    exception is a bug."""
