"""Checks of an authorizer per second of CPU, on one core: `python -m bench.authorization`.

7,000 ACLs over 504 topics, as in the report that Kafka has (KAFKA-20667); a thousand users, some clients of each.
"""

import time
from collections.abc import Callable
from random import Random

from ottla.metadata.model.acls import AclBinding, PatternType, Permission
from ottla.security.core.access import Access, Operation, Resource
from ottla.security.core.acls import AclAuthorizer
from ottla.security.core.principals import Principal

ACLS, TOPICS, USERS, CLIENTS = 7_000, 504, 1_000, 20
ROUNDS = 100
OPERATIONS = (Operation.READ, Operation.WRITE, Operation.DESCRIBE)


def bindings(random: Random) -> list[AclBinding]:
    made: set[AclBinding] = set()
    while len(made) < ACLS:
        name, prefixed = f"topic-{random.randrange(TOPICS):03}", random.random() < 0.3
        pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
        who = f"User:u{random.randrange(USERS)}" if random.random() < 0.98 else "User:*"
        operation = random.choice(OPERATIONS)
        permission = Permission.ALLOW if random.random() < 0.95 else Permission.DENY
        made.add(AclBinding(Resource.TOPIC, pattern, name[: 6 + prefixed], who, "*", operation, permission))
        made.add(AclBinding(Resource.TOPIC, PatternType.LITERAL, name, who, "*", operation, permission))
    return sorted(made, key=repr)[:ACLS]


def measured(what: str, checks: int, work: Callable[[], None]) -> None:
    began = time.process_time()
    work()
    seconds = time.process_time() - began
    print(f"{what:42} {checks / seconds / 1e6:8.2f} million/s {seconds / checks * 1e9:8.0f} ns each")


def main() -> None:
    random = Random(1)
    rules = bindings(random)
    began = time.process_time()
    authorizer = AclAuthorizer(rules)
    print(f"{len(rules)} ACLs indexed in {(time.process_time() - began) * 1000:.0f} ms")
    accesses = [
        authorizer.access_of(Principal("User", f"u{random.randrange(USERS)}"), f"10.0.0.{number}")
        for number in range(CLIENTS)
    ]
    names = [f"topic-{number:03}" for number in range(TOPICS)]

    def check(rounds: int) -> None:
        for _ in range(rounds):
            for access in accesses:
                ask(access, names)

    def ask(access: Access, topics: list[str]) -> None:
        may, operation, resource = access.may, Operation.READ, Resource.TOPIC
        for name in topics:
            may(operation, resource, name)

    each = CLIENTS * TOPICS
    measured("first time, or after a change of the ACLs", each, lambda: check(1))
    measured("again", each * ROUNDS, lambda: check(ROUNDS))
    change = AclBinding(Resource.TOPIC, PatternType.LITERAL, "new", "User:u1", "*", Operation.READ, Permission.ALLOW)
    began = time.process_time()
    authorizer.change(removed=[], added=[change])
    print(f"one ACL more: {(time.process_time() - began) * 1e6:.0f} µs")


if __name__ == "__main__":
    main()
