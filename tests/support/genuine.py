"""Apache Kafka 4.1.1 itself, combined broker and controller, as its own start script would run it."""

import base64
import subprocess
import uuid
from pathlib import Path
from typing import Any

from support.kafka_jars import kafka_jars
from support.ports import free_port
from support.process import BrokerFailed, BrokerProcess

# kafka-server-start.sh and kafka-run-class.sh set exactly these.
HEAP_OPTIONS = ("-Xmx1G", "-Xms1G")
GROWING_HEAP_OPTIONS = ("-Xmx1G", "-Xms32M")  # the same bound, but only what is needed is taken
PERFORMANCE_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
# As in the distribution's config/server.properties; without it one broker could not host the internal topics.
FLEET_OF_ONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class GenuineKafka(BrokerProcess):
    name = "kafka"
    heap_options = HEAP_OPTIONS

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder, **options)
        self._controller_port = free_port()
        self._properties = folder / "server.properties"
        self._formatted = (self.data_dir / "meta.properties").exists()

    def command(self) -> list[str]:
        options = [*self.heap_options, *PERFORMANCE_OPTIONS, "-cp", f"{kafka_jars()}/*"]
        return ["java", *options, "kafka.Kafka", str(self._properties)]

    def prepare(self) -> None:
        self._write_properties()
        if not self._formatted:
            self._format()
            self._formatted = True

    def fleet_settings(self) -> dict[str, str]:
        """Who this is and with whom it forms a quorum."""
        listeners = f"PLAINTEXT://{self.host}:{self.port},CONTROLLER://{self.host}:{self._controller_port}"
        return {
            "node.id": "1",
            "listeners": listeners,
            "controller.quorum.bootstrap.servers": f"{self.host}:{self._controller_port}",
            **FLEET_OF_ONE,
        }

    def format_options(self) -> list[str]:
        # An id may begin with a dash, so it is attached by "=".
        return ["--standalone", f"--cluster-id={new_cluster_id()}"]

    def _write_properties(self) -> None:
        everything = {
            "process.roles": "broker,controller",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data_dir),
            **self.fleet_settings(),
            **self.settings,
        }
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in everything.items()))

    def _format(self) -> None:
        tool = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_jars()}/*", "kafka.tools.StorageTool", "format"]
        command = [*self._inside, *tool, *self.format_options(), "--config", str(self._properties)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise BrokerFailed(f"StorageTool could not format {self.data_dir}:\n{done.stdout}{done.stderr}")


def new_cluster_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
