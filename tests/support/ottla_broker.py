"""This project's broker, started as a user starts it."""

import sys
from pathlib import Path

from support.process import BrokerProcess

SHIFTED = "import time; real = time.time_ns; time.time_ns = lambda: real() + {nanoseconds}; "
ENTRY = "import sys; from ottla.cli.main import app; sys.exit(app())"


class OttlaBroker(BrokerProcess):
    name = "ottla"
    program = Path(sys.executable).parent / "ottla"  # another one's, to compare two versions
    _code: Path | None = None
    _clock_shift_s = 0

    def use_code(self, folder: Path | None, *, clock_shift_s: int = 0) -> None:
        """From its next start on it runs the package `ottla` in that folder, or this tree's, by a clock that may differ
        from ours."""
        self._code, self._clock_shift_s = folder, clock_shift_s

    def command(self) -> list[str]:
        settings = {"listeners": f"PLAINTEXT://127.0.0.1:{self.port}", "node.id": "1", **self.settings}
        overrides = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        folder = [] if "log.dirs" in settings else ["--data-dir", str(self.data_dir)]
        return [*self._entry(), "serve", *folder, *overrides]

    def _entry(self) -> list[str]:
        if self._code is None:
            return [str(self.program)]
        shift = SHIFTED.format(nanoseconds=self._clock_shift_s * 10**9) if self._clock_shift_s else ""
        # By PYTHONPATH, since the broker's worker process has to find it as well.
        return ["env", f"PYTHONPATH={self._code}", sys.executable, "-c", shift + ENTRY]
