"""The sandbox image of every pod as an OCI archive, written by hand: one layer with one static program."""

import gzip
import hashlib
import io
import json
import tarfile
import tempfile
from pathlib import Path

from scripts.local_kubernetes.commands import run
from scripts.local_kubernetes.places import cache_folder

SOURCE = Path(__file__).parent / "pause.c"
IMAGE = "docker.io/ottla/pause:1"
VERSION = "92151954bf690fed"  # names the archive: another one whenever its content changes, which a test watches


def ensure_archive() -> Path:
    archive = cache_folder() / f"pause-{VERSION}.tar"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
            program, made = Path(scratch) / "pause", Path(scratch) / "pause.tar"
            run("gcc", "-static", "-Os", "-s", "-o", program, SOURCE)
            made.write_bytes(_archive(program.read_bytes()))
            made.rename(archive)
    return archive


def _archive(program: bytes) -> bytes:
    layer = _tar({"pause": program})
    packed = gzip.compress(layer, mtime=0)
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": ["/pause"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    ).encode()
    vendor = "application/vnd.oci.image"
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": f"{vendor}.manifest.v1+json",
            "config": _pointer(f"{vendor}.config.v1+json", config),
            "layers": [_pointer(f"{vendor}.layer.v1.tar+gzip", packed)],
        }
    ).encode()
    name = {"annotations": {"io.containerd.image.name": IMAGE, "org.opencontainers.image.ref.name": IMAGE}}
    index = {"schemaVersion": 2, "manifests": [{**_pointer(f"{vendor}.manifest.v1+json", manifest), **name}]}
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode()}
    return _tar(files | {f"blobs/sha256/{_digest(blob)[7:]}": blob for blob in (packed, config, manifest)})


def _pointer(media_type: str, blob: bytes) -> dict[str, object]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()
