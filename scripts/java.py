"""Have Java for Spark: installed as root on Debian, otherwise a line that says what to install."""

import shutil
import sys

from scripts.debian import NotInstalled, can_install, install

PACKAGE = "openjdk-17-jre-headless"


def main() -> int:
    if shutil.which("java"):
        return 0
    if not can_install():
        print(f"Spark needs Java 17 or newer; install it (Debian: sudo apt-get install {PACKAGE})", file=sys.stderr)
        return 1
    print(f"installing {PACKAGE} …", flush=True)
    try:
        install(PACKAGE)
    except NotInstalled as failed:
        print(failed, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
