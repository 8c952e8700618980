"""What the committed metadata log says of rules and credentials, read apart from the broker's own image.

From it follows what every node must have at each version, whether an acknowledged change is there, and whether
something comes back that was removed.
"""

import bisect
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

from ottla.metadata.model.acls import AclBinding, PatternType, Permission
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import decode_batch
from ottla.raft.core.messages import Entry, EntryKind
from ottla.security.core.access import Operation, Resource

__all__ = ["Ledger", "Tables", "allows", "tables_of"]

SENT_MAX = 2
IMPLYING_DESCRIBE = frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER})


class Tables(NamedTuple):
    """Rules by their ids, credentials by user and mechanism, tokens by their ids."""

    rules: Mapping[bytes, AclBinding]
    credentials: Mapping[tuple[str, int], Hashable]
    tokens: Mapping[str, Hashable]


def tables_of(image: Image) -> Tables:
    """The same of a node's image."""
    credentials = {}
    for owner, one in image.scram_credentials.items():
        before = one.previous
        kept = (before.keys.stored, before.keys.server, before.until_ms) if before is not None else None
        credentials[owner] = (one.salt, one.iterations, one.keys.stored, one.keys.server, kept)
    tokens = {
        one.id: (one.owner, one.requester, one.renewers, one.issued_ms, one.expires_ms, one.expires_ms_max)
        for one in image.delegation_tokens.values()
    }
    return Tables({key.bytes: rule for key, rule in image.acls.items()}, credentials, tokens)


class Ledger:
    """`issued` counts how often something was asked for. A command whose answer was lost is sent again once, so it may
    come to be twice as often, and not any more when it is `answered`.
    """

    def __init__(self, complain: Callable[[str], None]) -> None:
        self._complain = complain
        self._waiting: dict[int, Entry] = {}
        self.version = 0
        self._versions, self._states = [0], [Tables({}, {}, {})]
        self._came: Counter[Hashable] = Counter()
        self.issued: Counter[Hashable] = Counter()
        self.answered: set[Hashable] = set()

    def committed(self, entry: Entry) -> None:
        """Any number of times, in any order."""
        if entry.index > self.version:
            self._waiting[entry.index] = entry
        while (following := self._waiting.pop(self.version + 1, None)) is not None:
            self.version += 1
            if following.kind is EntryKind.DATA:
                self._read(following)

    @property
    def newest(self) -> int:
        """The newest version that anybody has."""
        return max(self._waiting, default=self.version)

    def at(self, version: int) -> Tables | None:
        """None where not all that came before is known yet."""
        if version > self.version:
            return None
        return self._states[bisect.bisect_right(self._versions, version) - 1]

    def ever(self, condition: Callable[[Tables], bool], *, after: int, until: int) -> bool:
        """Whether it holds in one of these versions, the first one included."""
        first = bisect.bisect_right(self._versions, after) - 1
        return any(map(condition, self._states[first : bisect.bisect_right(self._versions, until)]))

    def _read(self, entry: Entry) -> None:
        rules, credentials, tokens = map(dict[Any, Any], self._states[-1])
        for record in decode_batch(entry.data):
            kind = record.WhichOneof("kind")
            body = getattr(record, kind) if kind is not None else None
            if kind == "acl":
                names = AclBinding.__struct_fields__
                rules[body.id] = rule = AclBinding(**{name: getattr(body, name) for name in names})
                self._came[rule] += 1
                self._must_not_come_again(rule, often=SENT_MAX * self.issued[rule])
            elif kind == "remove_acl":
                del rules[body.id]
            elif kind == "scram_credential":
                self._credential(credentials, body)
            elif kind == "remove_scram_credential":
                del credentials[body.user, body.mechanism]
            elif kind == "delegation_token":
                if body.id not in tokens:
                    self._came[body.id] += 1
                    self._must_not_come_again(body.id, often=1)
                people = body.owner, body.requester, tuple(body.renewers)
                tokens[body.id] = (*people, body.issued_ms, body.expires_ms, body.expires_ms_max)
            elif kind == "remove_delegation_token":
                del tokens[body.id]
        state = Tables(rules, credentials, tokens)
        if state != self._states[-1]:
            self._versions.append(entry.index)
            self._states.append(state)

    def _credential(self, credentials: dict[Any, Any], body: Any) -> None:
        owner, keys = (body.user, body.mechanism), (body.stored_key, body.server_key)
        before, kept = credentials.get(owner), None
        if body.HasField("previous"):
            kept = (body.previous.stored_key, body.previous.server_key, body.previous.until_ms)
        credentials[owner] = (body.salt, body.iterations, *keys, kept)
        if before is None or before[2:4] != keys:
            self._came[keys] += 1
            self._must_not_come_again(keys, often=SENT_MAX * self.issued[keys])

    def _must_not_come_again(self, what: Hashable, *, often: int) -> None:
        if self._came[what] > often or what in self.answered:
            self._complain(f"{what} comes back at {self.version} of the metadata, and nobody asked for it")


def allows(rules: Mapping[Any, AclBinding], principal: str, host: str, operation: Operation, topic: str) -> bool:
    """Kafka's rule, told in the plainest way: whatever is denied is denied, and the rest has to be allowed."""
    concerning = [
        rule
        for rule in rules.values()
        if rule.resource_type == Resource.TOPIC
        and rule.principal in (principal, "User:*")
        and rule.host in (host, "*")
        and (
            topic.startswith(rule.resource_name)
            if rule.pattern_type == PatternType.PREFIXED
            else rule.resource_name in (topic, "*")
        )
    ]
    allowing = {operation, Operation.ALL, *(IMPLYING_DESCRIBE if operation is Operation.DESCRIBE else ())}
    denied = any(
        rule.permission == Permission.DENY and rule.operation in (operation, Operation.ALL) for rule in concerning
    )
    return not denied and any(rule.permission == Permission.ALLOW and rule.operation in allowing for rule in concerning)
