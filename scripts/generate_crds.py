"""Generate crds/ and the chart's copies from the operator's models. With --check: say what is stale, change nothing."""

import sys
from pathlib import Path

import yaml
from ottla_operator.resources.catalog import KINDS
from ottla_operator.resources.schema import crd_manifest

ROOT = Path(__file__).parents[1]
FOLDERS = ("crds", "charts/ottla/crds")
HEADER = "# Generated from operator/ottla_operator/resources by `make crds`; do not edit.\n"


def texts() -> dict[str, str]:
    """File name → content."""
    return {
        f"{kind.CRD.plural}.yaml": HEADER
        + yaml.safe_dump(crd_manifest(kind), sort_keys=False, width=120, allow_unicode=True)
        for kind in KINDS
    }


def main(words: list[str]) -> int:
    stale = [path for path, text in _wanted().items() if not path.exists() or path.read_text() != text]
    surplus = [path for folder in FOLDERS for path in (ROOT / folder).glob("*.yaml") if path not in _wanted()]
    if "--check" in words:
        for path in [*stale, *surplus]:
            print(f"{path.relative_to(ROOT)} does not fit the models: run `make crds`")
        return 1 if stale or surplus else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_wanted()[path])
    for path in surplus:
        path.unlink()
    return 0


def _wanted() -> dict[Path, str]:
    return {ROOT / folder / name: text for folder in FOLDERS for name, text in texts().items()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
