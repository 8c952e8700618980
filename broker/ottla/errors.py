"""The two kinds of failure: KafkaError is an answer to a client, Refusal one to the person who starts a node. Pure.

Anything else that is raised is a bug.
"""

import sys
from types import ModuleType
from typing import cast

if "hypothesis" not in sys.modules:  # kio imports it wherever it is installed: half a second and 20 MB for nothing
    sys.modules["hypothesis"] = cast(ModuleType, None)
    from kio.schema.errors import ErrorCode as Code

    del sys.modules["hypothesis"]
else:
    from kio.schema.errors import ErrorCode as Code

__all__ = ["Code", "KafkaError", "Refusal"]


class KafkaError(Exception):
    """An expected failure with Kafka's own code. `message` says what happened, to what, and what to do."""

    def __init__(self, code: Code, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message


class Refusal(Exception):
    """The node will not start, or will not go on: one sentence for the person at the terminal."""
