"""What ACLs say: who may do what to which resource, and by which of them. Pure.

An ACL is found by three look-ups per principal: the resource's name, `*`, and those beginnings of the name that are as
long as some prefix and that a prefix shares. So the cost hardly depends on the number of ACLs.
"""

import ipaddress
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.metadata.model.acls import AclBinding, PatternType, Permission
from ottla.security.core.access import Operation, Resource
from ottla.security.core.principals import Principal

__all__ = ["ANYBODY", "ANY_HOST", "ANY_NAME", "AclIndex", "Found", "canonical_host"]

ANYBODY = "User:*"
ANY_HOST = "*"
ANY_NAME = "*"
EVERY_OPERATION = -1  # as bits

# By an ACL that allows; one that denies denies its own operation only.
IMPLIES = {
    Operation.READ: (Operation.DESCRIBE,),
    Operation.WRITE: (Operation.DESCRIBE,),
    Operation.DELETE: (Operation.DESCRIBE,),
    Operation.ALTER: (Operation.DESCRIBE,),
    Operation.ALTER_CONFIGS: (Operation.DESCRIBE_CONFIGS,),
}


def canonical_host(host: str) -> str:
    """The canonical form of an address: Java writes ::1 as 0:0:0:0:0:0:0:1, sockets 10.0.0.1 as ::ffff:10.0.0.1."""
    if ":" not in host:
        return host
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host
    return str(address.ipv4_mapped or address)


class Found(NamedTuple):
    """`binding`: the ACL that decides. None: `has_acls` says whether any ACL, of anybody, is about this resource."""

    binding: AclBinding | None
    has_acls: bool

    @property
    def allows(self) -> bool:
        return self.binding is not None and self.binding.permission == Permission.ALLOW


class _AclsOfPattern:
    """The ACLs of one principal for one pattern. `allowed` and `denied`: operations as bits, by hosts."""

    __slots__ = ("allowed", "bindings", "denied")

    def __init__(self) -> None:
        self.bindings: set[AclBinding] = set()
        self.allowed: dict[str, int] = {}
        self.denied: dict[str, int] = {}

    def add(self, binding: AclBinding) -> None:
        self.bindings.add(binding)
        self._count(binding)

    def remove(self, binding: AclBinding) -> None:
        self.bindings.remove(binding)
        self.allowed, self.denied = {}, {}
        for each in self.bindings:
            self._count(each)

    def _count(self, binding: AclBinding) -> None:
        host = canonical_host(binding.host)
        if binding.permission == Permission.ALLOW:
            self.allowed[host] = self.allowed.get(host, 0) | _allowed_bits(binding.operation)
        else:
            self.denied[host] = self.denied.get(host, 0) | _own_bits(binding.operation)

    def denies(self, bit: int, host: str) -> bool:
        denied = self.denied
        return bool(denied) and bool((denied.get(ANY_HOST, 0) | denied.get(host, 0)) & bit)

    def allows(self, bit: int, host: str) -> bool:
        allowed = self.allowed
        return bool((allowed.get(ANY_HOST, 0) | allowed.get(host, 0)) & bit)

    def deciding(self, bit: int, host: str, permission: Permission) -> AclBinding:
        bits_of = _allowed_bits if permission == Permission.ALLOW else _own_bits
        return next(
            each
            for each in sorted(self.bindings, key=lambda each: (each.host, each.operation))
            if each.permission == permission
            and canonical_host(each.host) in (ANY_HOST, host)
            and bits_of(each.operation) & bit
        )


def _own_bits(operation: int) -> int:
    return EVERY_OPERATION if operation == Operation.ALL else 1 << operation


def _allowed_bits(operation: int) -> int:
    bits = _own_bits(operation)
    for implied in IMPLIES.get(operation, ()):  # type: ignore[call-overload]
        bits |= 1 << implied
    return bits


class _Prefixes:
    """In order. A name's prefixes sort before it, and all that is between the two begins with them. So the name's
    neighbour tells how far to look: no prefix here is longer than what the two have in common."""

    __slots__ = ("_lengths", "_lengths_sorted", "_sorted")

    def __init__(self) -> None:
        self._sorted: list[str] = []
        self._lengths: Counter[int] = Counter()
        self._lengths_sorted: tuple[int, ...] = ()

    def add(self, prefix: str) -> None:
        insort(self._sorted, prefix)
        self._lengths[len(prefix)] += 1
        if self._lengths[len(prefix)] == 1:
            self._lengths_sorted = tuple(sorted(self._lengths))

    def remove(self, prefix: str) -> None:
        del self._sorted[bisect_left(self._sorted, prefix)]
        self._lengths[len(prefix)] -= 1
        if not self._lengths[len(prefix)]:
            del self._lengths[len(prefix)]
            self._lengths_sorted = tuple(sorted(self._lengths))

    def beginnings(self, name: str) -> Iterator[str]:
        """Of the name, the shortest first: those that may be here."""
        place = bisect_right(self._sorted, name)
        if not place:
            return
        neighbour, size = self._sorted[place - 1], len(name)
        for length in self._lengths_sorted:
            if length > size or not neighbour.startswith(beginning := name[:length]):
                return
            yield beginning


