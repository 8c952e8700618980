"""Kafka's StandardAuthorizer: super users, ACLs, and what holds where there are none. Pure.

Decisions are kept until the ACLs change, not the image, which changes with every in-sync replica. Clients of one user
share what was decided, unless an ACL names the host of one.
"""

from collections.abc import Iterable
from weakref import WeakValueDictionary

from ottla.metadata.model.acls import AclBinding
from ottla.security.core.access import EVERYTHING, Access, Operation, Resource
from ottla.security.core.acl_index import AclIndex, canonical_host
from ottla.security.core.principals import Principal

__all__ = ["AclAuthorizer"]

KEPT_MAX = 200_000  # decisions, of all clients
NAME_KEPT_MAX = 255  # characters of a name whose decision is kept
OTHER_HOSTS = "*"
# Kafka asks with this name whether somebody may do something to all of a kind.
SOME_NAME = "hardcode"

# Decisions by operation, resource type and name; a name that is None stands for any.
_Kept = dict[str | None, bool]


class _Decisions:
    """Of one principal at one host, or at all hosts that no ACL names."""

    __slots__ = ("__weakref__", "by_kind")

    def __init__(self) -> None:
        self.by_kind: tuple[_Kept, ...] = tuple({} for _ in range(len(Operation) * KINDS))


KINDS = len(Resource)


class AclAuthorizer:
    """`super_users`: as they are written, `User:admin`."""

    is_open = False

    def __init__(
        self,
        bindings: Iterable[AclBinding] = (),
        *,
        super_users: Iterable[str] = (),
        allow_if_no_acl: bool = False,
    ) -> None:
        self._rules = AclIndex(bindings)
        self._super_users = frozenset(super_users)
        self._allow_if_no_acl = allow_if_no_acl
        self._shared: WeakValueDictionary[tuple[Principal, str], _Decisions] = WeakValueDictionary()
        self._kept = 0
        self.version = 0
        """Raised when what was decided may not hold any more."""

    def access_of(self, principal: Principal, host: str) -> Access:
        if str(principal) in self._super_users:
            return EVERYTHING
        return _AclAccess(self, principal, canonical_host(host))

    def change(self, *, removed: Iterable[AclBinding], added: Iterable[AclBinding]) -> None:
        for binding in removed:
            self._rules.remove(binding)
        for binding in added:
            self._rules.add(binding)
        self._start_over()

    def _start_over(self) -> None:
        self._kept = 0
        self._shared.clear()
        self.version += 1

    def decisions_of(self, principal: Principal, host: str) -> _Decisions:
        key = principal, host if self._rules.distinguishes(host) else OTHER_HOSTS
        known = self._shared.get(key)
        if known is None:
            known = self._shared[key] = _Decisions()
        return known

    def keep(self, kept: _Kept, name: str | None, decision: bool) -> None:
        if name is not None and len(name) > NAME_KEPT_MAX:
            return
        if self._kept >= KEPT_MAX:
            self._start_over()
            return
        self._kept += 1
        kept[name] = decision

    def decide(self, principal: Principal, host: str, operation: Operation, resource: Resource, name: str) -> bool:
        found = self._rules.find(principal, host, operation, resource, name)
        if found.binding is None:
            return self._allow_if_no_acl and not found.has_acls
        return found.allows

    def decide_any(self, principal: Principal, host: str, operation: Operation, resource: Resource) -> bool:
        """Whoever may do it to something that no ACL is about may do it to any, whatever is denied elsewhere."""
        if self.decide(principal, host, operation, resource, SOME_NAME):
            return True
        return self._rules.allows_any(principal, host, operation, resource)


class _AclAccess:
    """Of one client. Holds a reference to what was decided for its like, and the version at which it got it."""

    __slots__ = ("_authorizer", "_by_kind", "_decisions", "_host", "_principal", "_version")

    def __init__(self, authorizer: AclAuthorizer, principal: Principal, host: str) -> None:
        self._authorizer = authorizer
        self._principal = principal
        self._host = host
        self._renew()

    def _renew(self) -> None:
        self._version = self._authorizer.version
        self._decisions = self._authorizer.decisions_of(self._principal, self._host)
        self._by_kind = self._decisions.by_kind

    def may(self, operation: Operation, resource: Resource, name: str) -> bool:
        if self._version != self._authorizer.version:
            self._renew()
        kept = self._by_kind[operation * KINDS + resource]
        decision = kept.get(name)
        if decision is None:
            decision = self._authorizer.decide(self._principal, self._host, operation, resource, name)
            self._authorizer.keep(kept, name, decision)
        return decision

    def may_any(self, operation: Operation, resource: Resource) -> bool:
        if self._version != self._authorizer.version:
            self._renew()
        kept = self._by_kind[operation * KINDS + resource]
        decision = kept.get(None)
        if decision is None:
            decision = self._authorizer.decide_any(self._principal, self._host, operation, resource)
            self._authorizer.keep(kept, None, decision)
        return decision
