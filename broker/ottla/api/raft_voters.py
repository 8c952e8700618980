"""Common parts of AddRaftVoter and RemoveRaftVoter: the cluster and the member in a request."""

import uuid

from ottla.api.requests import AddRaftVoterRequest, RemoveRaftVoterRequest
from ottla.errors import Code, KafkaError
from ottla.raft.core.messages import Member

__all__ = ["asked_member"]


def asked_member(request: AddRaftVoterRequest | RemoveRaftVoterRequest, cluster_id: str) -> Member:
    """KafkaError if the request is for another cluster or does not name a possible voter."""
    if request.cluster_id not in (None, cluster_id):
        text = f"The request is for cluster {request.cluster_id}; this one is {cluster_id}."
        raise KafkaError(Code.inconsistent_cluster_id, text)
    if request.voter_id < 0:
        raise KafkaError(Code.invalid_request, f"{request.voter_id} is not the id of a node.")
    if request.voter_directory_id is None:
        text = "The directory id is missing; it is in the meta.properties of the node's metadata directory."
        raise KafkaError(Code.invalid_request, text)
    return Member(request.voter_id, uuid.UUID(bytes=request.voter_directory_id))
