"""What commands that stay share: where they write, and how they are asked to stop."""

import signal
from collections.abc import Callable
from types import FrameType

from rich.console import Console

__all__ = ["make_console", "stop_asked"]

WIDTH_OF_FILES = 180


def make_console() -> Console:
    """Without a terminal there is no width to keep to: a table in a file must not wrap."""
    terminal = Console(highlight=False)
    return terminal if terminal.is_terminal else Console(highlight=False, width=WIDTH_OF_FILES)


def stop_asked() -> Callable[[], bool]:
    """Says whether SIGTERM or Ctrl-C has come since."""
    asked: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        asked.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, note)
    return lambda: bool(asked)
