"""Who is at the other end of a connection: where it came from, as whom, and what it may do."""

from ottla.security.core.access import EVERYTHING, Access, Authorizer, OpenAuthorizer
from ottla.security.core.audit import AuditTrail, NoTrail
from ottla.security.core.principals import ANONYMOUS, Principal

__all__ = ["Client"]

OPEN = OpenAuthorizer()
NO_TRAIL = NoTrail()


class Client:
    """One per connection. `identify` is called when it has proved who it is, and again when it does so anew."""

    __slots__ = ("_authorizer", "access", "host", "is_unrestricted", "listener", "principal", "trail")

    access: Access
    is_unrestricted: bool
    """Nobody needs to ask: there are no rules, or none for this one."""

    def __init__(
        self,
        listener: str,
        host: str,
        *,
        principal: Principal = ANONYMOUS,
        authorizer: Authorizer = OPEN,
        trail: AuditTrail = NO_TRAIL,
    ) -> None:
        self.listener = listener
        self.host = host
        self.trail = trail
        self._authorizer = authorizer
        self.identify(principal)

    def identify(self, principal: Principal) -> None:
        self.principal = principal
        self.access = self._authorizer.access_of(principal, self.host)
        self.is_unrestricted = self.access is EVERYTHING

    @property
    def is_without_authorizer(self) -> bool:
        return self._authorizer.is_open
