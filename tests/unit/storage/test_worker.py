"""The worker process: lazily started, honest about failures, gone when idle or when its broker is."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import psutil
import pytest
from ottla.errors import Code, KafkaError
from ottla.storage.workers.worker import InlineWorker, ProcessWorker, WorkerDied
from ottla.wire.compression import Codec, compress, decompress


def using(scenario: Callable[[ProcessWorker], Awaitable[None]], *, idle_seconds: float = 60) -> None:
    async def main() -> None:
        worker = ProcessWorker(idle_seconds=idle_seconds)
        try:
            await asyncio.wait_for(scenario(worker), 30)
        finally:
            await worker.close()
        assert worker.pid is None

    asyncio.run(main())


async def gone(pid: int) -> bool:
    for _ in range(100):
        if not psutil.pid_exists(pid):
            return True
        await asyncio.sleep(0.05)
    return False


def test_runs_in_another_process_and_in_order() -> None:
    async def scenario(worker: ProcessWorker) -> None:
        assert worker.pid is None, "starts with the first job only"
        pid = await worker.run(os.getpid)
        assert pid == worker.pid != os.getpid()
        assert psutil.Process(pid).nice() >= 10
        data = os.urandom(3_000_000)
        packed = await asyncio.gather(*(worker.run(compress, codec, data) for codec in Codec))
        assert [bytes(decompress(codec, one)) for codec, one in zip(Codec, packed, strict=True)] == [data] * 5
        assert await worker.run(os.getpid) == pid

    using(scenario)


def test_errors_come_back_as_they_were() -> None:
    async def scenario(worker: ProcessWorker) -> None:
        with pytest.raises(KafkaError, match="gzip") as raised:
            await worker.run(decompress, Codec.GZIP, b"nonsense")
        assert raised.value.code is Code.invalid_record
        with pytest.raises(FileNotFoundError):
            await worker.run(os.stat, "/nowhere/at/all")
        assert await worker.run(abs, -3) == 3

    using(scenario)


def test_a_printing_job_does_not_disturb_the_replies() -> None:
    async def scenario(worker: ProcessWorker) -> None:
        await worker.run(print, "hello")
        assert await worker.run(abs, -3) == 3

    using(scenario)


def test_death_fails_its_jobs_and_the_next_job_starts_another() -> None:
    async def scenario(worker: ProcessWorker) -> None:
        first = await worker.run(os.getpid)
        jobs = [asyncio.ensure_future(worker.run(time.sleep, 20)), asyncio.ensure_future(worker.run(abs, 1))]
        await asyncio.sleep(0.1)
        psutil.Process(first).kill()
        outcomes = await asyncio.gather(*jobs, return_exceptions=True)
        assert [type(one) for one in outcomes] == [WorkerDied, WorkerDied], outcomes
        assert "code -9" in str(outcomes[0])
        assert await worker.run(os.getpid) != first

    using(scenario)


def test_a_cancelled_caller_does_not_mix_up_the_replies() -> None:
    async def scenario(worker: ProcessWorker) -> None:
        slow = asyncio.ensure_future(worker.run(time.sleep, 0.3))
        await asyncio.sleep(0.1)
        slow.cancel()
        assert await worker.run(abs, -7) == 7

    using(scenario)


def test_ends_when_idle_and_starts_again() -> None:
    async def scenario(worker: ProcessWorker) -> None:
        first = await worker.run(os.getpid)
        await worker.run(time.sleep, 0.4)  # longer than the idle time, but not idle
        assert worker.pid == first
        assert await gone(first)
        assert worker.pid is None
        assert await worker.run(os.getpid) != first

    using(scenario, idle_seconds=0.2)


def test_close_ends_a_busy_process() -> None:
    pids: list[int] = []

    async def scenario(worker: ProcessWorker) -> None:
        pids.append(await worker.run(os.getpid))
        stuck = asyncio.ensure_future(worker.run(time.sleep, 20))
        await asyncio.sleep(0.1)
        started = time.monotonic()
        await worker.close()
        assert time.monotonic() - started < 2
        assert isinstance((await asyncio.gather(stuck, return_exceptions=True))[0], WorkerDied)
        with pytest.raises(WorkerDied, match="closed"):
            await worker.run(abs, 1)

    using(scenario)
    assert not psutil.pid_exists(pids[0])


def test_does_not_survive_a_killed_broker() -> None:
    program = (
        "import asyncio, os\nfrom ottla.storage.workers.worker import ProcessWorker\n"
        "async def main():\n    w = ProcessWorker()\n    print(await w.run(os.getpid), flush=True)\n"
        "    await asyncio.sleep(60)\nasyncio.run(main())\n"
    )
    broker = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert broker.stdout
    pid = int(broker.stdout.readline())
    broker.kill()
    broker.wait()
    assert asyncio.run(gone(pid))


def test_inline_is_the_same_without_a_process() -> None:
    assert asyncio.run(InlineWorker().run(os.getpid)) == os.getpid()
