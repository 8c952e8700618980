"""Ottla: a Kafka-compatible broker written in Python. The map of this package is ARCHITECTURE.md."""

from ottla import compiled

__version__ = "0.1.0"

compiled.install()
