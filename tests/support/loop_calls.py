"""Counts calls that wait for the disk, by thread: the event loop's must make none while others work."""

import os
import threading
from collections import Counter

import pytest

WAITING = ("fsync", "fdatasync", "replace", "remove", "ftruncate", "pread")


class LoopCalls:
    """Counts, from `begin` to `end`, the calls of the thread that called `begin`, and of all others."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.on_loop: Counter[str] = Counter()
        self.elsewhere: Counter[str] = Counter()
        self._loop = 0
        for name in WAITING:
            monkeypatch.setattr(os, name, self._counted(name))

    def _counted(self, name: str):  # type: ignore[no-untyped-def]
        call = getattr(os, name)

        def counted(*arguments, **options):  # type: ignore[no-untyped-def]
            if self._loop:
                counts = self.on_loop if threading.get_ident() == self._loop else self.elsewhere
                counts[name] += 1
            return call(*arguments, **options)

        return counted

    def begin(self) -> None:
        self.on_loop.clear()
        self.elsewhere.clear()
        self._loop = threading.get_ident()

    def end(self) -> None:
        self._loop = 0
