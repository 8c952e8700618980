"""Java programs: Kafka's own command-line tools, unmodified, and the few small programs in `tests/support/java`."""

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from support.kafka_jars import cache_folder, kafka_jars

SOURCES = Path(__file__).parent / "java"
TOOL_TIMEOUT_S = 90.0
# Tools live a second: compile lightly, share classes, one small heap region.
FAST_START = ("-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")


@dataclass(frozen=True)
class Finished:
    """What a tool left behind. `text` is both streams, in that order."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err

    @property
    def lines(self) -> list[str]:
        return [line.strip() for line in self.out.splitlines() if line.strip()]


def java_command(
    main_class: str, *arguments: str, options: Sequence[str] = FAST_START, classes: Path | None = None
) -> list[str]:
    classpath = f"{kafka_jars()}/*" if classes is None else f"{classes}:{kafka_jars()}/*"
    return ["java", *options, "-cp", classpath, main_class, *arguments]


def java_tool(
    main_class: str, *arguments: str, stdin: str | None = None, code: int | None = 0, timeout_s: float = TOOL_TIMEOUT_S
) -> Finished:
    """Run to the end. `code` is the exit code that must come (None: any)."""
    return _run(java_command(main_class, *arguments), stdin=stdin, code=code, timeout_s=timeout_s)


def java_program(
    name: str, *arguments: str, stdin: str | None = None, code: int | None = 0, timeout_s: float = TOOL_TIMEOUT_S
) -> Finished:
    """Run `tests/support/java/<name>.java`, compiled when anything in the folder changed."""
    return _run(program_command(name, *arguments), stdin=stdin, code=code, timeout_s=timeout_s)


def program_command(name: str, *arguments: str) -> list[str]:
    return java_command(name, *arguments, classes=_compiled())


def _run(command: list[str], *, stdin: str | None, code: int | None, timeout_s: float) -> Finished:
    done = subprocess.run(command, input=stdin or "", capture_output=True, text=True, timeout=timeout_s)
    finished = Finished(code=done.returncode, out=done.stdout, err=_without_logger_notice(done.stderr))
    if code is not None and done.returncode != code:
        tail = " ".join(command[-12:])
        raise AssertionError(f"exit code {done.returncode}, expected {code}: {tail}\n{finished.text}")
    return finished


def _without_logger_notice(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("SLF4J:"))


def _compiled() -> Path:
    """A folder of all programs' classes, named by the sources so that it is never stale; made whole or not at all."""
    sources = sorted(SOURCES.glob("*.java"))
    target = cache_folder().parent / f"classes-{_digest(sources)}"
    if target.is_dir():
        return target
    jars = kafka_jars()
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch) / "classes"
        subprocess.run(["javac", "-cp", f"{jars}/*", "-d", str(made), *map(str, sources)], check=True)
        try:
            os.rename(made, target)
        except OSError:
            # A parallel worker compiled the same sources first.
            if not target.is_dir():
                raise
    return target


def _digest(sources: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for source in sources:
        digest.update(f"{source.name}\0{source.stat().st_size}\0".encode() + source.read_bytes())
    return digest.hexdigest()[:16]
