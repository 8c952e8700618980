"""AddRaftVoter: a node that follows the metadata log gets a vote (KIP-853)."""

from collections.abc import Sequence

from ottla.api.call import Answer, Call
from ottla.api.raft_voters import asked_member
from ottla.api.registry import api
from ottla.api.requests import AddRaftVoterListener, AddRaftVoterRequest
from ottla.errors import Code, KafkaError
from ottla.metadata.runtime.relay import ControllerLink

# Clients stop listening when their time is up, so the answer leaves earlier.
WAIT_SHARE = 0.9
WAIT_SECONDS_MAX = 60.0


@api(key=80, versions=(0, 0))
async def add_raft_voter(request: AddRaftVoterRequest, call: Call, quorum: ControllerLink, cluster_id: str) -> Answer:
    """The address of the new voter is the one by which it follows; the request's listeners must only make sense."""
    wait_s = min(max(request.timeout, 0) / 1000 * WAIT_SHARE, WAIT_SECONDS_MAX)
    try:
        asked = asked_member(request, cluster_id)
        _check_listeners(request.listeners)
        await quorum.add_voter(asked, seconds=wait_s)
    except KafkaError as error:
        return call.reply(error_code=error.code, error_message=error.message)
    return call.reply(error_code=Code.none, error_message=None)


def _check_listeners(listeners: Sequence[AddRaftVoterListener]) -> None:
    if not listeners:
        raise KafkaError(Code.invalid_request, "The request names no listener of the new voter.")
    for listener in listeners:
        if not (listener.name and listener.host and listener.port):
            text = f"{listener.name}://{listener.host}:{listener.port} is not a listener."
            raise KafkaError(Code.invalid_request, text)
