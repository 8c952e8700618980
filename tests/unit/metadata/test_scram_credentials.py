"""SCRAM credentials: what the controller takes, with Kafka's codes and sentences, and what the log keeps of them."""

import gc

import pytest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions import commands as ask
from ottla.metadata.decisions.commands import AlterScramCredentials, Outcome, ScramUpsertion
from ottla.metadata.decisions.credential_expiry import expiry_due
from ottla.metadata.decisions.duties import at_activation
from ottla.metadata.decisions.features import SECURITY_VERSION, SUPPORTED_FEATURES
from ottla.metadata.decisions.users import SALT_BYTES_MAX, describe
from ottla.metadata.model.changes import compare
from ottla.metadata.model.credentials import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    PreviousKeys,
    ScramCredential,
    ScramKeys,
    scram_keys,
)
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import scram_credential_record
from ottla.rpc.packing import pack_command, unpack_command
from support.decisions import CLUSTER, Fleet

KEYS = scram_keys(SCRAM_SHA_256, bytes(32))
ANN, BOB = ("ann", SCRAM_SHA_256), ("bob", SCRAM_SHA_256)
OLD = {name: levels for name, levels in SUPPORTED_FEATURES.items() if name != SECURITY_VERSION}


def upsertion(user: str = "ann", mechanism: int = SCRAM_SHA_256, **changes: object) -> ScramUpsertion:
    fields = {"salt": b"salt", "iterations": 4096, "keys": scram_keys(mechanism, b"salted"), **changes}
    return ScramUpsertion(user, mechanism, **fields)  # type: ignore[arg-type]


def alter(fleet: Fleet, *upsertions: ScramUpsertion, deletions: tuple[tuple[str, int], ...] = ()) -> list[Outcome[str]]:
    outcomes: list[Outcome[str]] = fleet.ask(AlterScramCredentials(deletions, upsertions))
    return outcomes


def test_credentials_are_set_replaced_and_removed() -> None:
    fleet = Fleet()
    assert alter(fleet, upsertion(), upsertion("bob", SCRAM_SHA_512)) == [Outcome("ann"), Outcome("bob")]
    assert fleet.image.scram_credentials[ANN] == ScramCredential(b"salt", 4096, scram_keys(SCRAM_SHA_256, b"salted"))
    alter(fleet, upsertion(iterations=8192))
    assert fleet.image.scram_credentials[ANN].iterations == 8192
    assert alter(fleet, deletions=(ANN, ("bob", SCRAM_SHA_512))) == [Outcome("ann"), Outcome("bob")]
    assert fleet.image.scram_credentials == {}


