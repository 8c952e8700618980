"""Generate broker/ottla/pb from proto/. With --check: fail when a generated file differs, change nothing."""

import argparse
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
OUTPUT = ROOT / "broker"
GENERATED = ("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*_pb2_grpc.pyi")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        generate(OUTPUT)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        stale = differences(fresh=Path(folder) / "ottla/pb", kept=OUTPUT / "ottla/pb")
    for name in stale:
        print(f"broker/ottla/pb/{name} does not follow from proto/; run python scripts/generate_protos.py")
    return 1 if stale else 0


def generate(output: Path) -> None:
    plugin_folder = Path(sys.executable).parent
    arguments = ["protoc", f"-I{PROTO}", f"--python_out={output}", f"--mypy_out=quiet:{output}"]
    arguments += [f"--plugin=protoc-gen-{name}={plugin_folder}/protoc-gen-{name}" for name in ("mypy", "mypy_grpc")]
    sources = sorted(PROTO.rglob("*.proto"))
    services = [source for source in sources if "\nservice " in source.read_text()]
    run([*arguments, *map(str, sources)])
    if services:
        run([*arguments, f"--grpc_python_out={output}", f"--mypy_grpc_out=quiet:{output}", *map(str, services)])


def run(arguments: list[str]) -> None:
    if code := protoc.main(arguments):
        raise SystemExit(f"protoc failed with code {code}")


def differences(*, fresh: Path, kept: Path) -> list[str]:
    expected, present = contents(fresh), contents(kept)
    return sorted(name for name in expected.keys() | present.keys() if expected.get(name) != present.get(name))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for pattern in GENERATED for path in folder.glob(pattern)}


if __name__ == "__main__":
    sys.exit(main())