class _AclsOfPrincipal:
    """The ACLs of one principal for resources of one type."""

    __slots__ = ("literal", "prefixed", "prefixes")

    def __init__(self) -> None:
        self.literal: dict[str, _AclsOfPattern] = {}
        self.prefixed: dict[str, _AclsOfPattern] = {}
        self.prefixes = _Prefixes()

    @property
    def is_empty(self) -> bool:
        return not self.literal and not self.prefixed

    def add(self, binding: AclBinding) -> None:
        patterns, name = self._of_patterns(binding), binding.resource_name
        if name not in patterns:
            patterns[name] = _AclsOfPattern()
            if patterns is self.prefixed:
                self.prefixes.add(name)
        patterns[name].add(binding)

    def remove(self, binding: AclBinding) -> None:
        patterns, name = self._of_patterns(binding), binding.resource_name
        patterns[name].remove(binding)
        if not patterns[name].bindings:
            del patterns[name]
            if patterns is self.prefixed:
                self.prefixes.remove(name)

    def _of_patterns(self, binding: AclBinding) -> dict[str, _AclsOfPattern]:
        return self.prefixed if binding.pattern_type == PatternType.PREFIXED else self.literal

    def about(self, name: str) -> Iterator[_AclsOfPattern]:
        literal, prefixed = self.literal, self.prefixed
        if (pattern := literal.get(name)) is not None:
            yield pattern
        if name != ANY_NAME and (pattern := literal.get(ANY_NAME)) is not None:
            yield pattern
        for beginning in self.prefixes.beginnings(name):
            if (pattern := prefixed.get(beginning)) is not None:
                yield pattern


class _PatternNames:
    """Names and prefixes of one resource type that have an ACL of anybody's."""

    __slots__ = ("literal", "prefixed", "prefixes")

    def __init__(self) -> None:
        self.literal: Counter[str] = Counter()
        self.prefixed: Counter[str] = Counter()
        self.prefixes = _Prefixes()

    def change(self, binding: AclBinding, by: int) -> None:
        name, is_prefix = binding.resource_name, binding.pattern_type == PatternType.PREFIXED
        counts = self.prefixed if is_prefix else self.literal
        before = counts[name]
        counts[name] += by
        if not counts[name]:
            del counts[name]
        if is_prefix and before == 0:
            self.prefixes.add(name)
        elif is_prefix and name not in counts:
            self.prefixes.remove(name)

    def has(self, name: str) -> bool:
        if name in self.literal or ANY_NAME in self.literal:
            return True
        return any(beginning in self.prefixed for beginning in self.prefixes.beginnings(name))


class AclIndex:
    """All ACLs, changed one at a time. `host` in questions is in the form of `canonical_host`."""

    def __init__(self, bindings: Iterable[AclBinding] = ()) -> None:
        self._by_principal: dict[tuple[str, int], _AclsOfPrincipal] = {}
        self._names: dict[int, _PatternNames] = {}
        self._hosts: Counter[str] = Counter()
        for binding in bindings:
            self.add(binding)

    def add(self, binding: AclBinding) -> None:
        self._by_principal.setdefault((binding.principal, binding.resource_type), _AclsOfPrincipal()).add(binding)
        self._names.setdefault(binding.resource_type, _PatternNames()).change(binding, 1)
        self._hosts[canonical_host(binding.host)] += 1

    def remove(self, binding: AclBinding) -> None:
        key = binding.principal, binding.resource_type
        self._by_principal[key].remove(binding)
        if self._by_principal[key].is_empty:
            del self._by_principal[key]
        self._names[binding.resource_type].change(binding, -1)
        host = canonical_host(binding.host)
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]

    def distinguishes(self, host: str) -> bool:
        """Whether some ACL is for this host: for all others the same holds."""
        return host in self._hosts

    def _of(self, principal: Principal, resource: int) -> list[_AclsOfPrincipal]:
        keys = ((str(principal), resource), (ANYBODY, resource))
        return [acls_of_one for key in dict.fromkeys(keys) if (acls_of_one := self._by_principal.get(key)) is not None]

    def find(self, principal: Principal, host: str, operation: Operation, resource: Resource, name: str) -> Found:
        """What denies comes before all that allows."""
        bit = 1 << operation
        allowing: _AclsOfPattern | None = None
        for acls_of_one in self._of(principal, resource):
            for pattern in acls_of_one.about(name):
                if pattern.denies(bit, host):
                    return Found(pattern.deciding(bit, host, Permission.DENY), True)
                if allowing is None and pattern.allows(bit, host):
                    allowing = pattern
        if allowing is not None:
            return Found(allowing.deciding(bit, host, Permission.ALLOW), True)
        names = self._names.get(resource)
        return Found(None, names is not None and names.has(name))

    def allows_any(self, principal: Principal, host: str, operation: Operation, resource: Resource) -> bool:
        """Something of this type, by name or prefix: an ACL that allows and that no denial covers wholly. As Kafka
        does, only ACLs for this operation or all of them count here, not those that imply it."""
        bit = 1 << operation
        acls = self._of(principal, resource)
        names, denied_names = _of_patterns(acls, "literal", bit, host)
        prefixes, denied_prefixes = _of_patterns(acls, "prefixed", bit, host)
        if ANY_NAME in denied_names:
            return False
        if ANY_NAME in names:
            return True
        lengths = sorted({len(prefix) for prefix in denied_prefixes})

        def is_covered(name: str) -> bool:
            return any(name[:length] in denied_prefixes for length in lengths if length <= len(name))

        return any(not is_covered(name) for name in (*(names - denied_names), *prefixes))


def _of_patterns(acls: Iterable[_AclsOfPrincipal], kind: str, bit: int, host: str) -> tuple[set[str], set[str]]:
    """Names that are allowed, and those that are denied, by ACLs that name the operation or all."""
    allowed: set[str] = set()
    denied: set[str] = set()
    for acls_of_one in acls:
        patterns: dict[str, _AclsOfPattern] = getattr(acls_of_one, kind)
        for name, pattern in patterns.items():
            for binding in pattern.bindings:
                if canonical_host(binding.host) in (ANY_HOST, host) and _own_bits(binding.operation) & bit:
                    (allowed if binding.permission == Permission.ALLOW else denied).add(name)
    return allowed, denied
