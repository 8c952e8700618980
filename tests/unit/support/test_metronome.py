"""What the machine is late by itself."""

import threading

from support.metronome import Metronomes, Noise, beat, summary
from support.neighbour import Seen


def test_beats_missed_in_a_pause_count_as_late() -> None:
    """As the records of a neighbour that is sent to on schedule."""
    over = threading.Event()
    threading.Timer(0.2, over.set).start()
    late_ms = beat(over)
    assert 40 < len(late_ms) < 100
    assert summary([0.0] * 980 + [90.0] * 20) == {"p99_ms": 90.0, "worst_ms": 90.0}


def test_every_processor_is_measured() -> None:
    metronomes = Metronomes()
    noise = metronomes.finish()
    assert 0 <= noise.p99_ms <= noise.worst_ms


def test_a_neighbour_is_judged_with_the_machine_in_mind() -> None:
    times = [1.0] * 90 + [120.0] * 10
    late = Seen(times, times, 100, [], Noise(p99_ms=30.0, worst_ms=200.0))
    late.check()
    for unjust in (Seen(times, times, 100, []), Seen([650.0], [650.0], 1, [], Noise(600.0, 100.0))):
        try:
            unjust.check()
        except AssertionError:
            continue
        raise RuntimeError("not noticed")
