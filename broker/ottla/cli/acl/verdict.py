"""Why somebody may or may not do something: the rule that decides, by the same code as the authorizer's. Pure."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ottla.cli.acl.words import WORDS, Pattern, sentence
from ottla.metadata.model.acls import AclBinding
from ottla.security.core.access import Operation
from ottla.security.core.principals import Principal
from ottla.security.core.rules import Rules, same_host

__all__ = ["AuthorizerFacts", "Verdict", "verdict"]


class AuthorizerFacts(NamedTuple):
    """Of the brokers' settings; None where they are not told."""

    super_users: frozenset[str] | None = frozenset()
    allow_if_no_acl: bool | None = False


class Verdict(NamedTuple):
    asked: str
    allowed: bool
    by: str
    why: str

    def sentence(self) -> str:
        return f"{'allowed' if self.allowed else 'denied'}: {self.asked}: {self.why}"

    def fields(self) -> dict[str, Any]:
        return {"allowed": self.allowed, "asked": self.asked, "by": self.by, "why": self.why}


def verdict(
    principal: str,
    operation: Operation,
    pattern: Pattern,
    *,
    host: str,
    bindings: Iterable[AclBinding],
    rules: AuthorizerFacts,
) -> Verdict:
    word = WORDS[pattern.resource]
    shown = word if word == "cluster" else f"{word}:{pattern.name}"
    asked = f"{principal} {operation.name} {shown} from {host}"
    if rules.super_users is not None and principal in rules.super_users:
        return Verdict(asked, True, "super.users", "super.users names it")
    kind, _, name = principal.partition(":")
    found = Rules(bindings).find(Principal(kind, name), same_host(host), operation, pattern.resource, pattern.name)
    unless = "" if rules.super_users is not None else ", unless super.users names it (the brokers do not tell)"
    if found.binding is not None:
        return Verdict(asked, found.allows, "acl", f"an ACL says: {sentence(found.binding)}{unless}")
    if not found.has_acls and rules.allow_if_no_acl:
        why = "no ACL is about it, and allow.everyone.if.no.acl.found=true"
        return Verdict(asked, True, "allow.everyone.if.no.acl.found", why)
    why = "ACLs are about it, but none of them is for this" if found.has_acls else "no ACL is about it"
    if not found.has_acls and rules.allow_if_no_acl is None:
        why += ", unless allow.everyone.if.no.acl.found=true (the brokers do not tell)"
    return Verdict(asked, False, "default", why + unless)
