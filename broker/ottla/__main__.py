"""`python -m ottla` is the ottla command."""

import sys

from ottla.cli.main import app

if __name__ == "__main__":
    sys.exit(app())
