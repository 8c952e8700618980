"""RemoveRaftVoter: a voter becomes an observer, or is not missed any more (KIP-853)."""

from ottla.api.call import Answer, Call
from ottla.api.raft_voters import asked_member
from ottla.api.registry import api
from ottla.api.requests import RemoveRaftVoterRequest
from ottla.errors import Code, KafkaError
from ottla.metadata.runtime.relay import ControllerLink

# The request has no time of its own; a change that is under way takes milliseconds.
WAIT_SECONDS = 2.0


@api(key=81, versions=(0, 0))
async def remove_raft_voter(
    request: RemoveRaftVoterRequest, call: Call, quorum: ControllerLink, cluster_id: str
) -> Answer:
    try:
        await quorum.remove_voter(asked_member(request, cluster_id), seconds=WAIT_SECONDS)
    except KafkaError as error:
        return call.reply(error_code=error.code, error_message=error.message)
    return call.reply(error_code=Code.none, error_message=None)
