import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_generated_code_follows_from_the_protos() -> None:
    script = ROOT / "scripts" / "generate_protos.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
