"""containerd: its settings, its start, images into it. Everything it would put into /run or /var is in one folder."""

from pathlib import Path

from scripts.local_kubernetes import programs
from scripts.local_kubernetes.commands import answers, run, wait_until
from scripts.local_kubernetes.packages import CNI_PLUGINS
from scripts.local_kubernetes.pause_image import IMAGE as PAUSE_IMAGE

START_TIMEOUT_S = 60.0
IMPORT_TIMEOUT_S = 600.0
NAMESPACE = "k8s.io"
CRI = 'plugins."io.containerd.grpc.v1.cri"'


def start(name: str, folder: Path, *, root: Path) -> None:
    """Runs as the program `name` with its socket in `folder` and its disk in `root`."""
    config = folder / "containerd.toml"
    config.write_text(_config(folder, root))
    programs.start(name, ["containerd", "--config", config])
    wait_until(lambda: _ready(name, folder), what=f"{name} answers", timeout_s=START_TIMEOUT_S)


def import_image(folder: Path, archive: Path) -> None:
    command = ("ctr", "--address", socket(folder), "--namespace", NAMESPACE, "images", "import", archive)
    run(*command, timeout_s=IMPORT_TIMEOUT_S)


def socket(folder: Path) -> Path:
    return folder / "c.sock"


def _ready(name: str, folder: Path) -> bool:
    programs.check_running(name)
    return answers("ctr", "--address", socket(folder), "version")


def _config(folder: Path, root: Path) -> str:
    return f"""version = 2
root = "{root}"
state = "{folder}/state"
oom_score = 0
[grpc]
  address = "{socket(folder)}"
[ttrpc]
  address = "{folder}/c.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[{CRI}]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [{CRI}.cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{folder}/cni"
  [{CRI}.containerd]
    snapshotter = "{_snapshotter(folder)}"
    [{CRI}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [{CRI}.containerd.runtimes.runc.options]
        SystemdCgroup = false
        Root = "{folder}/runc"
"""


def _snapshotter(folder: Path) -> str:
    """Inside a container the disk is an overlay itself, on which none can be stacked."""
    return "native" if run("stat", "-f", "-c", "%T", folder).strip() == "overlayfs" else "overlayfs"
