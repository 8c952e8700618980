"""How one listener is secured: what it shows, whom it believes, how its clients log in."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from ottla.security.authentication import AuthenticationCounts, LoginRules
from ottla.security.core.certificate_names import distinguished_name, subject_of
from ottla.security.core.principal_rules import PrincipalRules
from ottla.security.core.principals import ANONYMOUS, USER, Principal

__all__ = ["PLAIN_LISTENER", "ListenerSecurity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSecurity:
    context: Callable[[], ssl.SSLContext] | None = None
    """The one for the next connection; None on a listener without TLS."""
    rules: PrincipalRules | None = None
    """From certificates of clients to principals."""
    login: LoginRules | None = None
    """None on a listener without SASL."""
    counts: AuthenticationCounts = field(default_factory=AuthenticationCounts)
    timeout_s: float = 30.0
    """For the TLS handshake."""

    def principal_of(self, tls: ssl.SSLObject | None) -> Principal:
        """Whom the client's certificate names. Raises NoRuleApplies and BadCertificate."""
        certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        if certificate is None or self.rules is None or self.login is not None:
            return ANONYMOUS
        return Principal(USER, self.rules.apply(distinguished_name(subject_of(certificate))))


PLAIN_LISTENER = ListenerSecurity()
