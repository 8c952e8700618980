"""Images onto the nodes, from archives that any engine wrote."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.local_kubernetes import image_store, in_docker, runtime
from scripts.local_kubernetes.access import Access
from scripts.local_kubernetes.commands import run
from scripts.local_kubernetes.places import NODES, state_folder
from scripts.local_kubernetes.progress import console, step

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
    pending = [archive for archive in archives if archive.name not in loaded()]
    for archive in pending:
        with step(f"loading {archive.stem} into the nodes"), ThreadPoolExecutor(len(NODES)) as threads:
            list(threads.map(lambda node, archive=archive: runtime.import_image(node.folder, archive), NODES))
        _list().write_text(json.dumps(image_store.newest(loaded(), [archive])))


def loaded() -> list[str]:
    """Names of archives that the running nodes have: those of the store at their start, and what came later."""
    return list(json.loads(_list().read_text())) if _list().exists() else image_store.contents()


def _list() -> Path:
    return state_folder() / "loaded.json"
