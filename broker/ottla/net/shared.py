"""What the connections of a node have in common."""

from dataclasses import dataclass, field

from ottla.api.call import Services
from ottla.net.admission import Admission
from ottla.net.large_requests import LargeRequests
from ottla.net.memory import AnswerMemory, RequestMemory
from ottla.net.turns import Turns
from ottla.wire.frames import ReceiveBuffers

__all__ = ["Shared"]

API_KEYS_MAX = 128


@dataclass(frozen=True, slots=True)
class Shared:
    services: Services
    admission: Admission
    requests: RequestMemory
    answers: AnswerMemory
    large_requests: LargeRequests
    buffers: ReceiveBuffers = field(default_factory=ReceiveBuffers)
    turns: Turns = field(default_factory=Turns)
    handled: list[int] = field(default_factory=lambda: [0] * API_KEYS_MAX)
    """Requests that were begun, by the keys of their APIs."""
