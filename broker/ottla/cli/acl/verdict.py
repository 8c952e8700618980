"""Why somebody may or may not do something: the rule that decides, by the same code as the authorizer's."""

import shlex
from collections.abc import Collection
from typing import Any, NamedTuple

from ottla.cli.acl.words import WORDS, Pattern, sentence
from ottla.metadata.model.acls import AclBinding
from ottla.security.core.access import Operation
from ottla.security.core.acl_index import AclIndex, canonical_host
from ottla.security.core.principals import Principal

__all__ = ["AuthorizerFacts", "Verdict", "asked_of", "open_to_all", "verdict"]


class AuthorizerFacts(NamedTuple):
    """Of the brokers' settings; None where they are not told."""

    super_users: frozenset[str] | None = frozenset()
    allow_if_no_acl: bool | None = False


class Verdict(NamedTuple):
    asked: str
    allowed: bool | None
    """None when the brokers do not tell enough to decide it."""
    by: str
    why: str
    remedy: str = ""
    """The command that would allow it."""

    def sentence(self) -> str:
        word = {True: "allowed", False: "denied", None: "undecided"}[self.allowed]
        return f"{word}: {self.asked}: {self.why}"

    def fields(self) -> dict[str, Any]:
        return {"allowed": self.allowed, "asked": self.asked, "by": self.by, "why": self.why, "remedy": self.remedy}


def asked_of(principal: str, operation: Operation, pattern: Pattern, host: str) -> str:
    return f"{principal} {operation.name} {_shown(pattern)} from {host}"


def open_to_all(asked: str) -> Verdict:
    return Verdict(asked, True, "no authorizer", "this fleet has no authorizer: everybody may do everything")


def verdict(
    principal: str,
    operation: Operation,
    pattern: Pattern,
    *,
    host: str,
    bindings: Collection[AclBinding],
    rules: AuthorizerFacts,
) -> Verdict:
    """`bindings` are those about the resource."""
    asked = asked_of(principal, operation, pattern, host)
    if rules.super_users is not None and principal in rules.super_users:
        return Verdict(asked, True, "super.users", "super.users names it")
    kind, _, name = principal.partition(":")
    found = AclIndex(bindings).find(
        Principal(kind, name), canonical_host(host), operation, pattern.resource, pattern.name
    )
    if found.binding is not None and found.allows:
        return Verdict(asked, True, "acl", f"an ACL says: {sentence(found.binding)}")
    if found.binding is not None:
        return _unless_told(Verdict(asked, False, "acl", f"an ACL says: {sentence(found.binding)}"), rules)
    if not found.has_acls and rules.allow_if_no_acl:
        why = "no ACL is about it, and allow.everyone.if.no.acl.found=true"
        return Verdict(asked, True, "allow.everyone.if.no.acl.found", why)
    about = f"{len(bindings)} ACL{' is' if len(bindings) == 1 else 's are'} about {_shown(pattern)}"
    why = f"no ACL allows {operation.name} to {principal}; {about}"
    word = operation.name.lower().replace("_", "-")
    remedy = shlex.join(["ottla", "acls", "add", principal.removeprefix("User:"), word, _shown(pattern)])
    denied = Verdict(asked, False, "default", why, remedy)
    return _unless_told(denied, rules, by_default=not found.has_acls)


def _unless_told(denied: Verdict, rules: AuthorizerFacts, *, by_default: bool = False) -> Verdict:
    """Undecided where a setting would allow it that the brokers do not tell."""
    unless = ["super.users names it"] if rules.super_users is None else []
    if by_default and rules.allow_if_no_acl is None:
        unless.append("allow.everyone.if.no.acl.found=true")
    if not unless:
        return denied
    why = f"{denied.why}; allowed only if {' or '.join(unless)}, which the brokers do not tell"
    return denied._replace(allowed=None, why=why)


def _shown(pattern: Pattern) -> str:
    word = WORDS[pattern.resource]
    return word if word == "cluster" else f"{word}:{pattern.name}"
