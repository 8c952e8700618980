"""Whether an object is as its manifest says. Pure."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ottla_operator.resources.labels import APPLIED

__all__ = ["covers", "marked"]

Manifest = dict[str, Any]


def marked(manifest: Manifest) -> Manifest:
    """With a hash of itself among its annotations: a field that is no longer wanted shows as another hash."""
    text = json.dumps(manifest, sort_keys=True)
    metadata = dict(manifest["metadata"])
    metadata["annotations"] = {
        **metadata.get("annotations", {}),
        APPLIED: hashlib.sha256(text.encode()).hexdigest()[:16],
    }
    return {**manifest, "metadata": metadata}


def covers(live: Any, wanted: Any) -> bool:
    """Everything that is wanted is there; what the API server has added does not matter."""
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(key in live and covers(live[key], wanted[key]) for key in wanted)
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        return (
            isinstance(live, Sequence)
            and len(live) == len(wanted)
            and all(covers(*both) for both in zip(live, wanted, strict=True))
        )
    return bool(live == wanted)
