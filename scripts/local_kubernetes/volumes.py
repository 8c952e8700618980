"""A provisioner of local volumes: a folder on the node that the scheduler chose, gone when its claim is gone.

Runs as a program of the cluster (`python -m scripts.local_kubernetes.volumes`). It keeps no state: each round lists all
claims and volumes.
"""

import shutil
import time
from pathlib import Path
from typing import Any

from kubernetes import client, config

from scripts.local_kubernetes.places import NODES, kubeconfig

CLASS = "ottla-local"
PROVISIONER = "ottla.dev/local"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
ROUND_S = 0.5
REQUEST_TIMEOUT_S = 10
STORAGE_CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": PROVISIONER,
    "volumeBindingMode": "WaitForFirstConsumer",
    "reclaimPolicy": "Delete",
}


def main() -> None:
    config.load_kube_config(str(kubeconfig()))  # type: ignore[no-untyped-call]
    api = client.CoreV1Api()
    while True:
        try:
            one_round(api)
        except Exception as failed:  # the next round tries again, whatever it was
            print(f"{type(failed).__name__}: {failed}", flush=True)
        time.sleep(ROUND_S)


def one_round(api: Any) -> None:
    limit = {"_request_timeout": REQUEST_TIMEOUT_S}
    for claim in api.list_persistent_volume_claim_for_all_namespaces(**limit).items:
        if claim.spec.storage_class_name == CLASS and not claim.spec.volume_name and _node_of(claim):
            _provide(api, claim)
    for volume in api.list_persistent_volume(**limit).items:
        if (volume.metadata.annotations or {}).get(PROVISIONED_BY) == PROVISIONER and volume.status.phase == "Released":
            _reclaim(api, volume)


def _provide(api: Any, claim: Any) -> None:
    name = f"pvc-{claim.metadata.uid}"
    node = next(node for node in NODES if node.name == _node_of(claim))
    folder = node.folder / "volumes" / name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        api.create_persistent_volume(volume_for(claim, name=name, node=node.name, folder=folder))
        print(f"made {name} on {node.name} for {claim.metadata.namespace}/{claim.metadata.name}", flush=True)
    except client.ApiException as refused:
        if refused.status != 409:  # there since the last round, not bound yet
            raise


def volume_for(claim: Any, *, name: str, node: str, folder: Path) -> dict[str, Any]:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "storageClassName": CLASS,
            "capacity": {"storage": claim.spec.resources.requests["storage"]},
            "accessModes": claim.spec.access_modes,
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": claim.metadata.name,
                "namespace": claim.metadata.namespace,
                "uid": claim.metadata.uid,
            },
            "local": {"path": str(folder)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def _reclaim(api: Any, volume: Any) -> None:
    shutil.rmtree(volume.spec.local.path, ignore_errors=True)
    api.delete_persistent_volume(volume.metadata.name)
    print(f"reclaimed {volume.metadata.name}", flush=True)


def _node_of(claim: Any) -> str | None:
    found = (claim.metadata.annotations or {}).get(SELECTED_NODE)
    return found if isinstance(found, str) else None


if __name__ == "__main__":
    main()
