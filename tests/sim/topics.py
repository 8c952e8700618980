"""The topics of a history with their clients: one that stays, and one that is deleted and made again."""

import asyncio
import uuid
from collections.abc import Coroutine
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import (
    AlterReassignments,
    Command,
    CreateTopics,
    DeleteTopics,
    NewTopic,
    Reassignment,
    RotateScramCredentials,
    TopicRef,
)
from ottla.replica.partition import Partition
from sim.disk import Crash
from sim.fetching import FetchConsumer, handled
from sim.history import Cleanup, History
from sim.invariants import Broken
from sim.workload import Consumer, Disconnected, Producer

if TYPE_CHECKING:
    from sim.node import SimNode
    from sim.world import World

__all__ = ["STAYS", "Topics"]

STAYS, RENEWED = "orders", "drafts"
REPLICATION_FACTOR = 3
COMMAND_SECONDS = 12.0
ATTEMPTS_MAX = 30
EQUAL_SECONDS_MAX = 60.0
SEGMENT_BYTES = (None, 300, 2000)  # one batch, several, all in one
CLEANUP_WEIGHTS = (4, 4, 2, 2)  # of Cleanup
KEYS = 4  # in a compacted topic
FETCHERS = 2  # consumers of a topic
DELETE_RECORDS = (21, 2)
DELETE_TIMEOUT_MS = 1500


class Trial:
    """A topic from its creation to its deletion."""

    def __init__(self, name: str, topic_id: uuid.UUID, histories: list[History], cleanup: Cleanup) -> None:
        self.name, self.id, self.histories, self.cleanup = name, topic_id, histories, cleanup
        self.partitions = len(histories)
        self.producers: list[Producer] = []
        self.consumers: list[Consumer | FetchConsumer] = []

    def stop(self) -> None:
        for client in (*self.producers, *self.consumers):
            client.stopping = True


