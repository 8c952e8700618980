"""What is collected: through OpenTelemetry, in a thread, not more often than once a second."""

import asyncio

import pytest
from ottla.ports import Clock
from ottla.system import RealThreads
from ottla.telemetry.lag import WINDOW_SECONDS, LoopLag
from ottla.telemetry.meters import Meters, Read


class StoppedClock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return 0


def collected(readings: dict[str, Read], clock: Clock | None = None) -> str:
    async def scene() -> str:
        meters = Meters(lambda: readings, clock=clock or StoppedClock(), threads=RealThreads(1))
        return (await meters.prometheus()).decode()

    return asyncio.run(scene())


def test_what_is_there_is_told() -> None:
    told = collected(
        {
            "ottla_request_bytes": lambda: [((), 7)],
            "kafka_network_requestmetrics_requests": lambda: [(("Fetch",), 3), (("Produce",), 4)],
        }
    )
    assert "\nottla_request_bytes 7\n" in told
    assert 'kafka_network_requestmetrics_requests_total{request="Fetch"} 3\n' in told
    assert 'kafka_network_requestmetrics_requests_total{request="Produce"} 4\n' in told
    assert "ottla_answer_bytes" not in told, "nobody reads it"


def test_one_that_cannot_be_read_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> list[tuple[tuple[str, ...], float]]:
        raise OSError("gone")

    told = collected({"process_open_fds": broken, "ottla_answer_bytes": lambda: [((), 9)]})
    assert "ottla_answer_bytes 9" in told and "process_open_fds" not in told
    assert "process_open_fds cannot be read" in caplog.text


def test_who_asks_often_is_told_the_same() -> None:
    asked = 0

    def count() -> list[tuple[tuple[str, ...], float]]:
        nonlocal asked
        asked += 1
        return [((), asked)]

    async def scene() -> list[bytes]:
        clock = StoppedClock()
        meters = Meters(lambda: {"ottla_answer_bytes": count}, clock=clock, threads=RealThreads(1))
        first, second = await asyncio.gather(meters.prometheus(), meters.prometheus())
        clock.now += 2.0
        return [first, second, await meters.prometheus()]

    first, second, third = asyncio.run(scene())
    assert first == second != third
    assert asked == 2


def test_lag_is_remembered_for_a_while() -> None:
    clock = StoppedClock()
    lag = LoopLag(clock)
    lag.note(0.5)
    lag.note(0.1)
    assert lag.largest_s == 0.5
    clock.now += WINDOW_SECONDS + 1
    lag.note(0.2)
    assert lag.largest_s == 0.5, "of the window before"
    clock.now += WINDOW_SECONDS + 1
    lag.note(0.1)
    assert lag.largest_s == 0.2


def test_a_loop_that_is_held_is_late() -> None:
    import time

    from ottla.system import RealClock

    async def scene() -> float:
        lag = LoopLag(RealClock())
        lag.start()
        time.sleep(0.4)  # noqa: ASYNC251 (that is what it is about)
        await asyncio.sleep(0.05)
        lag.stop()
        return lag.largest_s

    assert 0.1 < asyncio.run(scene()) < 5
