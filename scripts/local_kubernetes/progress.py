"""What is being done and how long it took, on standard error: a spinner for a person, plain lines for a log."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

console = Console(stderr=True, highlight=False)
DETAIL_CHARS_MAX = 70


@contextmanager
def step(title: str) -> Iterator[Callable[[str], None]]:
    """Gives a function that shows a detail of the work under way."""
    started = time.monotonic()
    if not sys.stderr.isatty():
        console.print(f"… {title}", markup=False)
    with console.status(title) as status:
        yield lambda detail: status.update(f"{title} [dim]{detail[:DETAIL_CHARS_MAX]}[/dim]")
    console.print(f"✓ {title} ({time.monotonic() - started:.1f} s)", markup=False)
