"""What commands share: the console they write to, and whether they were asked to stop."""

import signal
from collections.abc import Callable
from types import FrameType

from rich.console import Console

__all__ = ["make_console", "stop_asked"]

WIDTH_OF_FILES = 1000


def make_console() -> Console:
    """Without a terminal there is no width to keep to: what goes into a pipe or a file is neither wrapped nor cut."""
    terminal = Console(highlight=False)
    return terminal if terminal.is_terminal else Console(highlight=False, width=WIDTH_OF_FILES)


def stop_asked() -> Callable[[], bool]:
    """A function that says whether SIGTERM or Ctrl-C has come since."""
    asked: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        asked.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, note)
    return lambda: bool(asked)
