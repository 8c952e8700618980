"""Why something cannot be now. Pure."""

import msgspec

__all__ = ["Obstacle", "Trouble"]


class Obstacle(msgspec.Struct, frozen=True):
    """A word for programs, and a sentence with the next step for people."""

    reason: str
    message: str


class Trouble(Exception):
    """Somebody else does not answer or refuses: expected, tried again, and told by its text. Anything else is a bug."""
