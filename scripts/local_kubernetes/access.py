"""A way into a cluster, whoever started it: its kubeconfig and the programs that talk to it."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from scripts.local_kubernetes.commands import run

Kind = Literal["existing", "kind", "own"]


@dataclass(frozen=True)
class Access:
    kind: Kind
    kubeconfig: str
    programs: Path | None  # a folder with kubectl and helm; None when they are on the PATH

    @property
    def environment(self) -> dict[str, str]:
        path = os.environ.get("PATH", "")
        return {"KUBECONFIG": self.kubeconfig, "PATH": f"{self.programs}:{path}" if self.programs else path}

    def kubectl(self, *arguments: object, stdin: str | None = None, timeout_s: float = 120.0) -> str:
        return self._run("kubectl", *arguments, stdin=stdin, timeout_s=timeout_s)

    def helm(self, *arguments: object, timeout_s: float = 180.0) -> str:
        return self._run("helm", *arguments, timeout_s=timeout_s)

    def get(self, *arguments: object) -> Any:
        """What `kubectl get … -o json` says."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=_list_of(objects))

    def create(self, *objects: dict[str, Any]) -> None:
        self.kubectl("create", "-f", "-", stdin=_list_of(objects))

    def _run(self, name: str, *arguments: object, stdin: str | None = None, timeout_s: float) -> str:
        program = self.programs / name if self.programs else name
        return run(program, *arguments, stdin=stdin, environment=self.environment, timeout_s=timeout_s)


def _list_of(objects: tuple[dict[str, Any], ...]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
