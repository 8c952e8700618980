"""Rules and credentials in the simulated fleet: administrators change them through any node while all goes wrong.

world = SecurityWorld(seed); world.play()        raises Broken, as World does

Clients of records ask as somebody whom a rule allows everything, and whom others forbid to write at times.
"""

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, NamedTuple

import msgspec
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import (
    AclFilter,
    AlterScramCredentials,
    Command,
    CreateAcls,
    CreateDelegationToken,
    DeleteAcls,
    EndDelegationToken,
    RenewDelegationToken,
    RotateScramCredentials,
    ScramUpsertion,
)
from ottla.metadata.model.acls import AclBinding, PatternType, Permission
from ottla.metadata.model.credentials import SCRAM_SHA_256, SCRAM_SHA_512, ScramKeys, hash_size
from ottla.metadata.model.image import Image
from ottla.metadata.model.tokens import DelegationToken
from ottla.raft.core.messages import Entry
from ottla.security.core.access import Access, Operation, Resource
from ottla.security.core.principals import USER, Principal
from sim.invariants import Referee
from sim.ledger import Ledger, Tables, allows, tables_of
from sim.node import HERE, Life, SimNode
from sim.topics import ATTEMPTS_MAX, RENEWED, STAYS, Topics
from sim.virtual_loop import VirtualLoop
from sim.workload import Disconnected, Producer, produce
from sim.world import HEAL_SECONDS_MAX, World

__all__ = ["SecurityWorld"]

CLIENTS = Principal(USER, "clients")
PEOPLE = (CLIENTS, Principal(USER, "ann"), Principal(USER, "bob"))
OPERATIONS = (Operation.READ, Operation.WRITE, Operation.DESCRIBE)
ADMINISTRATORS, PAUSE_S = 2, 0.8
USERS, MECHANISMS, ITERATIONS = ("ann", "bob"), (SCRAM_SHA_256, SCRAM_SHA_512), 4096
KEPT_MS = (0, 1500, 60_000)  # of a password that was replaced, and of a token
OWNER, RENEWER = "User:ann", "User:bob"
Holds = Callable[[Tables], bool]


def rule(
    who: Principal, operation: Operation, permission: Permission, name: str, *, prefixed: bool = False
) -> AclBinding:
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    return AclBinding(Resource.TOPIC, pattern, name, str(who), "*", operation, permission)


EVERYTHING = rule(CLIENTS, Operation.ALL, Permission.ALLOW, "*")
BANS = (
    rule(CLIENTS, Operation.WRITE, Permission.DENY, STAYS),
    rule(CLIENTS, Operation.WRITE, Permission.DENY, RENEWED[:3], prefixed=True),
)
RULES = (
    *BANS,
    *(rule(who, Operation.READ, Permission.ALLOW, STAYS[:2], prefixed=True) for who in PEOPLE[1:]),
    rule(Principal(USER, "*"), Operation.DESCRIBE, Permission.ALLOW, "*"),
    rule(PEOPLE[1], Operation.ALL, Permission.DENY, RENEWED),
    rule(PEOPLE[2], Operation.WRITE, Permission.ALLOW, RENEWED),
)


