"""Topics through the control service: many at once, each with its own outcome."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import (
    Command,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    IncrementalAlterConfigs,
    NewPartitions,
    NewTopic,
    Outcome,
    SettingChange,
    SettingOperation,
    TopicRef,
)
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import PartitionState, ResourceType, Topic
from ottla.pb import control_pb2 as pb
from ottla.rpc.control import Context, ControlService, unary

if TYPE_CHECKING:
    import grpc

__all__ = ["TopicOperations"]


class TopicOperations:
    def __init__(self, service: ControlService) -> None:
        self._service = service

    def methods(self) -> "dict[str, grpc.RpcMethodHandler[Any, Any]]":
        return {
            "CreateTopics": unary(self._create, pb.CreateTopicsRequest),
            "AlterTopics": unary(self._alter, pb.AlterTopicsRequest),
            "DeleteTopics": unary(self._delete, pb.DeleteTopicsRequest),
            "DescribeTopics": unary(self._describe, pb.DescribeTopicsRequest),
        }

    async def _create(self, request: pb.CreateTopicsRequest, context: Context) -> pb.TopicsReply:
        topics = [
            NewTopic(
                spec.name,
                partitions=spec.partitions or -1,
                replication_factor=spec.replication_factor or -1,
                configs=list(spec.configs.items()),
            )
            for spec in request.topics
        ]
        command = CreateTopics(topics, validate_only=request.validate_only)
        return _reply(await self._outcomes(command, [spec.name for spec in request.topics], context))

    async def _alter(self, request: pb.AlterTopicsRequest, context: Context) -> pb.TopicsReply:
        """Partitions first: settings of a topic that cannot grow as asked are left alone."""
        await self._service.require_leader(context)
        specs = {spec.name: spec for spec in request.topics}.values()
        outcomes = {spec.name: _problem(self._service.feed.image, spec) for spec in specs}
        grown = [spec for spec in specs if not outcomes[spec.name].code and self._grows(spec)]
        command = CreatePartitions(
            [NewPartitions(spec.name, spec.partitions) for spec in grown], validate_only=request.validate_only
        )
        if grown:
            outcomes |= await self._outcomes(command, [spec.name for spec in grown], context)
        changed = [spec for spec in specs if not outcomes[spec.name].code and spec.configs]
        if changed:
            changes = _changes(changed, validate_only=request.validate_only)
            outcomes |= await self._outcomes(changes, [spec.name for spec in changed], context)
        return _reply(outcomes)

    def _grows(self, spec: pb.TopicSpec) -> bool:
        topic = self._service.feed.image.topics[spec.name]
        return bool(spec.partitions) and spec.partitions != len(topic.partitions)

    async def _delete(self, request: pb.DeleteTopicsRequest, context: Context) -> pb.TopicsReply:
        names = list(dict.fromkeys(request.names))
        return _reply(await self._outcomes(DeleteTopics([TopicRef(name) for name in names]), names, context))

    async def _describe(self, request: pb.DescribeTopicsRequest, context: Context) -> pb.DescribeTopicsReply:
        await self._service.require_leader(context)
        image = self._service.feed.image
        names = list(request.names) or sorted(image.topics)
        return pb.DescribeTopicsReply(topics=[_description(image, name) for name in names], version=image.version)

    async def _outcomes(
        self, command: Command[list[Outcome[Any]]], names: Sequence[str], context: Context
    ) -> dict[str, pb.Outcome]:
        """A command that is refused as a whole is refused for each of its topics."""
        try:
            outcomes = await self._service.controller.submit(command)
        except KafkaError as error:
            await self._service.refuse_if_not_leader(error, context)
            return {name: pb.Outcome(code=error.code, message=error.message or "") for name in names}
        return {
            name: pb.Outcome(code=outcome.code, message=outcome.message or "")
            for name, outcome in zip(dict.fromkeys(names), outcomes, strict=True)
        }


def _problem(image: Image, spec: pb.TopicSpec) -> pb.Outcome:
    topic = image.topics.get(spec.name)
    if topic is None:
        return pb.Outcome(code=Code.unknown_topic_or_partition, message=f"There is no topic {spec.name}.")
    if spec.replication_factor and any(len(p.replicas) != spec.replication_factor for p in topic.partitions):
        text = "The replication factor is changed by Reassign, which says where the replicas go."
        return pb.Outcome(code=Code.invalid_replication_factor, message=text)
    return pb.Outcome()


def _changes(specs: Iterable[pb.TopicSpec], *, validate_only: bool) -> IncrementalAlterConfigs:
    resources = [((int(ResourceType.TOPIC), spec.name), _setting_changes(spec)) for spec in specs]
    return IncrementalAlterConfigs(resources, validate_only=validate_only)


def _setting_changes(spec: pb.TopicSpec) -> list[SettingChange]:
    return [
        SettingChange(key, SettingOperation.SET, value) if value else SettingChange(key, SettingOperation.DELETE)
        for key, value in spec.configs.items()
    ]


def _reply(outcomes: dict[str, pb.Outcome]) -> pb.TopicsReply:
    return pb.TopicsReply(topics=[pb.TopicOutcome(name=name, outcome=outcome) for name, outcome in outcomes.items()])


def _description(image: Image, name: str) -> pb.TopicDescription:
    topic = image.topics.get(name)
    if topic is None:
        return pb.TopicDescription(name=name, outcome=pb.Outcome(code=Code.unknown_topic_or_partition))
    return _found(topic, dict(image.config(ResourceType.TOPIC, name)))


def _found(topic: Topic, configs: dict[str, str]) -> pb.TopicDescription:
    return pb.TopicDescription(
        name=topic.name, id=topic.id.bytes, partitions=map(_partition, topic.partitions), configs=configs
    )


def _partition(state: PartitionState) -> pb.PartitionDescription:
    return pb.PartitionDescription(
        index=state.index,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        replicas=state.replicas,
        isr=state.isr,
        adding=state.adding,
        removing=state.removing,
    )
