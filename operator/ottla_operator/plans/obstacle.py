"""Why something cannot be now. Pure."""

import msgspec

__all__ = ["Obstacle"]


class Obstacle(msgspec.Struct, frozen=True):
    """A word for programs, and a sentence with the next step for people."""

    reason: str
    message: str
