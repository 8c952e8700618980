"""Who may talk to whom: the first message of every stream between nodes. Pure."""

import uuid
from collections.abc import Mapping

import msgspec

from ottla.pb import quorum_pb2 as pb
from ottla.raft.core.messages import Member

__all__ = ["NAME_CHARACTERS_MAX", "PROTOCOL_VERSIONS", "Identity", "common_version", "hello_to", "member_of", "refusal"]

# Lowest and highest version of the protocol between nodes that this build speaks.
PROTOCOL_VERSIONS = (1, 1)
NAME_CHARACTERS_MAX = 300  # of a cluster's id or an endpoint: a host name has 253 at most


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """This node as others know it. `incarnation` is new at every start."""

    cluster_id: str
    member: Member
    incarnation: uuid.UUID
    endpoint: str
    versions: tuple[int, int] = PROTOCOL_VERSIONS


def hello_to(target: int, own: Identity) -> pb.Hello:
    return pb.Hello(
        cluster_id=own.cluster_id,
        node_id=own.member.id,
        directory=own.member.directory.bytes,
        incarnation=own.incarnation.bytes,
        version_min=own.versions[0],
        version_max=own.versions[1],
        endpoint=own.endpoint,
        target=target,
    )


def member_of(hello: pb.Hello) -> Member:
    return Member(hello.node_id, uuid.UUID(bytes=hello.directory))


def common_version(own: tuple[int, int], other: tuple[int, int]) -> int | None:
    """The highest that both speak."""
    version = min(own[1], other[1])
    return version if version >= max(own[0], other[0]) else None


def refusal(hello: pb.Hello, own: Identity, connected: Mapping[int, bytes]) -> str | None:
    """Why this node does not talk to the sender, None when it does. `connected`: incarnations of nodes by id."""
    if max(len(hello.cluster_id), len(hello.endpoint)) > NAME_CHARACTERS_MAX:
        return f"a node sent a hello with names of more than {NAME_CHARACTERS_MAX} characters"
    where = f"node {hello.node_id} at {hello.endpoint}"
    if hello.cluster_id != own.cluster_id:
        return f"{where} belongs to cluster {hello.cluster_id}, node {own.member.id} to cluster {own.cluster_id}"
    if len(hello.directory) != 16 or len(hello.incarnation) != 16:
        return f"{where} sent a malformed hello"
    if hello.node_id == own.member.id:
        return f"node id {hello.node_id} is taken: {hello.endpoint} has the id of {own.endpoint}; set another node.id"
    if hello.target != own.member.id:
        return f"{where} expects node {hello.target}, but {own.endpoint} is node {own.member.id}"
    if connected.get(hello.node_id, hello.incarnation) != hello.incarnation:
        return f"node id {hello.node_id} is taken by a node that is connected; stop it or set another node.id on one"
    if common_version(own.versions, (hello.version_min, hello.version_max)) is None:
        return (
            f"{where} speaks protocol versions {hello.version_min} to {hello.version_max}, "
            f"node {own.member.id} {own.versions[0]} to {own.versions[1]}; upgrade the older one"
        )
    return None