TWICE = (Code.duplicate_resource, "A user credential cannot be altered twice in the same request")
MISSING = (Code.resource_not_found, "Attempt to delete a user credential that does not exist")
UNKNOWN = (Code.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")
NAMELESS = (Code.unacceptable_credential, "Username must not be empty")
UNACCEPTABLE = Code.unacceptable_credential


@pytest.mark.parametrize(
    ("wrong", "code", "message"),
    [
        (upsertion(iterations=4095), UNACCEPTABLE, "Too few iterations"),
        (upsertion(iterations=16385), UNACCEPTABLE, "Too many iterations"),
        (upsertion(""), *NAMELESS),
        (upsertion(mechanism=3), *UNKNOWN),
        (upsertion(mechanism=0), *UNKNOWN),
        (upsertion(salt=b""), UNACCEPTABLE, f"A salt has 1 to {SALT_BYTES_MAX} bytes"),
        (upsertion(salt=bytes(SALT_BYTES_MAX + 1)), UNACCEPTABLE, f"A salt has 1 to {SALT_BYTES_MAX} bytes"),
        (upsertion(keys=ScramKeys(b"", b"")), UNACCEPTABLE, "A salted password of SCRAM-SHA-256 has 32 bytes"),
        (upsertion("ä" * 16384), UNACCEPTABLE, "A user name has at most 32767 bytes"),
    ],
)
def test_what_is_not_taken(wrong: ScramUpsertion, code: Code, message: str) -> None:
    fleet = Fleet()
    version = fleet.image.version
    assert alter(fleet, wrong) == [Outcome(wrong.user, code, message)]
    assert fleet.image.version == version


@pytest.mark.parametrize(
    ("owner", "code", "message"), [(ANN, *MISSING), (("", 1), *NAMELESS), (("ann", 9), *UNKNOWN), (("", 9), *NAMELESS)]
)
def test_deletions_that_are_refused(owner: tuple[str, int], code: Code, message: str) -> None:
    assert alter(Fleet(), deletions=(owner,)) == [Outcome(owner[0], code, message)]


def test_a_user_changes_once_in_a_request() -> None:
    fleet = Fleet()
    alter(fleet, upsertion())
    assert alter(fleet, upsertion(), deletions=(ANN,)) == [Outcome("ann", *TWICE)]
    assert alter(fleet, upsertion("bob"), upsertion("bob", SCRAM_SHA_512), upsertion("bob")) == [Outcome("bob", *TWICE)]
    assert alter(fleet, upsertion("bob"), deletions=(BOB,)) == [Outcome("bob", *MISSING)]
    assert list(fleet.image.scram_credentials) == [ANN]


def test_a_refusal_needs_no_collector() -> None:
    """It would leave what was decided with it, and the image of the fleet."""
    fleet = Fleet()
    alter(fleet, upsertion(iterations=1))  # once, so that what is made at first use is there
    gc.collect()
    gc.disable()
    try:
        alter(fleet, upsertion(iterations=1))
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_descriptions() -> None:
    fleet = Fleet()
    alter(fleet, upsertion(), upsertion("bob", SCRAM_SHA_512, iterations=5000))
    alter(fleet, upsertion(mechanism=SCRAM_SHA_512))
    kept = fleet.image.scram_credentials
    everybody = [("ann", 0, None, [(1, 4096), (2, 4096)]), ("bob", 0, None, [(2, 5000)])]
    assert list(describe(kept, None)) == list(describe(kept, [])) == everybody
    twice = "Cannot describe SCRAM credentials for the same user twice in a single request: ann"
    nobody = "Attempt to describe a user credential that does not exist: eve"
    assert list(describe(kept, ["ann", "eve", "ann"])) == [
        ("ann", Code.duplicate_resource, twice, ()),
        ("eve", Code.resource_not_found, nobody, ()),
    ]


def test_they_survive_a_snapshot_and_travel_between_nodes() -> None:
    fleet = Fleet()
    alter(fleet, upsertion(), upsertion("bob", SCRAM_SHA_512))
    rotated = ScramCredential(b"salt", 4096, KEYS, PreviousKeys(scram_keys(SCRAM_SHA_256, b"before"), 99))
    fleet.apply([scram_credential_record(ANN, rotated)])
    again = Image.from_snapshot(fleet.image.to_snapshot())
    assert again.scram_credentials == fleet.image.scram_credentials
    assert again.scram_credentials[ANN] == rotated
    command = AlterScramCredentials([ANN], [upsertion("bob")])
    assert unpack_command(*pack_command(command)) == command


def test_changes_say_so() -> None:
    fleet = Fleet()
    before = fleet.image
    alter(fleet, upsertion())
    assert compare(before, fleet.image).scram_credentials
    assert not compare(fleet.image, fleet.image).scram_credentials


def test_the_first_credential_raises_the_feature_and_older_brokers_are_refused_from_then_on() -> None:
    fleet = Fleet()
    alter(fleet, upsertion())
    assert fleet.image.features[SECURITY_VERSION] == 1
    with pytest.raises(KafkaError, match=r"does not support finalized version 1 of ottla\.security\.version"):
        fleet.register(5, features=OLD)
    with pytest.raises(KafkaError, match="may hold credentials and rules"):
        fleet.ask(ask.UpdateFeatures([(SECURITY_VERSION, 0, ask.UpgradeType.SAFE_DOWNGRADE)]))


def test_nothing_is_written_that_an_older_broker_could_not_read() -> None:
    fleet = Fleet()
    fleet.register(5, features=OLD)
    version = fleet.image.version
    with pytest.raises(KafkaError, match="Broker 5 does not support this feature") as caught:
        alter(fleet, upsertion())
    assert caught.value.code is Code.unsupported_version
    assert fleet.image.version == version
    assert alter(fleet, upsertion(iterations=1))[0].message == "Too few iterations", "nothing would be written"


def test_a_new_metadata_log_begins_with_what_the_node_was_formatted_with() -> None:
    first = scram_credential_record(ANN, ScramCredential(b"salt", 4096, KEYS))
    fleet = Fleet(bootstrap=[first])
    empty, _ = Image(CLUSTER).apply(at_activation(Image(CLUSTER), fleet.context()), version=1, epoch=1)
    assert ANN in empty.scram_credentials
    assert at_activation(empty, fleet.context()) == [], "once"


def rotate(fleet: Fleet, *changes: ScramUpsertion, keep_old_ms: int = 500) -> None:
    fleet.ask(ask.RotateScramCredentials(changes, keep_old_ms))


def test_a_rotation_keeps_the_old_password_for_a_while() -> None:
    fleet = Fleet(now_ms=1000)
    alter(fleet, upsertion())
    old, new = upsertion().keys, scram_keys(SCRAM_SHA_256, b"new")
    rotate(fleet, upsertion(keys=new))
    rotated = fleet.image.scram_credentials[ANN]
    assert rotated == ScramCredential(b"salt", 4096, new, PreviousKeys(old, 1500))
    assert rotated.live_keys(1499) == (new, old)
    assert rotated.live_keys(1500) == (new,)
    rotate(fleet, upsertion(keys=new), keep_old_ms=0)
    assert fleet.image.scram_credentials[ANN] == rotated, "asked again"
    rotate(fleet, upsertion(keys=old), keep_old_ms=0)
    assert fleet.image.scram_credentials[ANN] == ScramCredential(b"salt", 4096, old)


def test_to_set_a_password_ends_both_of_a_rotation() -> None:
    fleet = Fleet()
    alter(fleet, upsertion())
    rotate(fleet, upsertion(keys=scram_keys(SCRAM_SHA_256, b"new")))
    alter(fleet, upsertion(salt=b"fresh"))
    assert fleet.image.scram_credentials[ANN].previous is None


@pytest.mark.parametrize(
    ("change", "keep_old_ms", "code", "message"),
    [
        (upsertion("bob"), 0, Code.resource_not_found, "There is no credential of 'bob' with SCRAM-SHA-256"),
        (upsertion(salt=b"other"), 0, UNACCEPTABLE, "The salt or iterations of 'ann'"),
        (upsertion(iterations=5000), 0, UNACCEPTABLE, "The salt or iterations of 'ann'"),
        (upsertion(mechanism=9), 0, *UNKNOWN),
        (upsertion(), -1, Code.invalid_request, "An old password is kept for 0 to 7 days"),
        (upsertion(), 8 * 86_400_000, Code.invalid_request, "An old password is kept for 0 to 7 days"),
    ],
)
def test_rotations_that_are_refused_change_nothing(
    change: ScramUpsertion, keep_old_ms: int, code: Code, message: str
) -> None:
    fleet = Fleet()
    alter(fleet, upsertion())
    before = fleet.image.scram_credentials
    with pytest.raises(KafkaError, match=message) as caught:
        rotate(fleet, upsertion(keys=KEYS), change, keep_old_ms=keep_old_ms)
    assert (caught.value.code, fleet.image.scram_credentials) == (code, before)


def test_old_passwords_are_forgotten_when_their_time_is_over() -> None:
    fleet = Fleet(now_ms=1000)
    alter(fleet, upsertion())
    rotate(fleet, upsertion(keys=KEYS))
    assert expiry_due(fleet.image, fleet.context()) is None
    fleet.settings["now_ms"] = 1500
    due = expiry_due(fleet.image, fleet.context())
    assert due is not None
    fleet.ask(due)
    assert fleet.image.scram_credentials[ANN] == ScramCredential(b"salt", 4096, KEYS)
    assert expiry_due(fleet.image, fleet.context()) is None
