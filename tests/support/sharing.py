"""Share groups in tests: turned on as an administrator does it, and members as a Java process that can be killed."""

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from support.java import Finished, java_tool, program_command

__all__ = ["ONE_BROKER", "QUICK_SHARING", "Sharers", "give_settings", "share_tool", "turn_on"]

QUICK_SHARING = {
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.record.lock.duration.ms": "1000",
}
ONE_BROKER = {
    **QUICK_SHARING,
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
STOP_S = 30.0


def turn_on(bootstrap: str) -> Finished:
    features = "org.apache.kafka.tools.FeatureCommand"
    return java_tool(features, "--bootstrap-server", bootstrap, "upgrade", "--feature", "share.version=1")


def share_tool(bootstrap: str, *arguments: str, code: int | None = 0) -> Finished:
    """kafka-share-groups."""
    command = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
    return java_tool(command, "--bootstrap-server", bootstrap, *arguments, code=code)


def give_settings(bootstrap: str, group: str, **settings: str) -> None:
    """Of the group's own, without the `share.` that all begin with."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    wanted = {f"share.{name.replace('_', '.')}": value for name, value in settings.items()}
    admin.alter_configs([ConfigResource(ConfigResourceType.GROUP, group, configs=wanted)])
    admin.close()


class Sharers:
    """Members of one share group, in one process. What a record's value begins with says what becomes of it:

    accept; reject; release (the first time, and accept later); always (release it every time); hold (the member waits
    with it and with all that it was given together with it, and asks for nothing more).
    """

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        *,
        group: str,
        topic: str,
        members: int = 1,
        implicit: bool = False,
        records_max: int = 500,
    ) -> None:
        self._out = folder / f"sharers-{group}-{len(list(folder.iterdir()))}.log"
        mode = "implicit" if implicit else "explicit"
        command = program_command("Sharer", bootstrap, group, topic, str(members), mode, str(records_max))
        with open(self._out, "wb") as output, open(self._out.with_suffix(".err"), "wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=log)
        self._output = open(self._out)  # noqa: SIM115 (read on until the members end)
        self._begun, self._events = "", list[dict[str, Any]]()

    def __enter__(self) -> "Sharers":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._output.close()

    def events(self, name: str) -> list[dict[str, Any]]:
        *lines, self._begun = (self._begun + self._output.read()).split("\n")
        self._events += [json.loads(line) for line in lines]
        assert self._process.poll() in (None, 0, -9), self._out.with_suffix(".err").read_text()[-3000:]
        return [event for event in self._events if event["name"] == name]

    def got(self) -> list[tuple[str, int]]:
        """Values and how often they had been delivered then."""
        return [(event["value"], event["count"]) for event in self.events("got")]

    def deliveries(self) -> Counter[str]:
        return Counter(value for value, _ in self.got())

    def acknowledged(self) -> list[str]:
        """Values whose acknowledgement was answered without an error, in order."""
        return [event["value"] for event in self.events("acknowledged")]

    def failures(self) -> list[dict[str, Any]]:
        return self.events("failed")

    def stop(self) -> None:
        """They leave; what they hold is free again."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(STOP_S)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
