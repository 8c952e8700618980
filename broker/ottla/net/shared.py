"""What the connections of a node have in common."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.api.allowances import Allowances
from ottla.api.binding import Handle
from ottla.api.pacing import LongWork
from ottla.net.admission import Admission
from ottla.net.large_requests import LargeRequests
from ottla.net.memory import AnswerMemory, RequestMemory
from ottla.net.strangers import StrangerMemory
from ottla.net.turns import Turns
from ottla.ports import Clock
from ottla.security.core.access import Authorizer
from ottla.security.core.audit import AuditTrail, NoTrail
from ottla.system import Threads
from ottla.wire.frames import ReceiveBuffers

__all__ = ["Shared"]

API_KEYS_MAX = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    handlers: Mapping[int, Handle]
    """By the keys of their APIs."""
    long_work: LongWork
    clock: Clock
    threads: Threads
    allowances: Allowances
    authorizer: Authorizer
    admission: Admission
    requests: RequestMemory
    answers: AnswerMemory
    large_requests: LargeRequests
    strangers: StrangerMemory = field(default_factory=StrangerMemory)
    trail: AuditTrail = field(default_factory=NoTrail)
    buffers: ReceiveBuffers = field(default_factory=ReceiveBuffers)
    turns: Turns = field(default_factory=Turns)
    handled: list[int] = field(default_factory=lambda: [0] * API_KEYS_MAX)
    """Requests that were begun, by the keys of their APIs."""
