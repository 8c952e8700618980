"""`make check`: style, types, import layers and drift of generated files, all of them even when one fails."""

import subprocess
import sys
import time

CHECKS = {
    "ruff": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "mypy": ["mypy"],
    "layers": ["lint-imports", "--no-cache"],
    "purity": ["python", "scripts/purity.py"],
    "protos": ["python", "scripts/generate_protos.py", "--check"],
    "requests": ["python", "scripts/generate_requests.py", "--check"],
    "effects": ["python", "-m", "ottla.config.effects"],
    "CRDs": ["python", "scripts/generate_crds.py", "--check"],
    "CONFIG.md": ["python", "-m", "ottla.config.document", "--check"],
}


def main() -> int:
    failed = []
    for name, command in CHECKS.items():
        started = time.monotonic()
        program = f"{sys.prefix}/bin/{command[0]}"
        result = subprocess.run([program, *command[1:]], capture_output=True, text=True)
        ok = result.returncode == 0
        print(f"{'ok  ' if ok else 'FAIL'} {name:<10} {time.monotonic() - started:5.1f} s", flush=True)
        if not ok:
            failed.append(name)
            print(result.stdout + result.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
