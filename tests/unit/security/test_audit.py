"""The audit trail: lines in a file that is rotated, repetitions counted, no text of a client's unbounded or raw."""

import json
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from ottla.errors import Refusal
from ottla.security.audit import AuditFile
from ottla.security.core.audit import AuditEvent
from ottla.security.core.principals import Principal
from ottla.security.core.repetition import Repetition
from ottla.system import RealClock

ANN = Principal("User", "ann")
BEGIN_MS = 1_700_000_000_000


class Clock(RealClock):
    now_ms = BEGIN_MS

    def wall_ms(self) -> int:
        return self.now_ms


def event(**changes: Any) -> AuditEvent:
    fields: dict[str, Any] = {
        "principal": ANN, "host": "10.0.0.1", "listener": "SASL", "action": "produce", "resource": "Topic:orders",
        "verdict": "denied", "reason": "WRITE", **changes,
    }  # fmt: skip
    return AuditEvent(**fields)


def trail(path: Path, clock: Clock | None = None, **limits: int) -> AuditFile:
    return AuditFile(str(path), clock=clock or Clock(), **{"size_bytes_max": 1 << 20, "files_max": 3, **limits})


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_line_says_who_did_what_when(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    written = trail(path)
    written.record(event())
    written.close()
    assert lines(path) == [
        {
            "time": "2023-11-14T22:13:20.000Z",
            "principal": "User:ann",
            "host": "10.0.0.1",
            "listener": "SASL",
            "action": "produce",
            "resource": "Topic:orders",
            "verdict": "denied",
            "reason": "WRITE",
        }
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_texts_of_clients_are_cut_and_escaped(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    written = trail(path)
    written.record(event(resource="Topic:a\n\x1b[2J\u202e\x85" + "x" * 40_000, principal=Principal("User", "é" * 1000)))
    written.close()
    assert path.read_bytes().isascii()
    (line,) = lines(path)
    assert line["resource"].startswith("Topic:a\n\x1b[2J\u202e\x85xxx")
    assert len(line["resource"]) < 550
    assert line["principal"].endswith("é… 500 more characters")


def test_denials_that_come_again_are_counted_and_changes_are_not(tmp_path: Path) -> None:
    path, clock = tmp_path / "audit.log", Clock()
    written = trail(path, clock)
    for _ in range(5):
        written.record(event())
    for _ in range(2):
        written.record(event(verdict="allowed", action="create_topics"))
    clock.now_ms += 61_000
    written.record(event())
    written.record(event())
    written.close()
    told = [(line["action"], line.get("repeated")) for line in lines(path)]
    assert [count for action, count in told if action == "produce"] == [None, 4, None, 1]
    assert told.count(("create_topics", None)) == 2


def test_files_are_rotated_by_size_and_so_many_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    for number in range(12):
        written = trail(path, size_bytes_max=400)
        written.record(event(resource=f"Topic:{number}"))
        written.record(event(resource=f"Topic:{number}-again"))
        written.close()
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == ["audit.log", "audit.log.1", "audit.log.2"]
    told = [line["resource"] for name in reversed(names) for line in lines(tmp_path / name)]
    assert told[-1] == "Topic:11-again"
    assert all((tmp_path / name).stat().st_size <= 400 for name in names)


def test_what_does_not_fit_is_dropped_counted_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.security.audit.LINES_WAITING_MAX", 3)
    path, go_on = tmp_path / "audit.log", threading.Event()
    written = trail(path)
    real = written._file.write

    def slow(data: bytes) -> None:
        go_on.wait(10)
        real(data)

    written._file.write = slow  # type: ignore[method-assign]
    for number in range(50):
        written.record(event(resource=f"Topic:{number}"))
    dropped = written.dropped
    assert 40 <= dropped < 50
    go_on.set()
    written.close()
    told = lines(path)
    assert len(told) == 50 - dropped
    assert sum(line.get("dropped", 0) for line in told) == dropped


def test_a_disk_that_fails_costs_lines_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    written = trail(tmp_path / "audit.log")
    real, failing = written._file.write, [True]

    def full(data: bytes) -> None:
        if failing:
            raise OSError(28, "No space left on device")
        real(data)

    written._file.write = full  # type: ignore[method-assign]
    written.record(event(resource="Topic:lost"))
    while not written.dropped:
        pass
    failing.clear()
    written.record(event(resource="Topic:kept"))
    written.close()
    (line,) = lines(tmp_path / "audit.log")
    assert (line["resource"], line["dropped"]) == ("Topic:kept", 1)
    assert "cannot be written" in caplog.text


def test_a_file_that_cannot_be_opened_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"audit.log.file=.*No such file or directory"):
        trail(tmp_path / "nowhere" / "audit.log")


def test_repetitions_are_bounded_and_no_count_is_lost() -> None:
    repetition = Repetition(window_ms=100, known_max=2)
    one, two, three = (event(resource=f"Topic:{number}") for number in range(3))
    assert [repetition.left_out(each, 0) for each in (one, one, two, three)] == [0, None, 0, 0]
    assert repetition.ended(50) == [(one, 1)]
    assert repetition.left_out(three, 60) is None
    assert repetition.ended(150) == [(three, 1)]
    assert repetition.all_left_out() == []
