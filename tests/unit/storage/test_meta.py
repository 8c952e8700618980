"""Who owns a directory: Kafka's files are read and written, and what is not ours is refused untouched."""

import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest
from ottla.errors import Refusal
from ottla.ids import uuid_from_text
from ottla.storage.directories import meta
from ottla.storage.directories.meta import DirectoryMeta
from ottla.system import RealDisk

DISK = RealDisk()
OURS = DirectoryMeta(cluster_id="5L6g3nShT-eMCtK--X86sw", node_id=3, directory_id=UUID(int=0x1234 << 96))

# As `kafka.tools.StorageTool format` of Apache Kafka 4.1.1 writes it.
KAFKA_META = """#
#Mon Nov 16 06:36:27 UTC 2026
cluster.id=MkU3OEVBNTcwNTJENDM2Qg
directory.id=zBuPNQ3VRjKcUA3nYIi_Gg
node.id=1
version=1
"""


def test_meta_properties_round_trip(tmp_path: Path) -> None:
    assert meta.read_meta(DISK, str(tmp_path)) is None
    meta.write_meta(DISK, str(tmp_path), OURS)
    assert meta.read_meta(DISK, str(tmp_path)) == OURS
    lines = (tmp_path / "meta.properties").read_text().splitlines()
    assert "node.id=3" in lines and "version=1" in lines and "cluster.id=5L6g3nShT-eMCtK--X86sw" in lines


@pytest.mark.parametrize("cluster_id", ["a=b:c", " leading", "back\\slash", "#hash!", "plain"])
def test_odd_cluster_ids_survive(tmp_path: Path, cluster_id: str) -> None:
    odd = DirectoryMeta(cluster_id=cluster_id, node_id=1, directory_id=UUID(int=1))
    meta.write_meta(DISK, str(tmp_path), odd)
    assert meta.read_meta(DISK, str(tmp_path)) == odd


def test_kafkas_own_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(KAFKA_META)
    found = meta.read_meta(DISK, str(tmp_path))
    assert found and (found.cluster_id, found.node_id) == ("MkU3OEVBNTcwNTJENDM2Qg", 1)
    assert meta.uuid_text(found.directory_id) == "zBuPNQ3VRjKcUA3nYIi_Gg"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("version=0\nbroker.id=1\ncluster.id=x\n", "version is 0, expected 1"),
        ("version=1\nnode.id=1\ndirectory.id=zBuPNQ3VRjKcUA3nYIi_Gg\n", "has no cluster.id"),
        ("version=1\ncluster.id=x\nnode.id=one\ndirectory.id=zBuPNQ3VRjKcUA3nYIi_Gg\n", "is malformed"),
        ("version=1\ncluster.id=x\nnode.id=1\ndirectory.id=short\n", "'short' is not a base64 uuid"),
        ("", "has no version"),
        ("cluster.id=\\u12", "is malformed"),
    ],
)
def test_malformed_is_refused_and_kept(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "meta.properties"
    path.write_text(text)
    with pytest.raises(Refusal) as raised:
        meta.read_meta(DISK, str(tmp_path))
    assert str(path) in str(raised.value) and says in str(raised.value)
    assert path.read_text() == text


def test_kafkas_metadata_log_is_refused_untouched(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    meta.read_meta(DISK, str(tmp_path))
    (folder / "00000000000000000000.log").write_bytes(b"")
    (tmp_path / "meta.properties").write_text(KAFKA_META)
    with pytest.raises(Refusal, match="holds Apache Kafka's __cluster_metadata-0; use another --data-dir"):
        meta.read_meta(DISK, str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["__cluster_metadata-0", "meta.properties"]


def test_another_cluster_or_node_is_refused_by_name() -> None:
    with pytest.raises(Refusal, match=r"/d belongs to cluster 5L6g\S+ \(meta.properties\), this fleet is other; use"):
        meta.refuse_foreign(OURS, folder="/d", cluster_id="other", node_id=3)
    with pytest.raises(Refusal, match=r"/d belongs to node 3 \(meta.properties\), this node is 4; use"):
        meta.refuse_foreign(OURS, folder="/d", cluster_id=OURS.cluster_id, node_id=4)
    meta.refuse_foreign(OURS, folder="/d", cluster_id=OURS.cluster_id, node_id=3)
    meta.refuse_foreign(OURS, folder="/d", cluster_id=None, node_id=3)


@pytest.mark.parametrize("kind", ["flock", "lockf"])  # ours, and the kind that Apache Kafka takes
def test_a_directory_locked_by_another_process_is_refused(tmp_path: Path, kind: str) -> None:
    program = (
        f"import fcntl,sys; f=open(sys.argv[1],'w'); fcntl.{kind}(f, 2); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path / ".lock")]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdin and holder.stdout and holder.stdout.readline()
    with pytest.raises(Refusal, match=r"is locked \(.lock\)"):
        meta.lock(DISK, str(tmp_path))
    holder.communicate()
    held = meta.lock(DISK, str(tmp_path))
    with pytest.raises(Refusal):
        meta.lock(DISK, str(tmp_path))
    held.close()
    meta.lock(DISK, str(tmp_path)).close()


def test_partition_metadata(tmp_path: Path) -> None:
    folder, topic_id = str(tmp_path), uuid_from_text("zBuPNQ3VRjKcUA3nYIi_Gg")
    assert meta.read_topic_id(DISK, folder) is None
    meta.write_topic_id(DISK, folder, topic_id)
    assert (tmp_path / "partition.metadata").read_text() == "version: 0\ntopic_id: zBuPNQ3VRjKcUA3nYIi_Gg"
    assert meta.read_topic_id(DISK, folder) == topic_id


@pytest.mark.parametrize(
    "data", [b"", b"version: 1\ntopic_id: zBuPNQ3VRjKcUA3nYIi_Gg", b"version: 0\ntopic_id: x", b"\xff"]
)
def test_malformed_partition_metadata_fails_the_disk(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "partition.metadata").write_bytes(data)
    with pytest.raises(OSError, match=r"partition\.metadata is malformed; restore it"):
        meta.read_topic_id(DISK, str(tmp_path))
