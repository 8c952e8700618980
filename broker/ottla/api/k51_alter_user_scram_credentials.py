"""AlterUserScramCredentials (KIP-554): set and remove credentials. What is as good as a password stays on this node."""

from ottla.api.authorizing import require_cluster
from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.registry import api
from ottla.api.requests import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsScramCredentialUpsertion,
)
from ottla.errors import KafkaError
from ottla.metadata.decisions.commands import AlterScramCredentials, Outcome, ScramUpsertion
from ottla.metadata.model.credentials import MECHANISM_NAMES, ScramKeys, hash_size, scram_keys
from ottla.security.core.access import Operation


@api(key=51, versions=(0, 0))
async def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, call: Call, controller: ControllerClient
) -> Answer:
    deletions = [(one.name, one.mechanism) for one in request.deletions]
    upsertions = [_upsertion(one) for one in request.upsertions]
    try:
        require_cluster(call, Operation.ALTER)
        outcomes = await controller.submit(AlterScramCredentials(deletions, upsertions))
    except KafkaError as error:
        users = dict.fromkeys([user for user, _ in deletions] + [one.user for one in upsertions])
        outcomes = [Outcome(user, error.code, error.message) for user in users]
    return call.reply(
        results=[{"user": one.value, "error_code": one.code, "error_message": one.message} for one in outcomes]
    )


def _upsertion(one: AlterUserScramCredentialsScramCredentialUpsertion) -> ScramUpsertion:
    salted = bytes(one.salted_password)
    usable = one.mechanism in MECHANISM_NAMES and len(salted) == hash_size(one.mechanism)
    keys = scram_keys(one.mechanism, salted) if usable else ScramKeys(b"", b"")
    return ScramUpsertion(one.name, one.mechanism, bytes(one.salt), one.iterations, keys)
