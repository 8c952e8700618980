"""The end of a transaction, with the power cut after every single append: another coordinator finishes it.

Logs are real and are opened again from the disk as after a crash; only the network between the parts is left out.
"""

import asyncio
import contextlib
import uuid
from dataclasses import replace
from types import SimpleNamespace

import pytest
from ottla.coordination.asking import Asking
from ottla.coordination.loading import Loading
from ottla.coordination.writing import WriteRules
from ottla.errors import Code, KafkaError
from ottla.metadata.model.state import PartitionState
from ottla.replica.partition import Partition
from ottla.storage.core.settings import LogSettings
from ottla.storage.directories.files import FileCache
from ottla.storage.log.log import Log
from ottla.system import System
from ottla.txn.coordinator import STATE_TOPIC
from ottla.txn.core import deciding
from ottla.txn.core.deciding import ProducerSession
from ottla.txn.core.states import ENDING, State
from ottla.txn.exchange import Exchange
from ottla.txn.marker_sender import MarkerSender
from ottla.txn.marker_writer import MarkerWriter
from ottla.txn.shard import TransactionShard
from support.logs import T0, make_batch

ID, PRODUCER = "orders", 1000
DATA = [("t", 0), ("t", 1)]
APPENDS = 8  # init, add, data twice, prepare, markers twice, complete


class PowerCut(Exception):
    pass


class Life:
    """From one start of the broker to the next power cut, after `appends_left` more appends."""

    def __init__(self, folder, *, epoch: int, appends_left: int = 10**6) -> None:
        self.system = System()
        self.epoch = epoch
        self.appends_left = appends_left
        self.cut = asyncio.Event()
        self.partitions = {key: self._open(folder, *key) for key in [(STATE_TOPIC, 0), *DATA]}
        self.image = SimpleNamespace(
            partition=lambda *key: SimpleNamespace(leader=0) if key in self.partitions else None
        )
        feed = SimpleNamespace(image=self.image)
        markers = MarkerWriter(self, marked=lambda *_: None)
        exchange = Exchange(Asking(node_id=0, feed=feed, call=None), write_here=markers.write_all)
        self.shard = TransactionShard(
            self.partitions[STATE_TOPIC, 0],
            clock=self.system.clock,
            delivery=MarkerSender(feed=feed, exchange=exchange),
            new_producer_id=self._new_producer_id,
            write_rules=WriteRules(),
        )

    def _open(self, folder, topic, index) -> Partition:
        path = f"{folder}/{topic}-{index}"
        files = FileCache(self.system.disk, 16)
        log = Log.open(path, settings=LogSettings(), system=self.system, files=files, clean=False)
        log.append = self._counted(log.append)  # type: ignore[method-assign]
        made = Partition(
            topic,
            index,
            log,
            topic_id=uuid.uuid4(),
            system=self.system,
            node_id=0,
            high_watermark=log.end_offset,
            on_disk_error=lambda *_: None,
        )
        state = PartitionState(
            index=index, replicas=(0,), isr=(0,), leader=0, leader_epoch=self.epoch, partition_epoch=0
        )
        made.become(state, isr_size_min=1)
        return made

    def _counted(self, append):
        def counted(*args, **named):
            if self.appends_left <= 0:
                self.cut.set()
                raise KafkaError(Code.not_leader_or_follower, "the power is cut")
            self.appends_left -= 1
            return append(*args, **named)

        return counted

    def require(self, topic, index) -> Partition:
        return self.partitions[topic, index]

    async def _new_producer_id(self) -> int:
        return PRODUCER

    async def load(self) -> None:
        await Loading(self.shard, read_bytes_max=1 << 20).run()
        self.shard.loaded()

    async def ask(self, question) -> deciding.Decision:
        """PowerCut when no answer comes any more."""
        answer = asyncio.ensure_future(self.shard.decide(ID, question, patience_s=5.0))
        cut = asyncio.ensure_future(self.cut.wait())
        await asyncio.wait([answer, cut], return_when=asyncio.FIRST_COMPLETED)
        cut.cancel()
        try:
            if not answer.done() or self.cut.is_set():
                answer.cancel()
                raise PowerCut
            return answer.result()
        except KafkaError as error:
            raise PowerCut from error

    def write_data(self) -> None:
        for number, key in enumerate(DATA):
            batch = make_batch(2, producer=(PRODUCER, 0, 0), transactional=True)
            producers = self.partitions[key].log.producers
            ticket = producers.verifications.begin_for(batch, adds_partitions=False, now_ms=T0 + number)
            try:
                self.partitions[key].append(batch, acks_all=True, ticket=ticket)
            except KafkaError as error:
                raise PowerCut from error

    async def end(self, *, commit: bool, version: int) -> deciding.Decision:
        session = ProducerSession(PRODUCER, 0)
        return await self.ask(
            lambda one, fresh: deciding.end(
                one, session, commit=commit, version=version, new_producer_id=fresh, now_ms=T0
            )
        )

    async def settled(self) -> None:
        """Until nothing is being ended, or the power is cut."""
        while self.shard.transactions.get(ID) is not None and self.shard.transactions[ID].state in ENDING:
            if self.cut.is_set():
                raise PowerCut
            await asyncio.sleep(0.001)

    def close(self) -> None:
        self.shard.unload()
        for partition in self.partitions.values():
            partition.log.close(clean=False)


