"""Decisions about SCRAM credentials, and what a description tells of them. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import (
    AlterScramCredentials,
    Context,
    Decision,
    Outcome,
    RotateScramCredentials,
    ScramUpsertion,
)
from ottla.metadata.decisions.features import security_records
from ottla.metadata.model.credentials import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISM_NAMES,
    PreviousKeys,
    ScramCredential,
    ScramOwner,
    hash_size,
)
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import Record, remove_scram_credential_record, scram_credential_record
from ottla.wire.text_limits import TEXT_BYTES_MAX, is_too_long

__all__ = [
    "SALT_BYTES_MAX",
    "UserDescription",
    "alter",
    "check_credential",
    "describe",
    "rotate",
]

SALT_BYTES_MAX = 1024
DAY_MS = 86_400_000
KEEP_OLD_MS_MAX = 7 * DAY_MS

Change = ScramOwner | ScramUpsertion


def alter(image: Image, command: AlterScramCredentials, context: Context) -> Decision[list[Outcome[str]]]:
    accepted: dict[str, Change] = {}
    refused: dict[str, KafkaError] = {}
    for user, change in _changes(command):
        if user in refused:
            continue
        try:
            if accepted.pop(user, None) is not None:
                message = "A user credential cannot be altered twice in the same request"
                raise KafkaError(Code.duplicate_resource, message)
            _check(image, change)
            accepted[user] = change
        except KafkaError as error:
            refused[user] = error.with_traceback(None)  # it refers to this frame, and so to the error
    outcomes = [_outcome(user, refused.get(user)) for user in dict(_changes(command))]
    records = [_record(change) for change in accepted.values()]
    if len(image.scram_credentials) + len(records) > (most := context.limits.scram_credentials_in_fleet_max):
        raise KafkaError(Code.policy_violation, f"This fleet has room for {most} SCRAM credentials")
    return Decision(outcomes, [*security_records(image, context), *records] if records else ())


def _changes(command: AlterScramCredentials) -> Iterator[tuple[str, Change]]:
    yield from ((owner[0], owner) for owner in command.deletions)
    yield from ((upsertion.user, upsertion) for upsertion in command.upsertions)


def _outcome(user: str, error: KafkaError | None) -> Outcome[str]:
    return Outcome(user) if error is None else Outcome(user, error.code, error.message)


def _record(change: Change) -> Record:
    if isinstance(change, ScramUpsertion):
        credential = ScramCredential(change.salt, change.iterations, change.keys)
        return scram_credential_record((change.user, change.mechanism), credential)
    return remove_scram_credential_record(change)


def _check(image: Image, change: Change) -> None:
    if isinstance(change, ScramUpsertion):
        check_credential(change)
        return
    _check_owner(*change)
    if change not in image.scram_credentials:
        raise KafkaError(Code.resource_not_found, "Attempt to delete a user credential that does not exist")


def check_credential(change: ScramUpsertion) -> None:
    """KafkaError for one that Kafka would not take, or with which no client could log in."""
    _check_owner(change.user, change.mechanism)
    if change.iterations < ITERATIONS_MIN:
        raise KafkaError(Code.unacceptable_credential, "Too few iterations")
    if change.iterations > ITERATIONS_MAX:
        raise KafkaError(Code.unacceptable_credential, "Too many iterations")
    if not 0 < len(change.salt) <= SALT_BYTES_MAX:
        raise KafkaError(Code.unacceptable_credential, f"A salt has 1 to {SALT_BYTES_MAX} bytes")
    size = hash_size(change.mechanism)
    if len(change.keys.stored) != size or len(change.keys.server) != size:
        name = MECHANISM_NAMES[change.mechanism]
        raise KafkaError(Code.unacceptable_credential, f"A salted password of {name} has {size} bytes")


def _check_owner(user: str, mechanism: int) -> None:
    if not user:
        raise KafkaError(Code.unacceptable_credential, "Username must not be empty")
    if is_too_long(user):
        raise KafkaError(Code.unacceptable_credential, f"A user name has at most {TEXT_BYTES_MAX} bytes")
    if mechanism not in MECHANISM_NAMES:
        raise KafkaError(Code.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")


class UserDescription(NamedTuple):
    """`credentials`: (mechanism, iterations)."""

    user: str
    code: Code = Code.none
    message: str | None = None
    credentials: Sequence[tuple[int, int]] = ()


def rotate(image: Image, command: RotateScramCredentials, context: Context) -> Decision[None]:
    if not 0 <= command.keep_old_ms <= KEEP_OLD_MS_MAX:
        days = KEEP_OLD_MS_MAX // DAY_MS
        raise KafkaError(Code.invalid_request, f"An old password is kept for 0 to {days} days")
    until_ms = context.now_ms + command.keep_old_ms
    records = [each for change in command.credentials for each in _rotated(image, change, until_ms, context)]
    return Decision(None, [*security_records(image, context), *records] if records else ())


def _rotated(image: Image, change: ScramUpsertion, until_ms: int, context: Context) -> Iterator[Record]:
    """Nothing for the password that the user has already: whoever asks again must not end the life of the old one."""
    check_credential(change)
    owner = (change.user, change.mechanism)
    present = image.scram_credentials.get(owner)
    name = f"{change.user!r} with {MECHANISM_NAMES[change.mechanism]}"
    if present is None:
        raise KafkaError(Code.resource_not_found, f"There is no credential of {name}")
    if (present.salt, present.iterations) != (change.salt, change.iterations):
        raise KafkaError(Code.unacceptable_credential, f"The salt or iterations of {name} have changed; try again")
    if present.keys != change.keys:
        previous = PreviousKeys(present.keys, until_ms) if until_ms > context.now_ms else None
        yield scram_credential_record(owner, msgspec.structs.replace(present, keys=change.keys, previous=previous))


def describe(
    credentials: Mapping[ScramOwner, ScramCredential], users: Sequence[str] | None
) -> Iterable[UserDescription]:
    """Of these users, or of all who have a credential."""
    named = Counter(users) if users else dict.fromkeys((user for user, _ in credentials), 1)
    for user, times in named.items():
        found = [
            (mechanism, credentials[user, mechanism].iterations)
            for mechanism in MECHANISM_NAMES
            if (user, mechanism) in credentials
        ]
        if times > 1:
            message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
            yield UserDescription(user, Code.duplicate_resource, message)
        elif not found:
            message = f"Attempt to describe a user credential that does not exist: {user}"
            yield UserDescription(user, Code.resource_not_found, message)
        else:
            yield UserDescription(user, credentials=found)