class SecurityReferee(Referee):
    """What each node has is what the log says; whom it lets through is what these rules say."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__(loop)
        self.ledger = Ledger(self.object)
        self._seen: dict[str, int] = {}
        self._accesses: dict[str, dict[Principal, Access]] = {}

    def entries_applied(self, node_id: int, entries: Sequence[Entry]) -> None:
        super().entries_applied(node_id, entries)
        for entry in entries:
            self.ledger.committed(entry)

    def observe(self, nodes: Sequence[SimNode]) -> None:
        for node in nodes:
            if node.life is not None and node.life.serves and node.life.shared is not None:
                self._look_at(node.life)
        super().observe(nodes)

    def _look_at(self, life: Life) -> None:
        name, image = life.process.name, life.image
        if self._seen.get(name) == image.version or (expected := self.ledger.at(image.version)) is None:
            return
        self._seen[name] = image.version
        if (found := tables_of(image)) != expected:
            self.object(f"{name} has other rules or credentials at {image.version} than the log: {found} {expected}")
        self._judge_accesses(life, image)

    def _judge_accesses(self, life: Life, image: Image) -> None:
        """As connections have them: asked for once, and kept."""
        assert life.shared is not None
        authorizer = life.shared.authorizer
        accesses = self._accesses.setdefault(
            life.process.name, {who: authorizer.access_of(who, HERE) for who in PEOPLE}
        )
        for who, access in accesses.items():
            for topic in (STAYS, RENEWED):
                for operation in OPERATIONS:
                    expected = allows(image.acls, str(who), HERE, operation, topic)
                    if access.may(operation, Resource.TOPIC, topic) != expected:
                        said = "refuses" if expected else "allows"
                        self.object(f"{life.process.name} {said} {who} {operation.name} of {topic} against its rules")


class SecurityWorld(World):
    settings: ClassVar[Mapping[str, str]] = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    topics: "GuardedTopics"
    referee: SecurityReferee

    def _make_referee(self) -> SecurityReferee:
        return SecurityReferee(self.loop)

    def _make_topics(self) -> "GuardedTopics":
        for node in self.nodes:
            node.clients = CLIENTS
        return GuardedTopics(self)

    @property
    def changes(self) -> int:
        """Acknowledged to administrators."""
        return sum(each.acknowledged for each in self.topics.administrators)

    async def _heal(self) -> None:
        self.topics.end_changes()
        await super()._heal()


class GuardedTopics(Topics):
    _world: SecurityWorld

    def __init__(self, world: SecurityWorld) -> None:
        super().__init__(world)
        self.producer_kind = GuardedProducer  # type: ignore[misc]
        streams = [world.stream(f"administrator {number}") for number in range(ADMINISTRATORS)]
        self.administrators = [Administrator(self, world.referee, stream) for stream in streams]
        self._is_over = False

    async def begin(self) -> None:
        await super().begin()
        self._world.referee.ledger.issued[EVERYTHING] += ATTEMPTS_MAX
        await self._make_sure(CreateAcls([EVERYTHING]), lambda rules: EVERYTHING.id in rules)

    def start_clients(self) -> None:
        super().start_clients()
        for administrator in self.administrators:
            self.run(administrator.run())

    async def _make_sure(self, command: Command[Any], done: Callable[[Mapping[uuid.UUID, AclBinding]], bool]) -> None:
        """On every node that serves."""
        for _ in range(ATTEMPTS_MAX):
            lives = [node.life for node in self._world.nodes if node.life is not None and node.life.serves]
            if lives and all(done(life.image.acls) for life in lives):
                return
            await self._ask(command)
            await asyncio.sleep(0.5)
        self._world.referee.object(f"cannot be done: {command}")

    def end_changes(self) -> None:
        for administrator in self.administrators:
            administrator.stopping = True
        self.run(self._lift_bans())

    async def _lift_bans(self) -> None:
        """Also such as come late: what was asked for in vain may still be done."""
        while not self._is_over:
            await self._make_sure(
                DeleteAcls([exactly(each) for each in BANS]), lambda rules: all(each.id not in rules for each in BANS)
            )
            await asyncio.sleep(1.0)

    async def judge(self) -> None:
        await super().judge()
        self._is_over = True
        newest, nodes = self._world.referee.ledger.newest, self._world.nodes
        await self._world.until(
            lambda: all(node.life is not None and node.life.image.version >= newest for node in nodes),
            HEAL_SECONDS_MAX,
            "not every node has the newest rules",
        )
        self._world.referee.observe(self._world.nodes)
        for administrator in self.administrators:
            administrator.judge()


class GuardedProducer(Producer):
    """Knows what the node that it asks may answer."""

    async def _produce(self, node: SimNode, batch: bytes) -> tuple[Code, int]:
        life = node.life
        if life is None or life.shared is None:
            raise Disconnected
        before = life.image
        topic = before.topics_by_id.get(self.topic_id)
        answer = await produce(node, self.topic_id, self.index, batch)
        if topic is not None and life.image.acls == before.acls:
            allowed = allows(before.acls, str(CLIENTS), HERE, Operation.WRITE, topic.name)
            if allowed == (answer[0] is Code.topic_authorization_failed):
                whom = "one who may" if allowed else "one who may not"
                self.referee.object(f"node {node.id} answers {answer[0].name} to {whom}")
        return answer


def exactly(binding: AclBinding) -> AclFilter:
    return AclFilter(**msgspec.structs.asdict(binding))


class Acknowledged(NamedTuple):
    """`holds` was to be the case in one of the versions between those that were known before and after."""

    what: str
    holds: Holds
    after: int
    until: int


Plan = tuple[Command[Any], Callable[[Any], Holds | None]]
"""What to ask for, and what an answer promises."""


class Administrator:
    """Makes one change after the other; keys and salts are never used twice, so each tells which change it was."""

    def __init__(self, topics: GuardedTopics, referee: SecurityReferee, random: Random) -> None:
        self._topics, self._referee, self._random = topics, referee, random
        self._tokens: list[str] = []
        self._acknowledged: list[Acknowledged] = []
        self.stopping = False
        self._plans: tuple[Callable[[], Plan], ...] = (
            self._make_rule, self._make_rule, self._drop_rule, self._drop_rule, self._set_password, self._drop_password,
            self._rotate, self._make_token, self._renew_token, self._end_token,
        )  # fmt: skip

    @property
    def acknowledged(self) -> int:
        return len(self._acknowledged)

    async def run(self) -> None:
        while not self.stopping:
            await asyncio.sleep(self._random.random() * PAUSE_S)
            command, promised = self._random.choice(self._plans)()
            after = self._referee.ledger.newest
            task = await self._topics.asked(command, self._random)
            try:
                holds = promised(task.result()) if task is not None else None
            except KafkaError:
                continue
            if holds is not None:
                name = type(command).__name__
                self._referee.note(f"{name} is acknowledged")
                self._acknowledged.append(Acknowledged(name, holds, after, self._referee.ledger.newest))

    def judge(self) -> None:
        for each in self._acknowledged:
            if not self._referee.ledger.ever(each.holds, after=each.after, until=each.until):
                self._referee.object(f"{each.what} was acknowledged at {each.until} and is not in the log")

    # -- rules

    def _make_rule(self) -> Plan:
        binding = self._random.choice(RULES)
        self._referee.ledger.issued[binding] += 1
        return CreateAcls([binding]), lambda answer: lambda tables: binding.id.bytes in tables.rules

    def _drop_rule(self) -> Plan:
        binding = self._random.choice(RULES)
        return DeleteAcls([exactly(binding)]), lambda answer: lambda tables: binding.id.bytes not in tables.rules

    # -- passwords

    def _set_password(self) -> Plan:
        owner = self._owner()
        keys = self._keys(owner[1])
        change = ScramUpsertion(*owner, self._random.randbytes(8), ITERATIONS, keys)
        return AlterScramCredentials([], [change]), lambda answer: self._has(owner, keys) if answer[0].ok else None

    def _drop_password(self) -> Plan:
        owner = self._owner()
        gone: Holds = lambda tables: owner not in tables.credentials  # noqa: E731
        return AlterScramCredentials([owner], []), lambda answer: gone if answer[0].ok else None

    def _rotate(self) -> Plan:
        """By the salt that somebody knows, which may be of the past: then it is refused."""
        owner = self._owner()
        keys = self._keys(owner[1])
        present = self._referee.ledger.at(self._referee.ledger.version)
        found: Any = present.credentials.get(owner) if present is not None else None
        salt = found[0] if found is not None else b"salt"
        change = ScramUpsertion(*owner, salt, ITERATIONS, keys)
        command = RotateScramCredentials([change], self._random.choice(KEPT_MS))
        return command, lambda answer: self._has(owner, keys)

    def _owner(self) -> tuple[str, int]:
        return self._random.choice(USERS), self._random.choice(MECHANISMS)

    def _keys(self, mechanism: int) -> ScramKeys:
        size = hash_size(mechanism)
        keys = ScramKeys(self._random.randbytes(size), self._random.randbytes(size))
        self._referee.ledger.issued[keys.stored, keys.server] += 1
        return keys

    def _has(self, owner: tuple[str, int], keys: ScramKeys) -> Holds:
        """Called when it is answered: from then on it must not come again."""
        wanted = keys.stored, keys.server
        self._referee.ledger.answered.add(wanted)

        def holds(tables: Tables) -> bool:
            found: Any = tables.credentials.get(owner)
            return found is not None and found[2:4] == wanted

        return holds

    # -- tokens

    def _make_token(self) -> Plan:
        def promised(token: DelegationToken) -> Holds:
            self._tokens.append(token.id)
            return lambda tables: token.id in tables.tokens

        return CreateDelegationToken(OWNER, OWNER, (RENEWER,), self._random.choice(KEPT_MS)), promised

    def _renew_token(self) -> Plan:
        token = self._some_token()
        command = RenewDelegationToken(token, RENEWER, self._random.choice(KEPT_MS))
        return command, lambda expires_ms: self._expires(token, expires_ms)

    def _end_token(self) -> Plan:
        token, period_ms = self._some_token(), self._random.choice((-1, -1, 1500))
        gone: Holds = lambda tables: token not in tables.tokens  # noqa: E731
        command = EndDelegationToken(token, OWNER, period_ms)
        return command, lambda expires_ms: gone if period_ms < 0 else self._expires(token, expires_ms)

    def _some_token(self) -> str:
        return self._random.choice(self._tokens) if self._tokens else "none"

    def _expires(self, token: str, at_ms: int) -> Holds:
        def holds(tables: Tables) -> bool:
            found: Any = tables.tokens.get(token)
            return found is not None and found[4] == at_ms

        return holds
