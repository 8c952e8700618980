"""The brokers' Control service over gRPC. Only its leader answers, so each call finds that first."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import grpc
import grpc.aio
from ottla.pb import control_pb2 as pb
from ottla.pb.control_pb2_grpc import ControlStub
from ottla.rpc.channels import Channels
from ottla.rpc.credentials import WatchedCredentials
from ottla.rpc.leader_search import LEADER_ID_KEY, NOT_LEADING, LeaderSearch, named_leader

from ottla_operator.plans.obstacle import TemporaryFailure
from ottla_operator.plans.rollout import FleetView, Verdict
from ottla_operator.plans.topics import FoundTopic, TopicChange, TopicOutcome

__all__ = ["Fleet", "FleetRefused", "FleetUnavailable"]

ANSWER_SECONDS_MAX, CHANGE_SECONDS_MAX = 3.0, 15.0
# An election takes less than that: a call during one succeeds late instead of failing.
ATTEMPTS, PAUSE_SECONDS = 4, 0.5
TOPICS_PER_CALL_MAX = 1000
NO_SUCH_TOPIC, NOT_SENT = 3, -1
TRY_ANOTHER = (*NOT_LEADING, grpc.StatusCode.UNIMPLEMENTED)  # the last: it listens already and does not serve yet


class FleetUnavailable(TemporaryFailure):
    """No active controller answers; the text quotes a node."""


class FleetRefused(TemporaryFailure):
    """The controller refused the request; the text says why."""


class Fleet:
    """One cluster's. `reach` says where its nodes are now: their addresses change with their pods.

    A cluster that is secured wants `credentials`, of an operator; plaintext without.
    """

    def __init__(self, credentials: WatchedCredentials | None = None) -> None:
        self._addresses: dict[int, str] = {}
        self._channels = Channels(credentials)
        self._leader = -1

    async def reach(self, addresses: Mapping[int, str]) -> None:
        """Node id → host:port of its gRPC server."""
        gone = set(self._addresses.values()) - set(addresses.values())
        self._addresses = dict(addresses)
        for address in gone:
            self._channels.forget(address)

    async def close(self) -> None:
        await self.reach({})
        await self._channels.close()

    # the fleet

    async def describe(self) -> FleetView:
        reply: pb.DescribeFleetReply = await self._send("DescribeFleet", pb.DescribeFleetRequest())
        return FleetView(
            leader=reply.leader,
            under_replicated=reply.partitions_under_replicated,
            offline=reply.partitions_offline,
            fenced=tuple(node.id for node in reply.nodes if node.fenced),
        )

    async def may_restart(self, node_id: int) -> Verdict:
        reply: pb.MayRestartReply = await self._send("MayRestart", pb.MayRestartRequest(broker=node_id))
        partitions = [f"{one.topic}-{one.partition} {one.reason}" for one in reply.partitions]
        return Verdict(reply.yes, (*reply.reasons, *partitions))

    # topics

    async def topics(self, names: Sequence[str]) -> dict[str, FoundTopic]:
        """Those of `names` that exist."""
        found: dict[str, FoundTopic] = {}
        for some in _batches(names):
            reply: pb.DescribeTopicsReply = await self._send("DescribeTopics", pb.DescribeTopicsRequest(names=some))
            found |= {topic.name: _found(topic) for topic in reply.topics if not topic.outcome.code}
        return found

    async def create_topics(self, changes: Sequence[TopicChange]) -> dict[str, TopicOutcome]:
        return await self._change(changes, lambda some: pb.CreateTopicsRequest(topics=some), "CreateTopics")

    async def alter_topics(self, changes: Sequence[TopicChange]) -> dict[str, TopicOutcome]:
        return await self._change(changes, lambda some: pb.AlterTopicsRequest(topics=some), "AlterTopics")

    async def delete_topics(self, names: Sequence[str]) -> dict[str, TopicOutcome]:
        """A topic that does not exist counts as deleted."""
        outcomes: dict[str, TopicOutcome] = {}
        for some in _batches(names):
            request = pb.DeleteTopicsRequest(names=some)
            outcomes |= _outcomes(await self._send("DeleteTopics", request, seconds_max=CHANGE_SECONDS_MAX))
        return {
            name: TopicOutcome(0) if outcome.code == NO_SUCH_TOPIC else outcome for name, outcome in outcomes.items()
        }

    async def _change(
        self, changes: Sequence[TopicChange], request: Callable[[list[pb.TopicSpec]], Any], method: str
    ) -> dict[str, TopicOutcome]:
        outcomes: dict[str, TopicOutcome] = {}
        for some in _batches(changes):
            outcomes |= await self._change_some(some, request, method)
        return outcomes

    async def _change_some(
        self, changes: Sequence[TopicChange], request: Callable[[list[pb.TopicSpec]], Any], method: str
    ) -> dict[str, TopicOutcome]:
        """A request that is refused as a whole is divided until the topic is found that it was refused for."""
        try:
            message = request([_spec(change) for change in changes])
            return _outcomes(await self._send(method, message, seconds_max=CHANGE_SECONDS_MAX))
        except (FleetRefused, ValueError) as error:  # ValueError: a text that cannot be encoded
            if len(changes) == 1:
                return {changes[0].name: TopicOutcome(NOT_SENT, str(error))}
        middle = len(changes) // 2
        halves = (changes[:middle], changes[middle:])
        first, second = [await self._change_some(half, request, method) for half in halves]
        return first | second

    # finding the leader

    async def _send(self, method: str, message: Any, *, seconds_max: float = ANSWER_SECONDS_MAX) -> Any:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._send_to_leader(method, message, seconds_max)
            except FleetUnavailable:
                if attempt == ATTEMPTS:
                    raise
            await asyncio.sleep(PAUSE_SECONDS)

    async def _send_to_leader(self, method: str, message: Any, seconds_max: float) -> Any:
        """The last leader first, then whoever it or another one names."""
        search = LeaderSearch(sorted(self._addresses, key=lambda node_id: (node_id != self._leader, node_id)))
        reason = "no node has an address"
        for node_id in search:
            if node_id not in self._addresses:  # it is gone since
                continue
            try:
                stub = ControlStub(self._channels.to(self._addresses[node_id]))
                reply = await getattr(stub, method)(message, timeout=seconds_max)
            except asyncio.CancelledError:
                if _is_cancelled():
                    raise
                reason = f"node {node_id}: the connection was closed"  # the next reconcile has its new address
            except grpc.aio.AioRpcError as error:
                reason = f"node {node_id}: {error.details()}"
                if error.code() not in TRY_ANOTHER:
                    raise FleetRefused(reason) from error
                leader = named_leader(error.trailing_metadata(), LEADER_ID_KEY)
                if leader.isdecimal():
                    search.ask_first(int(leader))
            else:
                self._leader = node_id
                return reply
        raise FleetUnavailable(f"no controller answers ({reason})")


def _is_cancelled() -> bool:
    """Whether this task itself was cancelled: gRPC raises CancelledError also for a call whose channel was closed."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _batches(items: Sequence[Any]) -> Iterable[list[Any]]:
    for start in range(0, len(items), TOPICS_PER_CALL_MAX):
        yield list(items[start : start + TOPICS_PER_CALL_MAX])


def _spec(change: TopicChange) -> pb.TopicSpec:
    return pb.TopicSpec(
        name=change.name, partitions=change.partitions, replication_factor=change.replicas, configs=change.configs
    )


def _outcomes(reply: pb.TopicsReply) -> dict[str, TopicOutcome]:
    return {one.name: TopicOutcome(one.outcome.code, one.outcome.message) for one in reply.topics}


def _found(topic: pb.TopicDescription) -> FoundTopic:
    return FoundTopic(
        name=topic.name,
        id=topic.id.hex(),
        partitions=len(topic.partitions),
        replicas=max((len(one.replicas) for one in topic.partitions), default=0),
        offline=sum(one.leader < 0 for one in topic.partitions),
        configs=dict(topic.configs),
    )
