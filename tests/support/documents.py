"""The code blocks of README and docs: each is run by the tests, or a comment before it says why not.

    <!-- not run: it would take an hour -->
    ```bash
    make test-all
    ```

Python and bash are run beside a broker by tests/compat/test_documents.py. `<!-- run by tests/cluster/test_spark.py -->`
names another test that runs the block.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).parents[2]
FENCE = "```"
RUNNABLE = ("bash", "python")
COMMENT = re.compile(r"<!-- *(.*?) *-->")
NOT_RUN, RUN_BY = re.compile(r"not run: \S"), re.compile(r"run by (tests/[\w/.]+)")


@dataclass(frozen=True)
class Block:
    """`heading`: the one it stands under; `mark`: the comment before it, or nothing."""

    document: str
    line: int
    heading: str
    language: str
    text: str
    mark: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"

    @property
    def is_run_here(self) -> bool:
        return self.language in RUNNABLE and not self.mark

    def complaint(self) -> str | None:
        """Why neither a test nor a reader knows what to do with it; None when all is well."""
        if self.is_run_here or NOT_RUN.match(self.mark):
            return None
        if named := RUN_BY.match(self.mark):
            return None if (TOP / named[1]).is_file() else f"{self}: there is no {named[1]}"
        if self.mark:
            return f"{self}: `{self.mark}` is neither `not run: why` nor `run by tests/…`"
        return f"{self}: nothing runs {self.language or 'an unnamed language'}: write `<!-- not run: why -->` before it"


def documents() -> list[Path]:
    return [TOP / "README.md", TOP / "CONTRIBUTING.md", *sorted((TOP / "docs").rglob("*.md"))]


def all_blocks() -> list[Block]:
    return [block for path in documents() for block in blocks_of(str(path.relative_to(TOP)), path.read_text())]


def block_under(heading: str) -> Block:
    """The only block of the README under this heading."""
    (found,) = (block for block in all_blocks() if (block.document, block.heading) == ("README.md", heading))
    return found


def commands_of(block: Block) -> Iterable[str]:
    """Lines of bash, without comments."""
    return filter(None, (line.split(" #")[0].strip() for line in block.text.splitlines()))


def blocks_of(document: str, text: str) -> Iterator[Block]:
    heading, before = "", ""
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        if line.startswith(FENCE):
            inside = itertools.takewhile(lambda numbered: not numbered[1].startswith(FENCE), lines)
            code = "".join(f"{each}\n" for _, each in inside)
            comment = COMMENT.fullmatch(before)
            yield Block(document, number, heading, line.strip("`"), code, comment[1] if comment else "")
        elif line.startswith("#"):
            heading = line.strip("# ")
        before = line
