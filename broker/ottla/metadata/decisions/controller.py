"""The controller: a pure function from (image, command, context) to records and a reply.

It never waits and never writes; `active` proposes the records and answers once they are committed.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from ottla.metadata.decisions import (
    acls,
    brokers,
    client_quotas,
    configs,
    credential_expiry,
    delegation_tokens,
    features,
    leadership,
    partitions,
    reassignments,
    topics,
    users,
)
from ottla.metadata.decisions import commands as ask
from ottla.metadata.decisions.commands import Command, Context, Decision
from ottla.metadata.model.image import Image

__all__ = ["decide"]

Reply = TypeVar("Reply")

_DECIDE: dict[type[Command[Any]], Callable[[Image, Any, Context], Decision[Any]]] = {
    ask.CreateTopics: topics.create,
    ask.DeleteTopics: topics.delete,
    ask.CreatePartitions: topics.grow,
    ask.AlterConfigs: configs.replace,
    ask.IncrementalAlterConfigs: configs.change,
    ask.AlterClientQuotas: client_quotas.alter,
    ask.AlterScramCredentials: users.alter,
    ask.RotateScramCredentials: users.rotate,
    ask.ExpireCredentials: credential_expiry.expire,
    ask.CreateDelegationToken: delegation_tokens.create,
    ask.RenewDelegationToken: delegation_tokens.renew,
    ask.EndDelegationToken: delegation_tokens.end,
    ask.CreateAcls: acls.create,
    ask.DeleteAcls: acls.delete,
    ask.UpdateFeatures: features.update,
    ask.AllocateProducerIds: brokers.allocate_producer_ids,
    ask.RegisterBroker: brokers.register,
    ask.UnregisterBroker: brokers.unregister,
    ask.FenceBroker: brokers.fence,
    ask.UnfenceBroker: brokers.unfence,
    ask.AlterPartition: partitions.alter,
    ask.ReplicasLost: brokers.lose_replicas,
    ask.ElectLeaders: leadership.elect,
    ask.MoveLeadersAway: leadership.move_away,
    ask.AlterReassignments: reassignments.alter,
}


def decide(image: Image, command: Command[Reply], context: Context) -> Decision[Reply]:
    """KafkaError, without any change, if the command is refused as a whole."""
    return _DECIDE[type(command)](image, command, context)
