"""Every instrument of a broker. Names that Kafka's dashboards know are Kafka's, as Strimzi exports them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["TABLE", "Instrument", "Kind", "Sample"]

Sample = tuple[tuple[str, ...], float]
"""The values of an instrument's labels, in their order, and the number."""


class Kind(StrEnum):
    COUNTER = "counter"
    """Grows from the start of the process; its name gets `_total`."""
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Instrument:
    name: str
    kind: Kind
    unit: str
    """As UCUM writes it: s, By, {partition}."""
    help: str
    labels: Sequence[str] = ()


def gauge(name: str, unit: str, help: str, labels: Sequence[str] = ()) -> Instrument:
    return Instrument(name, Kind.GAUGE, unit, help, labels)


def counter(name: str, unit: str, help: str, labels: Sequence[str] = ()) -> Instrument:
    return Instrument(name, Kind.COUNTER, unit, help, labels)


TABLE = (
    # the process
    gauge("process_resident_memory_bytes", "By", "Resident memory."),
    gauge("process_open_fds", "{file}", "Open files and sockets."),
    gauge("ottla_loop_lag_seconds", "s", "How late a timer of this loop came at most, in the last minute.", ["loop"]),
    gauge("ottla_data_loop_pulse_age_seconds", "s", "Time since the data loop turned. Beyond 3 s it is fenced."),
    # clients
    gauge("kafka_server_socket_server_metrics_connection_count", "{connection}", "Open connections.", ["listener"]),
    counter("kafka_network_requestmetrics_requests", "{request}", "Requests that were begun.", ["request"]),
    # who clients are
    counter(
        "kafka_server_socket_server_metrics_successful_authentication",
        "{login}",
        "Logins, and handshakes of TLS where nobody logs in.",
        ["listener"],
    ),
    counter(
        "kafka_server_socket_server_metrics_failed_authentication", "{login}", "The same that failed.", ["listener"]
    ),
    counter(
        "kafka_server_socket_server_metrics_successful_reauthentication", "{login}", "Renewed logins.", ["listener"]
    ),
    counter("kafka_server_socket_server_metrics_failed_reauthentication", "{login}", "That failed.", ["listener"]),
    counter(
        "kafka_server_socket_server_metrics_expired_connections_killed_count",
        "{connection}",
        "Connections closed because their login was not renewed in time.",
        ["listener"],
    ),
    gauge(
        "ottla_certificate_info", "{certificate}", "Always 1: the certificate that is shown.", ["listener", "serial"]
    ),
    gauge("ottla_certificate_not_after_seconds", "s", "When it expires, as a Unix time.", ["listener"]),
    gauge("ottla_certificate_loaded_seconds", "s", "When it was loaded, as a Unix time.", ["listener"]),
    counter("ottla_certificate_refusals", "{load}", "New ones that were not taken.", ["listener"]),
    gauge("ottla_request_bytes", "By", "Memory that requests under way have taken."),
    gauge("ottla_answer_bytes", "By", "Memory of answers that clients have not taken yet."),
    # partitions
    gauge("kafka_server_replicamanager_partitioncount", "{partition}", "Partitions with a replica on this broker."),
    gauge("kafka_server_replicamanager_leadercount", "{partition}", "Partitions that this broker leads."),
    gauge(
        "kafka_server_replicamanager_underreplicatedpartitions",
        "{partition}",
        "Partitions led by this broker of which a replica is not in sync. Should be 0.",
    ),
    # the quorum and its controller
    gauge(
        "kafka_controller_kafkacontroller_activecontrollercount",
        "{controller}",
        "1 on the active controller. The sum over the fleet should be 1.",
    ),
    gauge(
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "{partition}",
        "Partitions without a leader, as the active controller sees it. Should be 0.",
    ),
    gauge("kafka_controller_kafkacontroller_activebrokercount", "{broker}", "Brokers in service, on the controller."),
    gauge("kafka_controller_kafkacontroller_fencedbrokercount", "{broker}", "Brokers fenced, on the controller."),
    gauge("kafka_server_raft_metrics_current_epoch", "{epoch}", "The quorum's epoch: its Raft term."),
    gauge("kafka_server_raft_metrics_high_watermark", "{entry}", "Metadata entries that are committed and known here."),
)
