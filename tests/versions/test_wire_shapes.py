"""Names and numbers on the wire between nodes: this version may add fields that need not be there, and change nothing.

A roll would not always notice a field that was renamed: an absent one has its default.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import ottla
import pytest

PROGRAM = Path(__file__).with_name("wire_shapes.py")
THIS = Path(ottla.__file__).parents[1]


def shapes_of(code: Path, *, keep_bytecode: bool = True) -> dict[str, dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": str(code), "PYTHONDONTWRITEBYTECODE": "" if keep_bytecode else "1"}
    done = subprocess.run([sys.executable, str(PROGRAM)], env=environment, capture_output=True, text=True, check=True)
    shapes: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return shapes


def changes(old: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What is missing or differs, and what was added to a struct and has to be there."""
    found = [f"{name} is missing" for name in old.keys() - new.keys()]
    for name in old.keys() & new.keys():
        found += [f"{name}.{field} was {was}" for field, was in old[name].items() if new[name].get(field) != was]
        added = {field: new[name][field] for field in new[name].keys() - old[name].keys()}
        found += [f"{name}.{field} is required" for field, told in added.items() if told[0] is True]
    return found


def test_this_version_says_what_the_one_before_said(previous_code: Path) -> None:
    before, now = shapes_of(previous_code), shapes_of(THIS)
    for kind, shapes in before.items():
        assert len(shapes) > 40, "the program finds what nodes send"
        assert changes(shapes, now[kind]) == []


@pytest.mark.parametrize(
    ("new", "complaint"),
    [
        ({"Ask": {"key": [True, "str"], "more": [False, "int"]}, "Other": {}}, []),
        ({"Ask": {"key": [True, "str"], "more": [True, "int"]}}, ["Ask.more is required"]),
        ({"Ask": {"name": [False, "str"]}}, ["Ask.key was [True, 'str']"]),
        ({}, ["Ask is missing"]),
    ],
)
def test_what_is_a_change(new: dict[str, dict[str, Any]], complaint: list[str]) -> None:
    assert changes({"Ask": {"key": [True, "str"]}}, new) == complaint


# -- mutants: each is made in a copy of the sources, and either found or allowed.

SHARE, COMMANDS, QUORUM = "share/core/messages.py", "metadata/decisions/commands.py", "raft/core/quorum_state.py"
SUMMARY_HEAD = "class Summary(msgspec.Struct, frozen=True, array_like=True):\n    state_epoch: int = 0\n"
SUMMARY_START, SUMMARY_LEADER = "    start: int = UNINITIALIZED\n", "    leader_epoch: int = 0\n"
SUMMARY = f"{SUMMARY_HEAD}{SUMMARY_START}{SUMMARY_LEADER}"
STATE_START, STATE_BATCHES = "    start: int = UNINITIALIZED\n", "    batches: tuple[StateBatch, ...] = ()\n"
NEW_TOPICS = "    topics: Sequence[NewTopic]\n    validate_only: bool = "


class Mutant(NamedTuple):
    module: str
    was: str
    becomes: str
    complaints: set[str]


