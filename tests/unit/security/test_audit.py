"""The audit trail: lines in a file that is rotated, repetitions counted, no text of a client's unbounded or raw."""

import json
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from ottla.errors import Refusal
from ottla.security.audit import ADDRESS_LINES_MAX, STRANGERS, STRANGERS_LINES_MAX, USER_LINES_MAX, AuditFiles
from ottla.security.core.audit import AuditEvent
from ottla.security.core.principals import ANONYMOUS, Principal
from ottla.security.core.repetition import Repetition
from ottla.security.core.surplus import Surplus
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


def trail(path: Path, clock: Clock | None = None, **limits: int) -> AuditFiles:
    return AuditFiles(str(path), clock=clock or Clock(), **{"size_bytes_max": 1 << 20, "files_max": 3, **limits})


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
    names = sorted(each.name for each in tmp_path.iterdir() if STRANGERS not in each.name)
    assert names == ["audit.log", "audit.log.1", "audit.log.2"]
    told = [line["resource"] for name in reversed(names) for line in lines(tmp_path / name)]
    assert told[-1] == "Topic:11-again"
    assert all((tmp_path / name).stat().st_size <= 400 for name in names)


def test_what_does_not_fit_is_dropped_counted_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.security.audit.LINES_WAITING_MAX", 3)
    path, go_on = tmp_path / "audit.log", threading.Event()
    written = trail(path)
    real = written.users._file.write

    def slow(data: bytes) -> None:
        go_on.wait(10)
        real(data)

    written.users._file.write = slow  # type: ignore[method-assign]
    for number in range(50):
        written.record(event(resource=f"Topic:{number}"))
    dropped = written.users.dropped
    assert 40 <= dropped < 50
    go_on.set()
    written.close()
    told = lines(path)
    assert len(told) == 50 - dropped
    assert sum(line.get("dropped", 0) for line in told) == dropped


def test_a_disk_that_fails_costs_lines_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    written = trail(tmp_path / "audit.log")
    real, failing = written.users._file.write, [True]

    def full(data: bytes) -> None:
        if failing:
            raise OSError(28, "No space left on device")
        real(data)

    written.users._file.write = full  # type: ignore[method-assign]
    written.record(event(resource="Topic:lost"))
    while not written.users.dropped:
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


def failed_login(number: int) -> AuditEvent:
    """Each under another name, from one of 5,000 addresses."""
    host = f"10.1.{number // 250 % 20}.{number % 250}"
    who = Principal("User", f"guess-{number}")
    return event(principal=who, host=host, action="login", resource="", verdict="failed", is_claimed=True)


def test_a_flood_of_failed_logins_pushes_nothing_out_and_is_counted(tmp_path: Path) -> None:
    """By strangers: what users were denied, and what administrators changed, stays; so do the first of each minute."""
    path, clock, flood = tmp_path / "audit.log", Clock(), 60_000
    written = trail(path, clock, size_bytes_max=200_000, files_max=2)
    written.record(event(action="create_acls", verdict="allowed"))
    written.record(event())
    for number in range(flood):
        written.record(failed_login(number))
        clock.now_ms += 2
    for _ in range(3):  # TLS, gRPC and a plain listener know no names
        written.record(event(principal=ANONYMOUS, verdict="failed", action="TLS handshake", host="10.9.9.9"))
    written.close()
    assert [(line["action"], line["verdict"]) for line in lines(path)] == [
        ("create_acls", "allowed"),
        ("produce", "denied"),
    ]
    theirs = [*tmp_path.glob(f"audit.log{STRANGERS}*")]
    assert all(each.stat().st_size <= 300_000 for each in theirs)
    found = [line for each in theirs for line in lines(each)]
    told = [line for line in found if "repeated" not in line]
    assert len(told) <= 3 * STRANGERS_LINES_MAX
    assert len(told) + sum(line["repeated"] for line in found if "repeated" in line) == flood + 3
    assert any("more from 5000 addresses under " in line["reason"] for line in found)


def test_one_address_or_user_does_not_take_the_lines_of_others(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    written = trail(path)
    for number in range(1_000):
        written.record(event(principal=Principal("User", f"guess-{number}"), verdict="failed", is_claimed=True))
        written.record(event(resource=f"Topic:{number}"))
    written.record(event(host="10.0.0.2", verdict="failed", is_claimed=True))
    written.record(event(principal=Principal("User", "bob")))
    written.close()
    theirs, users = lines(tmp_path / f"audit.log{STRANGERS}"), lines(path)
    assert [line["host"] for line in theirs] == ["10.0.0.1"] * ADDRESS_LINES_MAX + ["10.0.0.2", "10.0.0.1"]
    assert theirs[-1]["repeated"] == 1_000 - ADDRESS_LINES_MAX
    assert [line["principal"] for line in users][USER_LINES_MAX - 1 : -1] == ["User:ann", "User:bob"]
    assert users[-1]["reason"] == f"{1_000 - USER_LINES_MAX} more from 1 address under 1 name"


def test_a_surplus_is_told_when_its_minute_is_over_and_changes_are_never_in_it() -> None:
    surplus = Surplus(lines_max=2, lines_of_one_max=1, one=lambda event: event.host, window_ms=100)
    assert [surplus.admits(event(host=host), 0) for host in ("a", "a", "b", "c")] == [True, False, True, False]
    assert not surplus.admits(event(host="d"), 50, 10)
    assert surplus.admits(event(verdict="allowed"), 50)
    assert surplus.ended(99) == []
    ((summary, count),) = surplus.ended(100)
    assert (count, summary.reason, summary.verdict) == (12, "12 more from 3 addresses under 1 name", "denied")
    assert surplus.admits(event(host="a"), 101)
    assert surplus.all_left_out() == []


def test_where_strangers_cannot_have_a_file_they_are_in_the_trail(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.with_name(path.name + STRANGERS).mkdir()
    files = trail(path)
    files.record(event(principal=ANONYMOUS, verdict="failed"))
    files.close()
    assert [line["verdict"] for line in lines(path)] == ["failed"]
