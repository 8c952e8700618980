"""Which cluster is used: the one that KUBECONFIG names, else kind where docker answers, else our own."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from scripts.local_kubernetes import in_docker, loading, own, teardown
from scripts.local_kubernetes.access import Access
from scripts.local_kubernetes.binaries import ensure_binaries
from scripts.local_kubernetes.places import kubeconfig
from scripts.local_kubernetes.progress import step


def is_given() -> bool:
    """Whether KUBECONFIG names a cluster that is not ours."""
    return _given() is not None


def running() -> Access | None:
    """The cluster to use, if it runs already."""
    if _given():
        return _existing()
    if own.runs():
        return own.access()
    return in_docker.access() if in_docker.runs() else None


def up(archives: Sequence[Path] = ()) -> Access:
    """The cluster to use, started when none runs, with the images of these archives on its nodes."""
    found = running()
    if found is None and not in_docker.docker_answers():
        return own.up(archives)
    ready = found or in_docker.up()
    loading.load(ready, list(archives))
    return ready


def down() -> bool:
    """Ends what `up` started, also half of it; False when there was nothing. A given cluster is left alone."""
    found = False
    if teardown.left_behind():
        with step("ending the cluster"):
            teardown.down()
        found = True
    if in_docker.runs():
        with step("ending the kind cluster"):
            in_docker.down()
        found = True
    return found


def _given() -> str | None:
    """What KUBECONFIG says, unless it says ours (`make cluster-env` exports that)."""
    value = os.environ.get("KUBECONFIG")
    return value if value and value not in (str(kubeconfig()), str(in_docker.kubeconfig())) else None


def _existing() -> Access:
    given = _given()
    assert given is not None
    if shutil.which("kubectl") and shutil.which("helm"):
        return Access("existing", given, None)
    with step("kubectl and Helm (built once)") as show:
        return Access("existing", given, ensure_binaries(show))