MUTANTS = {
    "order of a share key": Mutant(
        SHARE,
        "    group_id: str\n    topic_id: uuid.UUID\n",
        "    topic_id: uuid.UUID\n    group_id: str\n",
        {"ShareKey.group_id", "ShareKey.topic_id"},
    ),
    "order of a batch": Mutant(
        SHARE,
        "    first: int\n    last: int\n",
        "    last: int\n    first: int\n",
        {"StateBatch.first", "StateBatch.last"},
    ),
    "order of a share state": Mutant(
        SHARE,
        f"{STATE_START}{STATE_BATCHES}",
        f"{STATE_BATCHES}{STATE_START}",
        {"ShareState.start", "ShareState.batches"},
    ),
    "order of a summary": Mutant(
        SHARE,
        SUMMARY,
        f"{SUMMARY_HEAD}{SUMMARY_LEADER}{SUMMARY_START}",
        {"Summary.start", "Summary.leader_epoch"},
    ),
    "a field before others that travel by place": Mutant(
        SHARE,
        SUMMARY,
        f"{SUMMARY_HEAD}    more: int = 0\n{SUMMARY_START}{SUMMARY_LEADER}",
        {"Summary.start", "Summary.leader_epoch"},
    ),
    "a field behind them": Mutant(SHARE, SUMMARY, f"{SUMMARY}    more: int = 0\n", set()),
    "by name what was by place": Mutant(
        SHARE,
        "class StateBatch(msgspec.Struct, frozen=True, array_like=True)",
        "class StateBatch(msgspec.Struct, frozen=True)",
        {"StateBatch.first", "StateBatch.last", "StateBatch.delivery", "StateBatch.count", "StateBatch.the whole"},
    ),
    "numbers with names": Mutant(
        COMMANDS,
        "    SET = 0\n    DELETE = 1\n",
        "    SET = 1\n    DELETE = 0\n",
        {"SettingOperation.SET", "SettingOperation.DELETE"},
    ),
    "one more number": Mutant(COMMANDS, "    SUBTRACT = 3\n", "    SUBTRACT = 3\n    MULTIPLY = 4\n", set()),
    "numbers of an enum": Mutant(
        SHARE,
        "    ACKNOWLEDGED = 2\n    ARCHIVED = 4\n",
        "    ACKNOWLEDGED = 4\n    ARCHIVED = 2\n",
        {"Delivery.ACKNOWLEDGED", "Delivery.ARCHIVED"},
    ),
    "a default": Mutant(COMMANDS, f"{NEW_TOPICS}False", f"{NEW_TOPICS}True", {"CreateTopics.validate_only"}),
    "order of what is hashed": Mutant(
        "metadata/model/acls.py",
        "    operation: int\n    permission: int\n\n    @property\n    def id",
        "    permission: int\n    operation: int\n\n    @property\n    def id",
        {"AclBinding.the whole"},
    ),
    "more of what is hashed": Mutant(
        "metadata/model/acls.py",
        "    permission: int\n\n    @property\n    def id",
        "    permission: int\n    more: int = 0\n\n    @property\n    def id",
        {"AclBinding.the whole"},
    ),
    "what DescribeQuorum shows": Mutant(
        QUORUM,
        "    leader_epoch: int\n",
        "    epoch: int\n",
        {"QuorumState.leader_epoch", "QuorumState.epoch is required"},
    ),
    "what it shows of a replica": Mutant(
        QUORUM, "    last_fetch_ms: int\n", "    last_fetch_ms: float\n", {"ReplicaState.last_fetch_ms"}
    ),
    "a method": Mutant(
        "txn/core/messages.py", '"AddPartitions"', '"AddPartition"', {"names in txn messages.ADD_PARTITIONS"}
    ),
    "a method of share states": Mutant(
        "share/core/questions.py", '"WriteShareState"', '"WriteState"', {"Write.method"}
    ),
}


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mutants")
    shutil.copytree(THIS / "ottla", folder / "ottla", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return folder


@pytest.fixture(scope="module")
def shapes(copied: Path) -> dict[str, Any]:
    return shapes_of(copied)["packed"]


@contextmanager
def edited(code: Path, module: str, was: str, becomes: str) -> Iterator[None]:
    """No bytecode may be kept of it: a file's time and length would not tell it from the next."""
    path = code / "ottla" / module
    text = path.read_text()
    assert text.count(was) == 1, f"{text.count(was)} times in {module}: {was}"
    path.write_text(text.replace(was, becomes))
    try:
        yield
    finally:
        path.write_text(text)


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_what_changes_in_the_sources_is_found(copied: Path, shapes: dict[str, Any], mutant: Mutant) -> None:
    with edited(copied, mutant.module, mutant.was, mutant.becomes):
        found = changes(shapes, shapes_of(copied, keep_bytecode=False)["packed"])
    assert {one.partition(" was ")[0] for one in found} == mutant.complaints


@pytest.mark.parametrize(
    ("was", "becomes", "complaint"),
    [
        ("type=QuorumState", "type=self.kind", "packs or reads self.kind"),
        ("import msgspec\n", "import msgspec\nfrom msgspec.msgpack import decode\n", "from msgspec.msgpack import"),
    ],
)
def test_the_program_says_what_it_cannot_tell(copied: Path, was: str, becomes: str, complaint: str) -> None:
    with edited(copied, "rpc/forwarding.py", was, becomes), pytest.raises(subprocess.CalledProcessError) as failed:
        shapes_of(copied, keep_bytecode=False)
    assert complaint in failed.value.stderr