class Topics:
    producer_kind: ClassVar[type[Producer]] = Producer

    def __init__(self, world: "World") -> None:
        self._world = world
        self.random = world.chance()
        self._cleaning, self._fetching = world.stream("cleaning"), world.stream("fetching")
        self._trials: dict[str, Trial] = {}
        self._chores: list[asyncio.Task[None]] = []
        self._producers_made = 0
        self._of_deleted = 0

    # -- life

    async def begin(self) -> None:
        await self._make(STAYS, self.random.randint(1, 3))
        if self.random.random() < 0.5:
            await self._make(RENEWED, 1)

    async def _make(self, name: str, partitions: int, *, before: Trial | None = None) -> None:
        """What a controller refuses may be true only in the past of one that is cut off: the newest image decides.

        `before` was to be deleted first. If nobody did that in time, it is the one that is there.
        """
        size = self.random.choice(SEGMENT_BYTES)
        configs = [("internal.segment.bytes", str(size))] if size else []
        cleanup = self._choose_cleanup()
        configs = list(cleanup.value) or configs
        new = NewTopic(name, partitions=partitions, replication_factor=REPLICATION_FACTOR, configs=configs)
        for _ in range(ATTEMPTS_MAX):
            await self._ask(CreateTopics([new]))
            if self._id_of(name) is not None:
                break
            await asyncio.sleep(0.5)
        await self._world.until(lambda: self._id_of(name) is not None, COMMAND_SECONDS * 4, f"{name} is not known")
        topic_id = self._id_of(name)
        assert topic_id is not None
        if before is not None and topic_id == before.id:
            cleanup = before.cleanup
        histories = [History(self._world.referee, topic_id, index, cleanup) for index in range(partitions)]
        self._trials[name] = Trial(name, topic_id, histories, cleanup)
        if cleanup is not Cleanup.KEEP:
            self._world.referee.note(f"{name}: {cleanup.name}")

    def _choose_cleanup(self) -> Cleanup:
        if not self._world.options.cleaning:
            return Cleanup.KEEP
        return self._cleaning.choices(list(Cleanup), CLEANUP_WEIGHTS)[0]

    def _id_of(self, name: str) -> uuid.UUID | None:
        image = self._world.image()
        topic = image.topics.get(name) if image is not None else None
        return topic.id if topic is not None else None

    def renew(self) -> None:
        """Delete the topic and make another of the same name."""
        if self.is_settled() and RENEWED in self._trials:
            self._chores = [self.run(self._renew(self._trials[RENEWED]))]

    async def _renew(self, trial: Trial) -> None:
        self._world.referee.note(f"{trial.name} is deleted and made again")
        trial.stop()
        self._of_deleted += sum(len(producer.acknowledged) for producer in trial.producers)
        del self._trials[trial.name]
        for _ in range(ATTEMPTS_MAX):
            await self._ask(DeleteTopics([TopicRef(id=trial.id)]))
            image = self._world.image()
            if image is not None and trial.id not in image.topics_by_id:
                break
            await asyncio.sleep(0.5)
        await self._make(trial.name, 1, before=trial)
        self._start_clients(self._trials[trial.name])
        self._world.referee.note(f"{trial.name} is there again")

    def move_one(self) -> None:
        """To other replicas, to another order or number of the same, or back."""
        trial = self._trials[STAYS]
        count = self.random.choice((3, 3, 3, 2))
        replicas = self.random.sample([node.id for node in self._world.nodes], count)
        move = Reassignment(trial.name, self.random.randrange(trial.partitions), replicas)
        if self.random.random() < 0.2:
            move = Reassignment(trial.name, move.index, None)
        self._world.referee.note(f"{trial.name}-{move.index} moves to {move.replicas}")
        self.run(self._move(move))

    async def _move(self, move: Reassignment) -> None:
        answer = await self._ask(AlterReassignments([move]))
        self._world.referee.note(f"the move of {move.index}: {answer[0].code.name if answer else 'no answer'}")

    def delete_records(self) -> None:
        """Of a topic from which people delete: up to somewhere below what was acknowledged."""
        trials = [trial for trial in self._trials.values() if trial.cleanup is Cleanup.DELETE]
        for trial in trials:
            history = self._cleaning.choice(trial.histories)
            acknowledged = [offset for p in trial.producers if p.index == history.index for _, offset in p.acknowledged]
            if acknowledged:
                self.run(self._delete_records(trial.name, history, self._cleaning.choice(acknowledged)))

    async def _delete_records(self, topic: str, history: History, offset: int) -> None:
        history.deletable = max(history.deletable, offset)
        part = SimpleNamespace(partition_index=history.index, offset=offset)
        request = SimpleNamespace(timeout=DELETE_TIMEOUT_MS, topics=[SimpleNamespace(name=topic, partitions=[part])])
        serving = [node for node in self._world.nodes if node.life is not None and node.life.serves]
        for node in serving:
            if node.life is None:  # it ended while another one was asked
                continue
            question = handled(node, DELETE_RECORDS, request)
            task = self._world.loop.within(node.life.process, question, data=True)
            await asyncio.wait([task], timeout=COMMAND_SECONDS)
            if not task.done() or isinstance(task.exception(), Disconnected | Crash):
                continue
            (answer,) = task.result().topics[0].partitions
            self._world.referee.note(f"records of {topic}-{history.index} below {offset}: {answer}")
            if answer.error_code == Code.none:
                history.deleted = max(history.deleted, offset)
                return

    async def _delete_for_sure(self, trial: Trial, history: History) -> None:
        """Of a fleet that is whole, records can be deleted.

        What was deleted before may be there again: as in Kafka, where a log begins is checkpointed now and then, and
        after a crash of all replicas each begins where its checkpoint says.
        """
        history.deleted = 0
        acknowledged = [offset for p in trial.producers if p.index == history.index for _, offset in p.acknowledged]
        offset, deadline = max(acknowledged) // 2 + 1, self._world.loop.time() + EQUAL_SECONDS_MAX
        while history.deleted < offset:
            if self._world.loop.time() > deadline:
                raise Broken(f"records of {history} cannot be deleted within {EQUAL_SECONDS_MAX:.0f} s")
            await self._delete_records(trial.name, history, offset)
            await asyncio.sleep(0.1)

    def is_settled(self) -> bool:
        return all(chore.done() for chore in self._chores)

    async def _ask(self, command: Command[Any]) -> Any:
        """Through any node that serves; None when it did not answer, or refused."""
        task = await self.asked(command, self.random)
        try:
            return task.result() if task is not None else None
        except KafkaError:
            return None

    async def asked(self, command: Command[Any], random: Random) -> "asyncio.Task[Any] | None":
        """None when the node, which is drawn, did not answer in time, or there is none."""
        serving = [node.life for node in self._world.nodes if node.life is not None and node.life.serves]
        if not serving:
            return None
        life = random.choice(serving)
        if isinstance(command, RotateScramCredentials):  # by an operator, whom only the active controller answers
            life = next((each for each in serving if each.quorum.controller.is_active), life)
            task = self._world.loop.within(life.process, life.quorum.controller.submit(command))
        else:
            task = self._world.loop.within(life.process, life.controller.submit(command), data=True)
        await asyncio.wait([task], timeout=COMMAND_SECONDS)
        if not task.done():
            task.cancel()
            return None
        return task

    # -- clients

    def start_clients(self) -> None:
        for trial in self._trials.values():
            self._start_clients(trial)

    def _start_clients(self, trial: Trial) -> None:
        world = self._world
        place = (world.network, world.referee)
        for number in range(trial.partitions + self.random.randint(0, 1)):
            index = number % trial.partitions
            keys = KEYS if trial.cleanup is Cleanup.COMPACT else 0
            producer = self.producer_kind
            trial.producers.append(producer(self._producers_made, trial.id, index, *place, world.chance(), keys=keys))
            self._producers_made += 1
        trial.consumers = self._consumers(trial)
        for client in (*trial.producers, *trial.consumers):
            self.run(client.run())

    def _consumers(self, trial: Trial) -> list[Consumer | FetchConsumer]:
        world = self._world
        place = (world.network, world.referee)
        if not world.options.fetching:
            return [Consumer(trial.id, index, *place, world.chance()) for index in range(trial.partitions)]
        streams = [Random(self._fetching.getrandbits(64)) for _ in range(FETCHERS)]
        return [FetchConsumer(trial.id, trial.histories, *place, stream) for stream in streams]

    def run(self, doing: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        def ended(task: "asyncio.Task[None]") -> None:
            if (error := task.exception()) is not None:
                self._world.referee.object(f"a client ends: {error!r}")

        task = asyncio.ensure_future(doing)
        task.add_done_callback(ended)
        return task

    @property
    def partitions(self) -> int:
        """Of the topic that stays."""
        return self._trials[STAYS].partitions

    @property
    def producers(self) -> list[Producer]:
        return [producer for trial in self._trials.values() for producer in trial.producers]

    @property
    def acknowledged(self) -> int:
        return self._of_deleted + sum(len(producer.acknowledged) for producer in self.producers)

    # -- the end

    async def judge(self) -> None:
        for producer in self.producers:
            producer.stopping = True
        await asyncio.sleep(5.0)
        for trial in self._trials.values():
            for index in range(trial.partitions):
                if trial.cleanup is Cleanup.DELETE:
                    await self._delete_for_sure(trial, trial.histories[index])
                await self._judge(trial, index)
            for consumer in trial.consumers:
                if isinstance(consumer, FetchConsumer):
                    await self._until_consumed(trial, consumer)

    async def _until_consumed(self, trial: Trial, consumer: FetchConsumer) -> None:
        """A consumer gets to the end, and has then seen what it should."""
        leaders = [_partition(self._hosts(trial, index)[0], trial.id, index) for index in range(trial.partitions)]

        def behind() -> int:
            return sum(max(q.high_watermark - p.offset, 0) for p, q in zip(consumer.places, leaders, strict=True))

        while missing := behind():  # of small segments a consumer gets one with each answer: only progress has a limit
            await self._world.until(
                lambda missing=missing: behind() < missing,  # type: ignore[misc]
                EQUAL_SECONDS_MAX,
                f"a consumer of {trial.name} is sent nothing behind {[place.offset for place in consumer.places]}",
            )
        for place in consumer.places:
            if trial.cleanup is Cleanup.COMPACT:
                place.history.check_taken(place.offset, place.taken)

    async def _judge(self, trial: Trial, index: int) -> None:
        referee = self._world.referee
        hosts = self._hosts(trial, index)
        replicas = [_partition(node, trial.id, index) for node in hosts]
        await self._world.until(
            lambda: len({_extent(p, trial.cleanup) for p in replicas}) == 1,
            EQUAL_SECONDS_MAX,
            f"{replicas[0]} is not the same everywhere",
        )
        referee.check_equal(replicas)
        for node, partition in zip(hosts, replicas, strict=True):
            referee.committed(f"node {node.id}", partition)
        acknowledged = {p.number: p.acknowledged for p in trial.producers if p.index == index}
        for node, partition in zip(hosts, replicas, strict=True):
            referee.check_acknowledged(trial.histories[index], f"node {node.id}", partition, acknowledged)

    def _hosts(self, trial: Trial, index: int) -> "list[SimNode]":
        image = self._world.image()
        if image is None or trial.id not in image.topics_by_id:
            raise Broken(f"nobody knows {trial.name}")
        return [self._world.network.nodes[each] for each in image.topics_by_id[trial.id].partitions[index].replicas]


def _extent(partition: Partition, cleanup: Cleanup) -> tuple[int, ...]:
    """What replicas have in common once they are in sync; each cleans by itself, but for what clients delete."""
    start = partition.log.start_offset if cleanup is Cleanup.DELETE else 0
    return start, partition.high_watermark, partition.log.end_offset


def _partition(node: "SimNode", topic_id: uuid.UUID, index: int) -> Partition:
    assert node.life is not None and node.life.host is not None
    return node.life.host.require(topic_id.bytes, index)
