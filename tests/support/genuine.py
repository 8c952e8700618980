"""Apache Kafka 4.1.1 itself, one combined broker and controller, as its own start script would run it."""

import base64
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from support.kafka_jars import kafka_jars
from support.ports import free_port
from support.process import BrokerFailed, BrokerProcess

# kafka-server-start.sh and kafka-run-class.sh set exactly these.
HEAP_OPTIONS = ("-Xmx1G", "-Xms1G")
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

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, settings=settings)
        self._controller_port = free_port()
        self._properties = folder / "server.properties"

    def command(self) -> list[str]:
        options = [*HEAP_OPTIONS, *PERFORMANCE_OPTIONS, "-cp", f"{kafka_jars()}/*"]
        return ["java", *options, "kafka.Kafka", str(self._properties)]

    def prepare(self) -> None:
        self._write_properties()
        if not (self.data_dir / "meta.properties").exists():
            self._format()

    def _write_properties(self) -> None:
        everything = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller_port}",
            "log.dirs": str(self.data_dir),
            **FLEET_OF_ONE,
            **self.settings,
        }
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in everything.items()))

    def _format(self) -> None:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        tool = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_jars()}/*", "kafka.tools.StorageTool", "format"]
        # An id may begin with a dash, so it is attached by "=".
        command = [*tool, "--standalone", f"--cluster-id={cluster_id}", "--config", str(self._properties)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise BrokerFailed(f"StorageTool could not format {self.data_dir}:\n{done.stdout}{done.stderr}")
