"""Images onto the nodes, from archives that any engine wrote."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster import in_docker, node
from cluster.access import Access
from cluster.commands import run
from cluster.places import NODES, Place, state_folder
from cluster.progress import console, step

LOAD_TIMEOUT_S = 600.0


def load(access: Access, archives: list[Path]) -> None:
    """Skips what a node has already: an archive's name says its content."""
    match access.kind:
        case "own":
            _load_own(archives)
        case "kind":
            for archive in archives:
                with step(f"loading {archive.stem} into kind's nodes"):
                    load_one = ("load", "image-archive", archive, "--name", in_docker.NAME)
                    run(in_docker.kind(), *load_one, timeout_s=LOAD_TIMEOUT_S)
        case "existing":
            console.print("KUBECONFIG names a cluster of yours: push the images to a registry that its nodes can reach")


def _load_own(archives: list[Path]) -> None:
    pending = [(place, archive) for archive in archives for place in NODES if not _mark(place, archive).exists()]
    if not pending:
        return
    names = ", ".join(sorted({archive.stem for _, archive in pending}))
    with step(f"loading {names} into the nodes"), ThreadPoolExecutor(len(NODES)) as threads:
        list(threads.map(lambda pair: _load_one(*pair), pending))


def _load_one(place: Place, archive: Path) -> None:
    node.import_image(place, archive, timeout_s=LOAD_TIMEOUT_S)
    _mark(place, archive).parent.mkdir(exist_ok=True)
    _mark(place, archive).touch()


def _mark(place: Place, archive: Path) -> Path:
    return state_folder() / "loaded" / f"{place.name}-{archive.name}"
