"""This project's broker, started as a user starts it."""

import sys
from pathlib import Path

from support.process import BrokerProcess


class OttlaBroker(BrokerProcess):
    name = "ottla"
    program = Path(sys.executable).parent / "ottla"  # another one's, to compare two versions

    def command(self) -> list[str]:
        settings = {"listeners": f"PLAINTEXT://127.0.0.1:{self.port}", "node.id": "1", **self.settings}
        overrides = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        folder = [] if "log.dirs" in settings else ["--data-dir", str(self.data_dir)]
        return [str(self.program), "serve", *folder, *overrides]
