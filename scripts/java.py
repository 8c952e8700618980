"""Have Java for Spark: installed as root on Debian, otherwise a line that says what to install."""

import os
import shutil
import subprocess
import sys

PACKAGE = "openjdk-17-jre-headless"
INSTALL = ("apt-get", "install", "-y", "-q", "--no-install-recommends", PACKAGE)


def main() -> int:
    if shutil.which("java"):
        return 0
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print(f"Spark needs Java 17 or newer; install it (Debian: sudo apt-get install {PACKAGE})", file=sys.stderr)
        return 1
    print(f"installing {PACKAGE} …", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # A fresh image has no package lists yet.
    subprocess.run(("apt-get", "update", "-q"), env=environment, stdout=subprocess.DEVNULL, check=True)
    return subprocess.run(INSTALL, env=environment, stdout=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
