"""The claim for the volume where streams keep their state. Pure."""

from typing import Any

from ottla_operator.manifests.spark_names import checkpoint_claim_name, metadata_of
from ottla_operator.resources.spark_application import SparkApplication

__all__ = ["checkpoint_claim"]


def checkpoint_claim(application: SparkApplication) -> dict[str, Any] | None:
    """None where there is none to be made. It has no owner: without its state a stream would count everything twice."""
    checkpoint, name = application.spec.checkpoint, checkpoint_claim_name(application)
    if checkpoint is None or checkpoint.volume.size is None or name is None:
        return None
    volume = checkpoint.volume
    metadata = metadata_of(application, name)
    del metadata["ownerReferences"]
    spec = {
        "accessModes": [volume.access_mode],
        "resources": {"requests": {"storage": str(volume.size)}},
        **({"storageClassName": volume.storage_class_name} if volume.storage_class_name else {}),
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
