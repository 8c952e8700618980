"""Every code block of README and docs is run, or says why not; what it names is there."""

import re
import shlex

import pytest
from support.documents import TOP, all_blocks, block_under, blocks_of, commands_of

TEXT = """\
# One

Prose.

```bash
# no heading
ottla serve
```

## Two

<!-- not run: it never ends -->
```bash
ottla fleet up
```
```yaml
a: 1
```
<!-- run by tests/nowhere.py -->
```python
print()
```
<!-- later -->
```python
```
"""


def test_blocks_are_found_with_their_headings_and_marks() -> None:
    found = list(blocks_of("README.md", TEXT))
    assert [(one.line, one.heading, one.language, one.mark) for one in found] == [
        (5, "One", "bash", ""),
        (13, "Two", "bash", "not run: it never ends"),
        (16, "Two", "yaml", ""),
        (20, "Two", "python", "run by tests/nowhere.py"),
        (24, "Two", "python", "later"),
    ]
    assert found[0].text == "# no heading\nottla serve\n"
    assert [one.complaint() for one in found] == [
        None,
        None,
        "README.md:16: nothing runs yaml: write `<!-- not run: why -->` before it",
        "README.md:20: there is no tests/nowhere.py",
        "README.md:24: `later` is neither `not run: why` nor `run by tests/…`",
    ]


def test_each_block_is_run_or_says_why_not() -> None:
    blocks = all_blocks()
    assert [complaint for block in blocks if (complaint := block.complaint())] == []
    assert any(block.is_run_here for block in blocks)


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (TOP / "Makefile").read_text(), flags=re.MULTILINE))


@pytest.mark.parametrize("block", [one for one in all_blocks() if one.language == "bash"], ids=str)
def test_what_is_made_can_be_made(block) -> None:
    for line in commands_of(block):
        for words in re.findall(r"\bmake ((?:-s )?[a-z -]+)", line):
            assert set(words.split()) - {"-s"} <= targets(), line


def test_the_cluster_of_the_readme_is_the_one_of_the_tests() -> None:
    """tests/cluster runs its helm and kubectl lines, in a cluster that it starts and ends as the first and last do."""
    lines = list(commands_of(block_under("On Kubernetes")))
    assert lines[0] == "make cluster-up images" and lines[-1] == "make cluster-down"
    assert {shlex.split(line)[0] for line in lines} == {"make", "eval", "helm", "kubectl"}
