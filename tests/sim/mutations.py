"""Does the simulation find what it is there for? Single-line sabotages of the broker, and the histories each survives.

    python -m sim.mutations [--histories 300] [NAME …]        the table; exit code 1 when one survives them all

Every sabotage is made in a copy of the package; the tree itself is not touched.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import ottla

PACKAGE = Path(next(iter(ottla.__path__)))


@dataclass(frozen=True)
class Mutation:
    name: str
    file: str
    line: str
    sabotaged: str


MUTATIONS = (
    Mutation(
        "acks=all before the in-sync set has it",
        "replica/isr.py",
        "        lowest = min((each.end for each in self._others), default=self._end)\n",
        "        lowest = self._end\n",
    ),
    Mutation("metadata entries are not synced", "raft/store.py", "        log_file.file.sync()\n", "        pass\n"),
    Mutation(
        "votes are not written",
        "raft/store.py",
        "        if hard_state is not None:\n            self._disk.replace_file",
        "        if False:\n            self._disk.replace_file",
    ),
    Mutation(
        "a node votes twice in a term",
        "raft/elections.py",
        "    free = raft.vote == message.source or (raft.vote is None and raft.leader is None)\n",
        "    free = True\n",
    ),
    Mutation(
        "entries of older terms are committed by counting",
        "raft/leading.py",
        "    if index <= raft.log.commit or raft.log.term_at(index) != raft.term:\n",
        "    if index <= raft.log.commit:\n",
    ),
    Mutation("no cut where logs part", "replica/copying.py", "    copy.truncate_to(target)\n", "    pass\n"),
    Mutation(
        "leaders do not look where logs part",
        "replica/leading.py",
        "    if epoch < follow.last_epoch or end < follow.end:\n",
        "    if False:\n",
    ),
    Mutation(
        "the in-sync set shrinks without the controller",
        "replica/isr.py",
        "        self.pending = isr\n        self._recount(now)\n",
        "        self.isr = self.pending = isr\n        self._recount(now)\n",
    ),
    Mutation(
        "the watermark moves below min.insync.replicas",
        "replica/isr.py",
        "        if lowest <= self.high_watermark or not self.enough_in_sync:\n",
        "        if lowest <= self.high_watermark:\n",
    ),
    Mutation(
        "writes are taken below min.insync.replicas, and committed",
        "replica/isr.py",
        "        return len(self.isr) >= self.isr_size_min or len(self.isr) > len(self._followers)\n",
        "        return True\n",
    ),
    Mutation(
        "after an unclean stop a replica stays eligible",
        "metadata/brokers.py",
        "        unclean = command.previous_epoch != existing.epoch\n",
        "        unclean = False\n",
    ),
    Mutation(
        "eligible replicas are forgotten",
        "metadata/elections.py",
        "    for pool in (target.isr, target.elr):\n",
        "    for pool in (target.isr,):\n",
    ),
    Mutation(
        "a follower of an older epoch is served",
        "replica/leading.py",
        "            partition.require_leader(follow.leader_epoch)\n",
        "            partition.require_leader()\n",
    ),
    Mutation(
        "batches of another epoch are copied",
        "replica/copying.py",
        "    if entry.base_offset != end or entry.leader_epoch != partition.leader_epoch:\n",
        "    if entry.base_offset != end:\n",
    ),
    Mutation(
        "a replica joins without the broker epoch it was seen with",
        "metadata/partitions.py",
        "    return image.is_active(broker_id) and epoch in (-1, image.brokers[broker_id].epoch)\n",
        "    return True\n",
    ),
    Mutation(
        "a follower joins before it has what is committed",
        "replica/isr.py",
        "fits = follower.end >= max(self.high_watermark, self.epoch_start) and self._is_eligible(follower)\n",
        "fits = self._is_eligible(follower)\n",
    ),
    Mutation(
        "a hole between segments is overlooked",
        "storage/recovery.py",
        '        if segment.next_offset < next_base and "compact" not in log.settings.cleanup_policies:\n',
        "        if False:\n",
    ),
    Mutation(
        "producers are not rolled back with the log",
        "storage/log.py",
        "min(self.start_offset, self.end_offset)\n        recovery.rebuild_producers(self)\n",
        "min(self.start_offset, self.end_offset)\n",
    ),
    Mutation(
        "a torn tail is kept",
        "storage/recovery.py",
        "    if segment.rebuild(interval=interval, verify=True, below=next_base, seen=note_epoch):\n",
        "    if segment.rebuild(interval=interval, verify=False, below=next_base, seen=note_epoch):\n",
    ),
    Mutation(
        "the mark of a clean stop survives a crash",
        "storage/directory.py",
        '        disk.remove(f"{path}/{CLEAN_SHUTDOWN}")\n',
        "        pass\n",
    ),
    Mutation(
        "logs of a deleted topic are taken for the new one's",
        "storage/loading.py",
        "            elif topic_ids.get(key) != expected.get(key) or key not in expected:\n",
        "            elif key not in expected:\n",
    ),
    Mutation(
        "nobody is told of a failed log dir",
        "replica/host.py",
        "        if self._lost is not None:\n            self._lost.look()\n",
        "        pass\n",
    ),
)


def survived(mutation: Mutation, histories: int, first_seed: int) -> str:
    """What happened: the history that found it, or that none did."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "ottla"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        target = copy / mutation.file
        text = target.read_text()
        assert text.count(mutation.line) == 1, f"{mutation.name}: {text.count(mutation.line)} times in {mutation.file}"
        target.write_text(text.replace(mutation.line, mutation.sabotaged))
        program = [sys.executable, "-c", PROBE, folder, str(first_seed), str(histories)]
        return subprocess.run(program, capture_output=True, text=True, check=True).stdout.strip()


PROBE = """
import logging, sys
folder, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.path.insert(0, folder)
import ottla
assert next(iter(ottla.__path__)).startswith(folder), ottla.__path__
logging.disable(logging.CRITICAL)
from sim.world import World
for number in range(count):
    try:
        World(first + number).play()
    except Exception as found:
        print(f"found by history {number + 1}: {str(found)[:90]}")
        break
else:
    print("SURVIVED")
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names")
    parser.add_argument("--histories", type=int, default=300)
    parser.add_argument("--first-seed", type=int, default=10_000)
    options = parser.parse_args()
    chosen = [each for each in MUTATIONS if not options.names or any(part in each.name for part in options.names)]
    outcomes = []
    for mutation in chosen:
        outcomes.append(survived(mutation, options.histories, options.first_seed))
        print(f"| {mutation.name} | {outcomes[-1]} |", flush=True)
    return 1 if "SURVIVED" in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
