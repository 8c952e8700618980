#!/bin/sh
# The `ottla` command of the image, where the package is a folder on PYTHONPATH.
exec /opt/ottla/bin/python -c 'import sys; from ottla.cli.main import app; sys.exit(app())' "$@"
