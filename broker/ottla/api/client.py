"""Who is at the other end of a connection: where it came from, as whom, and what it may do."""

from ottla.security.authentication import Authentication
from ottla.security.core.access import EVERYTHING, Access, Authorizer, OpenAuthorizer
from ottla.security.core.audit import AuditTrail, NoTrail
from ottla.security.core.logins import Login
from ottla.security.core.principals import ANONYMOUS, Principal

__all__ = ["Client"]

OPEN = OpenAuthorizer()
NO_TRAIL = NoTrail()


class Client:
    """One per connection. `identify` is called when it has proved who it is, and again when it does so anew."""

    __slots__ = ("_authorizer", "access", "authentication", "by_delegation_token", "host", "is_unrestricted",
                 "listener", "principal", "trail")  # fmt: skip

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
        self.authentication: Authentication | None = None
        """Its way through SASL; None on listeners without."""
        self.by_delegation_token = False
        self.identify(principal)

    def identify(self, principal: Principal) -> None:
        self.principal = principal
        self.access = self._authorizer.access_of(principal, self.host)
        self.is_unrestricted = self.access is EVERYTHING

    def log_in(self, login: Login) -> None:
        self.by_delegation_token = login.by_delegation_token
        self.identify(login.principal)

    @property
    def is_without_authorizer(self) -> bool:
        return self._authorizer.is_open
