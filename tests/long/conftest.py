"""Runs that take longer than anybody waits for: by hand, `make test-long`."""

from support.fixtures import name

__all__ = ["name"]
