"""The owner of a log dir and of a partition's folder: `meta.properties`, `partition.metadata`, and the lock.

A directory of another owner is refused and never written to.
"""

import errno
import re
import uuid
from dataclasses import dataclass

from ottla.config.properties import parse_properties
from ottla.errors import Refusal
from ottla.ids import uuid_from_text, uuid_text
from ottla.ports import Disk, Lock

__all__ = [
    "LOCK",
    "META",
    "METADATA_FOLDER",
    "DirectoryMeta",
    "lock",
    "read_meta",
    "read_topic_id",
    "write_meta",
    "write_topic_id",
]

META = "meta.properties"
PARTITION_META = "partition.metadata"
LOCK = ".lock"
METADATA_FOLDER = "__ottla_metadata"  # our metadata log, in the first log dir
KAFKA_METADATA_FOLDER = "__cluster_metadata-0"
_SEGMENT_SUFFIX = ".log"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryMeta:
    cluster_id: str
    node_id: int
    directory_id: uuid.UUID


def read_meta(disk: Disk, folder: str) -> DirectoryMeta | None:
    """None if the directory is not formatted. Refusal for Apache Kafka's own metadata and for a malformed file."""
    refuse_kafka(disk, folder)
    path = f"{folder}/{META}"
    if not disk.exists(path):
        return None
    text = disk.read_file(path).decode("utf-8", "replace")
    try:
        values = {one.name: one.value for one in parse_properties(text)}
        if values["version"] != "1":
            raise ValueError(f"version is {values['version']}, expected 1")
        return DirectoryMeta(
            cluster_id=values["cluster.id"],
            node_id=int(values["node.id"]),
            directory_id=uuid_from_text(values["directory.id"]),
        )
    except KeyError as error:
        raise Refusal(f"{path} has no {error.args[0]}; restore it or use another data directory") from None
    except ValueError as error:
        raise Refusal(f"{path} is malformed: {error}; restore it or use another data directory") from None


def write_meta(disk: Disk, folder: str, meta: DirectoryMeta) -> None:
    values = {
        "cluster.id": meta.cluster_id,
        "directory.id": uuid_text(meta.directory_id),
        "node.id": str(meta.node_id),
        "version": "1",
    }
    text = "".join(f"{name}={_escaped(value)}\n" for name, value in values.items())
    disk.replace_file(f"{folder}/{META}", text.encode())


def _escaped(value: str) -> str:
    """Escaped for java.util.Properties."""
    return re.sub(r"[\\=:#!]|^ ", lambda special: "\\" + special[0], value)


def refuse_kafka(disk: Disk, folder: str) -> None:
    """Refuse a directory with Apache Kafka's metadata log, which Ottla cannot read."""
    path = f"{folder}/{KAFKA_METADATA_FOLDER}"
    if disk.exists(path) and any(name.endswith(_SEGMENT_SUFFIX) for name in disk.names(path)):
        raise Refusal(f"data directory {folder} holds Apache Kafka's {KAFKA_METADATA_FOLDER}; use another --data-dir")


def refuse_foreign(meta: DirectoryMeta, *, folder: str, cluster_id: str | None, node_id: int) -> None:
    """`cluster_id` None: this node takes the cluster id from its directories."""
    if cluster_id is not None and meta.cluster_id != cluster_id:
        raise Refusal(
            f"data directory {folder} belongs to cluster {meta.cluster_id} ({META}), this fleet is {cluster_id}; "
            "use another --data-dir"
        )
    if meta.node_id != node_id:
        raise Refusal(
            f"data directory {folder} belongs to node {meta.node_id} ({META}), this node is {node_id}; "
            "use another --data-dir or set node.id"
        )


def lock(disk: Disk, folder: str) -> Lock:
    """The lock is held until it is closed or the process ends."""
    try:
        return disk.lock(f"{folder}/{LOCK}")
    except BlockingIOError:
        raise Refusal(
            f"data directory {folder} is locked ({LOCK}): a broker uses it; stop that one or use another --data-dir"
        ) from None


def read_topic_id(disk: Disk, folder: str) -> uuid.UUID | None:
    """The topic of a partition's folder; None if the file is missing.

    OSError if it is malformed: it is written atomically, so the disk has lost data. The log must not be replaced, and
    the log dir fails, as in Kafka.
    """
    path = f"{folder}/{PARTITION_META}"
    try:
        lines = disk.read_file(path).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return None
    values = dict(line.partition(":")[::2] for line in lines)
    try:
        if values["version"].strip() != "0":
            raise ValueError(values["version"])
        return uuid_from_text(values["topic_id"].strip())
    except (KeyError, ValueError):
        what = (
            f"{path} is malformed; restore it, or remove it if the log beside it is of the present topic of that name, "
            "and start the broker again"
        )
        raise OSError(errno.EIO, what) from None


def write_topic_id(disk: Disk, folder: str, topic_id: uuid.UUID) -> None:
    disk.replace_file(f"{folder}/{PARTITION_META}", f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode())
