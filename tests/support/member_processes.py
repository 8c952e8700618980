"""Members of a group as processes that can be killed: Java's VerifiableConsumer and the clients for Python.

All report what happens as VerifiableConsumer does, by lines of JSON.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.java import SOURCES, java_command, program_command
from support.waiting import eventually

__all__ = ["COOPERATIVE", "KINDS", "MemberProcesses", "VerifiedMember"]

KINDS = ("java-classic", "java-consumer", "aiokafka", "kafka-python", "librdkafka-consumer")
IN_PYTHON = ("aiokafka", "kafka-python", "librdkafka-consumer")
COOPERATIVE = ("java-classic", "java-consumer", "kafka-python", "librdkafka-consumer")  # aiokafka has no such assignor
VERIFIABLE = "org.apache.kafka.tools.VerifiableConsumer"
JAVAS_COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
MOVES = ("partitions_assigned", "partitions_revoked", "partitions_lost")
SETTLE_S = 90.0
STOP_S = 30.0
STACKS_MAX = 8000  # characters of a process


@dataclass(frozen=True)
class Joining:
    """The session of KIP-848 is the broker's to decide, and every member of it is cooperative."""

    kind: str
    bootstrap: str
    topic: str
    session_ms: int
    instance_id: str = ""
    cooperative: bool = False
    count: int = 1

    def command(self) -> list[str]:
        if not self.kind.startswith("java"):
            return self._python()
        return self._verifiable() if self.count == 1 else self._crowd()

    def _verifiable(self) -> list[str]:
        protocol = self.kind.removeprefix("java-")
        words = ["--bootstrap-server", self.bootstrap, "--topic", self.topic, "--group-id", self.topic]
        words += ["--group-protocol", protocol]
        words += ["--group-instance-id", self.instance_id] if self.instance_id else []
        if protocol == "classic":
            words += ["--session-timeout", str(self.session_ms)]
            words += ["--consumer.config", str(SOURCES / "classic_member.properties")]
            words += ["--assignment-strategy", JAVAS_COOPERATIVE] if self.cooperative else []
        return java_command(VERIFIABLE, *words)

    def _crowd(self) -> list[str]:
        protocol = self.kind.removeprefix("java-")
        return program_command("Crowd", self.bootstrap, self.topic, protocol, str(self.session_ms), str(self.count))

    def _python(self) -> list[str]:
        settings = (self.bootstrap, self.topic, self.session_ms, self.instance_id, int(self.cooperative), self.count)
        return [sys.executable, "-m", "support.python_member", self.kind, *map(str, settings)]


class VerifiedMember:
    """Or several in one process, each with a number."""

    def __init__(self, out: Path, joining: Joining) -> None:
        self._log = out.with_suffix(".err")
        self._count = joining.count
        self._events: list[dict[str, Any]] = []
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with open(out, "wb") as output, open(self._log, "wb") as log:
            self._process = subprocess.Popen(joining.command(), stdout=output, stderr=log, env=environment)
        self._output = open(out)  # noqa: SIM115 (read on until the member ends)
        self._begun = ""

    def events(self) -> list[dict[str, Any]]:
        *lines, self._begun = (self._begun + self._output.read()).split("\n")
        self._events += [json.loads(line) for line in lines if line.startswith("{")]
        return self._events

    def moves(self) -> list[tuple[int, str, set[int]]]:
        """Who got or gave which partitions so far, in order; that nothing came or went is no move."""
        return [
            (event.get("member", 0), event["name"], {place["partition"] for place in event["partitions"]})
            for event in self.events()
            if event["name"] in MOVES and event["partitions"]
        ]

    def given(self) -> list[set[int]]:
        return [named for _, name, named in self.moves() if name != "partitions_assigned"]

    def holdings(self) -> list[set[int]]:
        """Of each member of this process."""
        found: list[set[int]] = [set() for _ in range(self._count)]
        for number, name, named in self.moves():
            found[number] = found[number] | named if name == "partitions_assigned" else found[number] - named
        return found

    def held(self) -> set[int]:
        return set().union(*self.holdings())

    def consumed(self) -> int:
        return sum(event["count"] for event in self.events() if event["name"] == "records_consumed")

    def consumed_from(self, partitions: set[int]) -> int:
        events = [event for event in self.events() if event["name"] == "records_consumed"]
        return sum(one["count"] for event in events for one in event["partitions"] if one["partition"] in partitions)

    def check_running(self) -> None:
        assert self._process.poll() is None, f"the member ended by itself:\n{self._log.read_text()[-2000:]}"

    def stacks(self) -> str:
        """What each thread of a Python member is doing."""
        self._process.send_signal(signal.SIGUSR1)
        eventually(self._log.read_text, bool)
        return self._log.read_text()[-STACKS_MAX:]

    def stop(self) -> None:
        """It leaves the group; a static member keeps its place."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(STOP_S)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._output.close()


class MemberProcesses:
    """Of one group, which has its topic's name."""

    def __init__(self, folder: Path, kind: str, bootstrap: str, topic: str) -> None:
        self._folder, self.kind = folder, kind
        self._where = (bootstrap, topic)
        self._all: list[VerifiedMember] = []
        self.running: list[VerifiedMember] = []

    def start(
        self, *, session_ms: int = 6000, instance_id: str = "", cooperative: bool = False, count: int = 1
    ) -> VerifiedMember:
        joining = Joining(self.kind, *self._where, session_ms, instance_id, cooperative, count)
        made = VerifiedMember(self._folder / f"member-{len(self._all)}.log", joining)
        self._all.append(made)
        self.running.append(made)
        return made

    def settle(self, *sizes: int, timeout_s: float = SETTLE_S) -> None:
        """Until they have as many partitions as expected, in any order, and none twice."""

        def holdings() -> list[list[int]]:
            for one in self.running:
                one.check_running()
            return [sorted(held) for one in self.running for held in one.holdings()]

        def is_right(seen: list[list[int]]) -> bool:
            everything = sorted(index for held in seen for index in held)
            return sorted(map(len, seen)) == sorted(sizes) and everything == list(range(sum(sizes)))

        try:
            eventually(holdings, is_right, timeout_s=timeout_s)
        except AssertionError as late:
            stuck = [one.stacks() for one in self.running if self.kind in IN_PYTHON and not all(one.holdings())]
            raise AssertionError("\n".join([str(late), *stuck])) from late

    def kill(self) -> None:
        for one in self._all:
            one.kill()
