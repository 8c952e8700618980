"""Who is at the other end of a connection: where it came from, as whom, and what it may do."""

from ottla.security.authentication import Authentication
from ottla.security.core.access import Access, Authorizer, OpenAuthorizer
from ottla.security.core.logins import Login
from ottla.security.core.principals import ANONYMOUS, Principal

__all__ = ["Client"]

OPEN = OpenAuthorizer()


class Client:
    """One per connection. `identify` is called when it has proved who it is, and again when it does so anew."""

    __slots__ = ("_authorizer", "access", "authentication", "by_delegation_token", "host", "listener", "principal")

    access: Access

    def __init__(
        self, listener: str, host: str, *, principal: Principal = ANONYMOUS, authorizer: Authorizer = OPEN
    ) -> None:
        self.listener = listener
        self.host = host
        self._authorizer = authorizer
        self.authentication: Authentication | None = None
        """Its way through SASL; None on listeners without."""
        self.by_delegation_token = False
        self.identify(principal)

    def identify(self, principal: Principal) -> None:
        self.principal = principal
        self.access = self._authorizer.access_of(principal, self.host)

    def log_in(self, login: Login) -> None:
        self.by_delegation_token = login.by_delegation_token
        self.identify(login.principal)

    @property
    def is_unrestricted(self) -> bool:
        """Nobody needs to ask: there are no rules."""
        return self._authorizer.is_open
