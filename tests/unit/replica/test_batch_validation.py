"""Opening a client's batch: what is done on the loop, what in the worker, in which order, and what ends it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from ottla.errors import Code, KafkaError
from ottla.replica import batch_validation
from ottla.replica.batch_validation import BatchValidation
from ottla.replica.serial_queue import SerialQueue
from ottla.storage.core.settings import LogSettings
from ottla.storage.workers import recompress as recompressing
from ottla.storage.workers.recompress import opened
from ottla.storage.workers.worker import InlineWorker, WorkerDied
from ottla.wire.batch import Batch, crc_matches, parse
from ottla.wire.compression import Codec
from ottla.wire.records import Record, encode, iterate

COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]


def batch_of(*sizes: int, codec: Codec = Codec.NONE, key: bytes | None = b"k") -> Batch:
    return parse(encode([Record(i, 0, key, bytes(size)) for i, size in enumerate(sizes)], codec=codec))


def settings(**changed: Any) -> LogSettings:
    return LogSettings(**changed)


class Counting(InlineWorker):
    def __init__(self) -> None:
        self.jobs = 0

    async def run(self, function: Callable[..., Any], *arguments: object) -> Any:
        self.jobs += 1
        return await super().run(function, *arguments)


def on_a_loop(scenario: Callable[[BatchValidation, Counting], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        worker = Counting()
        await scenario(BatchValidation(worker), worker)

    asyncio.run(main())


@pytest.mark.parametrize("codec", list(Codec))
def test_small_batches_are_opened_here(codec: Codec) -> None:
    async def scenario(validation: BatchValidation, worker: Counting) -> None:
        assert validation.check_on_loop(batch_of(10, 100_000, codec=codec), settings(), "t-0")
        assert worker.jobs == 0

    on_a_loop(scenario)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_what_decompresses_to_more_than_the_limit_is_opened_in_the_worker(codec: Codec) -> None:
    async def scenario(validation: BatchValidation, worker: Counting) -> None:
        batch = batch_of(batch_validation.HERE_BYTES_MAX, codec=codec)
        assert not validation.check_on_loop(batch, settings(), "t-0")
        assert await validation.prepared(batch, settings(), "t-0", client=1) is batch
        assert worker.jobs == 1

    on_a_loop(scenario)


def test_uncompressed_batches_have_a_limit_too() -> None:
    async def scenario(validation: BatchValidation, worker: Counting) -> None:
        batch = batch_of(batch_validation.UNCOMPRESSED_HERE_BYTES_MAX)
        large = settings(max_message_bytes=100 << 20)
        assert not validation.check_on_loop(batch, large, "t-0")
        assert await validation.prepared(batch, large, "t-0", client=1) is batch
        assert validation.check_on_loop(batch, settings(max_message_bytes=1000), "t-0"), (
            "it is refused when it is appended"
        )

    on_a_loop(scenario)


def test_one_turn_of_the_loop_opens_so_much_and_the_next_one_again() -> None:
    async def scenario(validation: BatchValidation, worker: Counting) -> None:
        size = batch_validation.HERE_BYTES_MAX * 3 // 4
        batch = batch_of(size, codec=Codec.ZSTD)
        tried = [validation.check_on_loop(batch, settings(), "t-0") for _ in range(30)]
        assert tried[0] and not tried[-1]
        assert sum(tried) <= batch_validation.TURN_BYTES_MAX // size
        await asyncio.sleep(0)
        assert validation.check_on_loop(batch, settings(), "t-0")

    on_a_loop(scenario)


@pytest.mark.parametrize("tried", [False, True])
@pytest.mark.parametrize("codec", COMPRESSED)
def test_flaws_are_told_here_and_from_the_worker(codec: Codec, tried: bool) -> None:
    good = encode([Record(0, 0, b"k", b"v"), Record(1, 0, b"k", b"v")], codec=codec)
    flawed = parse(good)
    flawed.count = 3
    data = bytearray(good)
    data[57:61] = (3).to_bytes(4, "big")
    flawed.data = bytes(data)

    async def scenario(validation: BatchValidation, worker: Counting) -> None:
        with pytest.raises(KafkaError, match="claims 3 records and holds 2") as raised:
            await validation.prepared(flawed, settings(), "t-0", client=1, tried=tried)
        assert raised.value.code is Code.invalid_record
        assert worker.jobs == tried

    on_a_loop(scenario)


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize("source", list(Codec))
@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_gets_its_own_codec(source: Codec, wanted: str, size: int) -> None:
    async def scenario(validation: BatchValidation, worker: Counting) -> None:
        batch = batch_of(size, codec=source)
        found = await validation.prepared(batch, settings(compression_type=wanted), "t-0", client=1)
        assert found.codec == batch_validation.CODECS[wanted]
        assert crc_matches(found)
        assert list(iterate(found)) == list(iterate(batch))
        assert worker.jobs == (size > 1000 and found.codec != source)

    on_a_loop(scenario)


def test_recompression_to_nothing_stops_where_the_topic_would_refuse() -> None:
    async def scenario(validation: BatchValidation, worker: Counting) -> None:
        bomb = batch_of(5_000_000, codec=Codec.ZSTD)
        with pytest.raises(KafkaError, match="more than 1048527 bytes") as raised:
            await validation.prepared(bomb, settings(compression_type="uncompressed"), "t-0", client=1)
        assert raised.value.code is Code.message_too_large

    on_a_loop(scenario)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("size", [10, 2_000_000])
def test_a_compacted_topic_needs_keys(codec: Codec, size: int) -> None:
    async def scenario(validation: BatchValidation, worker: Counting) -> None:
        compacted = settings(cleanup_policies=frozenset({"compact"}), max_message_bytes=100 << 20)
        await validation.prepared(batch_of(size, codec=codec), compacted, "t-0", client=1)
        with pytest.raises(KafkaError, match="without key in topic partition t-0"):
            await validation.prepared(batch_of(size, codec=codec, key=None), compacted, "t-0", client=1)

    on_a_loop(scenario)


def test_a_worker_that_dies_is_told_with_a_code_that_clients_retry() -> None:
    class Dying(InlineWorker):
        async def run(self, function: Callable[..., Any], *arguments: object) -> Any:
            raise WorkerDied("the worker process 7 ended with code -9 during a job")

    async def main() -> None:
        with pytest.raises(KafkaError, match=r"code -9.*nothing was written") as raised:
            await BatchValidation(Dying()).prepared(batch_of(2_000_000, codec=Codec.LZ4), settings(), "t-0", client=1)
        assert raised.value.code is Code.kafka_storage_error

    asyncio.run(main())


def test_opening_has_limits_of_bytes_and_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(batch_of(5_000_000, codec=Codec.ZSTD).data)
    assert opened(data, Codec.ZSTD, None, None) is None
    monkeypatch.setattr(recompressing, "CHECKED_BYTES_MAX", 4_000_000)
    with pytest.raises(KafkaError, match="more than 4000000 bytes") as raised:
        opened(data, Codec.ZSTD, None, None)
    assert raised.value.code is Code.message_too_large
    monkeypatch.setattr(recompressing, "CHECKED_BYTES_MAX", 1 << 30)
    monkeypatch.setattr(recompressing, "OPENING_CPU_S_MAX", -1.0)
    with pytest.raises(KafkaError, match="take longer than") as raised:
        opened(data, Codec.ZSTD, None, None)
    assert raised.value.code is Code.message_too_large


def test_a_line_keeps_the_order_of_each_key_and_no_other() -> None:
    async def main() -> None:
        line, done, gate = SerialQueue(), [], asyncio.Event()

        async def work(name: str, *, waits: bool = False, fails: bool = False) -> None:
            if waits:
                await gate.wait()
            done.append(name)
            if fails:
                raise KafkaError(Code.invalid_record)

        tasks = [line.join(1, work("a1", waits=True, fails=True)), line.join(1, work("a2")), line.join(2, work("b1"))]
        await tasks[2]
        assert done == ["b1"]
        assert 1 in line and 2 not in line
        gate.set()
        await asyncio.wait(tasks)
        assert done == ["b1", "a1", "a2"]
        await asyncio.sleep(0)
        assert not line

    asyncio.run(main())
