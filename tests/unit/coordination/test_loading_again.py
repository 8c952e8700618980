"""A shard whose loading fails is loaded again, from the beginning, for as long as this broker leads it."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ottla.coordination import coordinator as coordination
from ottla.coordination.coordinator import Coordinator, Surroundings
from ottla.coordination.shard import CoordinatorShard
from ottla.coordination.writing import WriteRules
from ottla.errors import Code, KafkaError
from ottla.system import System

DEADLINE_S = 10.0
INDEX = 3


class Counted(CoordinatorShard):
    """Counts what it has read."""

    holds = "records"

    def __init__(self, partition: Any) -> None:
        super().__init__(partition, clock=System().clock, write_rules=WriteRules())
        self.read = 0

    @property
    def count(self) -> int:
        return self.read

    def replay(self, key: memoryview, value: memoryview | None) -> None:
        self.read += 1

    def loaded(self) -> None:
        self.loading = False

    def unload(self) -> None:
        self.ended = True


class Failing(Coordinator[Counted]):
    """Each loading reads a record, then fails as `failures` says, while there are any."""

    def __init__(self, *failures: Exception) -> None:
        around = Surroundings(*[cast(Any, SimpleNamespace())] * 2, System(), *[cast(Any, SimpleNamespace())] * 3)
        super().__init__(cast(Any, SimpleNamespace(name="states")), around)
        self.failures = list(failures)
        self.made: list[Counted] = []
        self.tried = asyncio.Event()
        log = SimpleNamespace(start_offset=0, end_offset=10)
        self.partition = SimpleNamespace(leader_epoch=0, view=object(), log=log)

    def _new_shard(self, partition: Any) -> Counted:
        self.made.append(Counted(partition))
        return self.made[-1]

    def _loading(self, shard: Counted) -> Any:
        async def run() -> bool:
            shard.replay(memoryview(b""), None)
            self.tried.set()
            if self.failures:
                raise self.failures.pop(0)
            return True

        return SimpleNamespace(run=run, skipped=0, records=1)

    def _upkeep(self) -> Any:
        return ()

    def begin(self) -> None:
        self._begin(INDEX, cast(Any, self.partition))

    def has(self, shard: Counted) -> bool:
        return self._shards.get(INDEX) is shard


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordination, "LOAD_RETRY_SECONDS_MIN", 0.001)


def test_it_is_loaded_in_the_end() -> None:
    async def run() -> None:
        failing = Failing(KafkaError(Code.kafka_storage_error), OSError("the disk"), ValueError("a bug"))
        failing.begin()
        await asyncio.gather(*failing._tasks)
        assert [one.read for one in failing.made] == [1] * 4, "each begins with nothing"
        assert [one.ended for one in failing.made] == [True, True, True, False]
        assert failing.has(failing.made[-1]) and not failing.made[-1].loading
        await failing.stop()

    asyncio.run(asyncio.wait_for(run(), DEADLINE_S))


def test_not_when_another_broker_leads() -> None:
    async def run() -> None:
        failing = Failing(*[KafkaError(Code.kafka_storage_error)] * 3)
        failing.begin()
        await failing.tried.wait()
        failing.partition.leader_epoch = 1
        await asyncio.gather(*failing._tasks)
        assert len(failing.made) <= 2, "whoever leads in the next epoch begins with its own"
        await failing.stop()

    asyncio.run(asyncio.wait_for(run(), DEADLINE_S))
