"""The sandbox image's archive is built once per machine, and again when its content changes."""

import hashlib
from pathlib import Path

from scripts.local_kubernetes import pause_image

CONTENT = "64aa50fec1f13140"


def test_another_content_needs_another_version() -> None:
    """If this fails: set a new `pause_image.VERSION`, then the digest here."""
    program = pause_image.SOURCE.read_bytes()
    archive = Path(pause_image.__file__).read_text().partition("def _archive(")[2].encode()
    found = hashlib.sha256(program + archive).hexdigest()[:16]
    assert (pause_image.VERSION, found) == ("92151954bf690fed", CONTENT)
