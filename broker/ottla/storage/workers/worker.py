"""Runs record-by-record work in a separate process: a thread would compete with the event loop for the interpreter's
lock.

The process starts with the first job, runs jobs one after another at low priority, and ends when it has been idle or
when its input closes (so it never outlives the broker). A job is a module-level function with picklable arguments. When
the process dies, its jobs fail with WorkerDied and the next job starts a new process.
"""

import asyncio
import pickle
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ottla.storage.workers.worker_process import LENGTH

__all__ = ["InlineWorker", "ProcessWorker", "Worker", "WorkerDied"]

T = TypeVar("T")
IDLE_SECONDS_MAX = 60.0
JOBS_MAX = 64  # queued in the process; further callers wait
CLOSE_SECONDS_MAX = 2.0


class WorkerDied(Exception):
    """The process ended while it had a job."""


class Worker(Protocol):
    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """The function's value; raises what it raised."""

    async def close(self) -> None: ...


class InlineWorker:
    """Runs jobs in this process: for simulations and tests."""

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        return function(*arguments)

    async def close(self) -> None:
        pass


class ProcessWorker:
    def __init__(self, *, niceness: int = 10, idle_seconds: float = IDLE_SECONDS_MAX) -> None:
        self._niceness = niceness
        self._idle_seconds = idle_seconds
        self._session: _Session | None = None
        self._starting = asyncio.Lock()
        self._places = asyncio.Semaphore(JOBS_MAX)
        self._idle: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process id; None while no process runs."""
        return self._session.process.pid if self._session and self._session.alive else None

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        job = pickle.dumps((function, arguments), protocol=pickle.HIGHEST_PROTOCOL)
        async with self._places:
            session = await self._running()
            try:
                return await session.submit(job)  # type: ignore[no-any-return]
            finally:
                self._watch_idleness(session)

    async def _running(self) -> "_Session":
        async with self._starting:
            if self._closed:
                raise WorkerDied("the worker process is closed")
            if self._session is None or not self._session.alive:
                self._session = await _Session.start(niceness=self._niceness)
            return self._session

    def _watch_idleness(self, session: "_Session") -> None:
        if self._idle:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(self._idle_seconds, session.end_if_idle)

    async def close(self) -> None:
        self._closed = True
        if self._idle:
            self._idle.cancel()
        if self._session:
            await self._session.close()


class _Session:
    """One run of the process. Replies arrive in the order of the jobs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.alive = True
        self._jobs: deque[asyncio.Future[Any]] = deque()
        self._reader = asyncio.get_running_loop().create_task(self._read_replies())

    @classmethod
    async def start(cls, *, niceness: int) -> "_Session":
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-m", "ottla.storage.workers.worker_process", str(niceness))
        return cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe))

    async def submit(self, job: bytes) -> Any:
        assert self.process.stdin
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._jobs.append(reply)
        self.process.stdin.write(LENGTH.pack(len(job)))
        self.process.stdin.write(job)
        return await reply

    async def _read_replies(self) -> None:
        assert self.process.stdout
        try:
            while True:
                (length,) = LENGTH.unpack(await self.process.stdout.readexactly(LENGTH.size))
                failed, value = pickle.loads(await self.process.stdout.readexactly(length))
                self._settle(self._jobs.popleft(), failed=failed, value=value)
        except asyncio.IncompleteReadError:
            pass
        finally:
            self.alive = False
            await self._fail_jobs()

    def _settle(self, reply: "asyncio.Future[Any]", *, failed: bool, value: Any) -> None:
        if reply.done():  # its caller was cancelled
            return
        if failed:
            reply.set_exception(value)
        else:
            reply.set_result(value)

    async def _fail_jobs(self) -> None:
        code = await self.process.wait()
        while self._jobs:
            died = WorkerDied(f"the worker process {self.process.pid} ended with code {code} during a job")
            self._settle(self._jobs.popleft(), failed=True, value=died)

    def end_if_idle(self) -> None:
        if not self._jobs:
            self.end()

    def end(self) -> None:
        self.alive = False
        assert self.process.stdin
        self.process.stdin.close()

    async def close(self) -> None:
        """End the process; a running job is killed, and its files are written again next time."""
        self.end()
        if self._jobs and self.process.returncode is None:
            self.process.kill()
        done, _ = await asyncio.wait([self._reader], timeout=CLOSE_SECONDS_MAX)
        if not done:
            self.process.kill()
            await self._reader
