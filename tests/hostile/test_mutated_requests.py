"""Damaged requests of every API, thousands of them, against a broker that may not grow."""

import contextlib
import time
from random import Random

from support.frames import Connection, framed
from support.group_member import Member
from support.librdkafka import make_topic
from support.mutations import mutated_requests
from support.ottla_broker import OttlaBroker
from support.raw_requests import header

TOPIC, GROUP = "mutated-topic", "mutated-group"
AT_ONCE = 50
STALL_MS_MAX = 100.0
MEMORY_BYTES_MAX = 256 << 20
GROWTH_BYTES_MAX = 64 << 20


def test_no_crash_no_stall_and_flat_memory(tmp_path, pytestconfig):
    rounds = pytestconfig.getoption("--mutated-requests") // AT_ONCE
    seed = pytestconfig.getoption("--mutation-seed") or Random().getrandbits(32)
    print(f"\n  seed {seed}")
    broker = OttlaBroker(tmp_path, inside=["prlimit", f"--data={MEMORY_BYTES_MAX}"])
    broker.start()
    try:
        make_topic_and_group(broker)
        attack(broker, rounds, Random(seed))
        assert broker.running, broker.log_tail()
        assert broker.stop() == 0
    finally:
        broker.close()
    text = broker.log_path.read_text()
    assert "Traceback" not in text, f"seed {seed}: {text[text.index('Traceback') :][:3000]}"


def make_topic_and_group(broker: OttlaBroker) -> None:
    """Requests that name them get further."""
    make_topic(broker.bootstrap, TOPIC)
    member = Member(broker.bootstrap, GROUP, [TOPIC])
    member.until_owns(1)
    member.close()


def attack(broker: OttlaBroker, rounds: int, random: Random) -> None:
    requests = mutated_requests(random, (TOPIC, GROUP))
    stalls: list[float] = []
    settled_bytes = 0
    with Connection(broker.port) as neighbour:
        ping_ms(neighbour)  # whatever a first request needs is there
        for number in range(rounds):
            with contextlib.ExitStack() as stack:
                batch = [next(requests) for _ in range(AT_ONCE)]
                for request in batch:
                    connection = stack.enter_context(Connection(broker.port))
                    with contextlib.suppress(ConnectionError):
                        connection.send(request)
                stalls.append(ping_ms(neighbour))
            if number == rounds // 4:
                settled_bytes = broker.resident_bytes()
    grown = broker.resident_bytes() - settled_bytes
    stalls.sort()
    p99 = stalls[len(stalls) * 99 // 100]
    print(f"  {rounds * AT_ONCE} requests; neighbour p99 {p99:.1f}, worst {stalls[-1]:.1f} ms")
    print(f"  memory {settled_bytes >> 20} MB after a quarter, then {grown >> 20} MB more")
    assert stalls[-1] <= STALL_MS_MAX
    assert grown <= GROWTH_BYTES_MAX


def ping_ms(connection: Connection) -> float:
    """ApiVersions, answered in its turn."""
    began = time.perf_counter()
    connection.send(framed(header(18, 0)))
    connection.read_frame()
    return (time.perf_counter() - began) * 1000
