"""Who may connect: among all, at a listener, from an address."""

from typing import Any

from ottla.net.admission import Admission

SETTINGS: dict[str, Any] = {
    "max.connections": 5,
    "max.connections.per.ip": 3,
    "max.connections.per.ip.overrides": "10.0.0.9:5",
}
OF_LISTENERS = {("TLS", "max.connections"): 2}


def admission() -> Admission:
    return Admission(SETTINGS.__getitem__, lambda listener, name: OF_LISTENERS.get((listener, name)), files_max=100)


def test_limits() -> None:
    doors = admission()
    assert [doors.enter("10.0.0.1", "PLAINTEXT") for _ in range(3)] == [None] * 3
    assert doors.enter("10.0.0.1", "PLAINTEXT") == "max.connections.per.ip is reached for 10.0.0.1"
    doors.leave("10.0.0.1", "PLAINTEXT")
    assert doors.enter("10.0.0.9", "PLAINTEXT") is None
    assert doors.enter("10.0.0.9", "PLAINTEXT") is None
    assert doors.enter("10.0.0.9", "PLAINTEXT") == "max.connections is reached"
    assert doors.room == 94


def test_a_listener_has_a_limit_of_its_own() -> None:
    doors = admission()
    assert [doors.enter(f"10.0.0.{i}", "TLS") for i in range(2)] == [None] * 2
    assert doors.enter("10.0.0.3", "TLS") == "listener.name.tls.max.connections is reached"
    assert doors.enter("10.0.0.3", "PLAINTEXT") is None
    doors.leave("10.0.0.3", "TLS")
    doors.leave("10.0.0.1", "TLS")
    assert doors.enter("10.0.0.1", "TLS") is None
