"""`make images`: the images of broker, operator and Spark from their Dockerfiles, as archives in the user's cache.

Builds with docker, podman or buildah, whichever answers. An archive is named by the content of what went into it, so
nothing is built twice. Prints the archives' paths; `images.py broker` builds only that one.
"""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP))  # the Python that runs a script searches only the script's folder

from scripts.container_engines import BuildFailed, Engine, find_engine  # noqa: E402

VERSION = "0.1.0"
NOT_SENT = {"__pycache__", "_compiled"}  # see .dockerignore
KEPT_OF_EACH = 3  # archives; whoever builds at the same time may still load an older one


@dataclass(frozen=True)
class Image:
    name: str
    dockerfile: str
    sources: tuple[str, ...]
    before: tuple[str, ...] = ()  # a script of ours that puts something among the sources

    @property
    def reference(self) -> str:
        return f"docker.io/ottla/{self.name}:{VERSION}"


IMAGES = (
    Image(
        "broker",
        "broker/Dockerfile",
        (
            "requirements/broker.txt",
            "requirements/compile.txt",
            "scripts/compile_modules.py",
            "broker/command.sh",
            "broker/ottla",
        ),
    ),
    Image("operator", "operator/Dockerfile", ("requirements/operator.txt", "broker/ottla", "operator/ottla_operator")),
    Image(
        "spark",
        "spark-apps/Dockerfile",
        ("requirements/spark.txt", "spark-apps"),
        before=("spark-apps/ottla_pipelines/connector.py", "spark-apps/jars"),
    ),
)
# Not part of the product: librdkafka in a pod, for the tests.
CLIENT = Image("client", "tests/cluster/client/Dockerfile", ("requirements/client.txt", "tests/cluster/client"))


def build_all(names: list[str] | None = None) -> list[Path]:
    """The archives of the images, built where their sources changed."""
    known = {image.name: image for image in (*IMAGES, CLIENT)}
    if unknown := set(names or ()) - known.keys():
        raise BuildFailed(f"no image is named {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    wanted = [known[name] for name in names] if names else list(IMAGES)
    for image in wanted:
        _prepare(image)
    archives = {image: archive_of(image) for image in wanted}  # sources may change while we build
    missing = [image for image, archive in archives.items() if not archive.exists()]
    if missing:
        engine = find_engine(archives_folder())
        for image in missing:
            _build(engine, image, archives[image])
    return list(archives.values())


def _prepare(image: Image) -> None:
    if not image.before:
        return
    done = subprocess.run([sys.executable, *image.before], cwd=TOP, capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildFailed(f"{image.name}: {done.stderr.strip()}")


def archive_of(image: Image) -> Path:
    digest = hashlib.sha256()
    for path in _inputs(image):
        digest.update(f"{path.relative_to(TOP)}\0{path.stat().st_mode & 0o111}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return archives_folder() / f"{image.name}-{digest.hexdigest()[:16]}.tar"


def archives_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ottla" / "images"


def _inputs(image: Image) -> Iterator[Path]:
    yield TOP / image.dockerfile
    yield TOP / ".dockerignore"
    for source in image.sources:
        top = TOP / source
        found = [top] if top.is_file() else sorted(path for path in top.rglob("*") if path.is_file())
        yield from (path for path in found if NOT_SENT.isdisjoint(path.parts))


def _build(engine: Engine, image: Image, target: Path) -> None:
    started = time.monotonic()
    print(f"… building {image.reference} with {engine.program}", file=sys.stderr, flush=True)
    engine.build(image.reference, dockerfile=TOP / image.dockerfile, context=TOP)
    part = target.with_suffix(f".{os.getpid()}.part")
    engine.save(image.reference, part)
    part.rename(target)
    archives = sorted(archives_folder().glob(f"{image.name}-*.tar"), key=lambda one: one.stat().st_mtime)
    for older in archives[:-KEPT_OF_EACH]:
        older.unlink()
    size_mb = target.stat().st_size / 1e6
    spent = time.monotonic() - started
    print(f"✓ {image.reference}: {size_mb:.0f} MB ({spent:.0f} s)", file=sys.stderr, flush=True)


def main(names: list[str]) -> int:
    try:
        print(*build_all(names), sep="\n")
    except (BuildFailed, subprocess.TimeoutExpired) as failed:
        print(f"make images: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