async def live(life: Life, *, commit: bool, version: int) -> None:
    await life.load()
    await life.ask(
        lambda one, fresh: deciding.initiate(
            one,
            transactional_id=ID,
            timeout_ms=60_000,
            expected=None,
            new_producer_id=fresh,
            version=version,
            now_ms=T0,
        )
    )
    await life.ask(lambda one, _: deciding.add(one, ProducerSession(PRODUCER, 0), DATA, now_ms=T0))
    life.write_data()
    await life.end(commit=commit, version=version)
    await life.settled()


def decided(life: Life) -> dict[tuple[str, int], list[str]]:
    """What stands in each data partition, as read_committed sees it."""
    found = {}
    for key in DATA:
        log = life.partitions[key].log
        assert log.last_stable_offset == log.end_offset, f"{key} has an undecided transaction"
        kinds = ["marker" if batch.is_control else "data" for segment in log.segments for _, batch in segment.batches()]
        found[key] = [*kinds, *("aborted" for segment in log.segments for _ in segment.aborted)]
    return found


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("appends", range(2, APPENDS + 1))
def test_the_next_coordinator_finishes(tmp_path, appends, commit, version):
    async def run() -> None:
        first = Life(tmp_path, epoch=1, appends_left=appends)
        with contextlib.suppress(PowerCut):
            await live(first, commit=commit, version=version)
        first.close()
        second = Life(tmp_path, epoch=2)
        await second.load()
        await second.settled()
        # The producer has no answer, or had one: it asks again, and hears the same.
        answer = await second.end(commit=commit, version=version)
        assert answer.code is Code.none and answer.epoch == (1 if version else 0)
        await second.settled()
        assert second.shard.transactions[ID].state is (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT)
        for place in decided(second).values():
            assert place[-1] in ("marker", "aborted") or not place
            if "data" in place:
                assert place.count("data") == 1 and ("aborted" in place) == (not commit)
        second.close()

    asyncio.run(run())


@pytest.mark.parametrize("version", [0, 2])
def test_without_a_cut(tmp_path, version):
    async def run() -> None:
        life = Life(tmp_path, epoch=1, appends_left=APPENDS)
        await live(life, commit=True, version=version)
        assert life.appends_left == 0
        assert all(place == ["data", "marker"] for place in decided(life).values())
        life.close()

    asyncio.run(run())


def test_a_coordinator_of_the_past_ends_nothing(tmp_path):
    """It was cut off between its decision and the markers; the next one ended the transaction, and a new one runs."""

    async def run() -> None:
        life = Life(tmp_path, epoch=5)
        await live(life, commit=True, version=0)
        for key in DATA:
            batch = make_batch(2, producer=(PRODUCER, 0, 2), transactional=True)
            producers = life.partitions[key].log.producers
            ticket = producers.verifications.begin_for(batch, adds_partitions=False, now_ms=T0)
            life.partitions[key].append(batch, acks_all=True, ticket=ticket)
        stale = (
            life.shard.transactions[ID]
            .added(DATA, now_ms=T0)
            .ending(deciding.Event.ABORT, version=0, next_producer_id=-1, now_ms=T0)
        )
        delivery = life.shard._delivery
        assert not await delivery.deliver(stale, coordinator_epoch=4, leads=lambda: True)
        assert all(life.partitions[key].last_stable_offset == 3 for key in DATA)
        life.close()

    asyncio.run(run())


def test_a_late_marker_does_not_end_the_next_transaction(tmp_path):
    """With an epoch per transaction, even the same coordinator's marker is known to be late."""

    async def run() -> None:
        life = Life(tmp_path, epoch=5)
        await live(life, commit=True, version=2)
        key = DATA[0]
        batch = make_batch(2, producer=(PRODUCER, 1, 0), transactional=True)
        ticket = life.partitions[key].log.producers.verifications.begin_for(batch, adds_partitions=True, now_ms=T0)
        life.partitions[key].append(batch, acks_all=True, ticket=ticket)
        late = life.shard.transactions[ID].added([key], now_ms=T0)
        order = replace(late, state=State.PREPARE_COMMIT, epoch=1, client_version=2)
        assert await life.shard._delivery.deliver(order, coordinator_epoch=5, leads=lambda: True)
        assert life.partitions[key].last_stable_offset == 3, "the new transaction is still open"
        life.close()

    asyncio.run(run())
