"""Do the tests find what they are there for? Single-line sabotages of the broker, and what finds each.

    python -m sim.mutations [--histories 300] [NAME …]        the table; exit code 1 when one survives everything

First simulated histories, then, for what takes a rarer chain of faults than they meet, the unit tests of the sabotaged
folder. Every sabotage is made in a copy of the package; the tree itself is not touched.
"""

import argparse
import os
import re
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
    world: str = "sim.world.World"


GROUPS, TRANSACTIONS = "sim.group_world.GroupWorld", "sim.txn_world.TransactionWorld"
SECURITY = "sim.security_world.SecurityWorld"
SHARE_STATES, SHARES = "sim.share_state_world.ShareStateWorld", "sim.share_world.ShareWorld"
MUTATIONS = (
    Mutation(
        "acks=all before the in-sync set has it",
        "replica/core/isr.py",
        "            lowest = min(lowest, other.end)\n",
        "            pass\n",
    ),
    Mutation(
        "metadata entries are not synced",
        "raft/store.py",
        '        self.file.append([b"".join(encoded)])\n        self.file.sync()\n',
        '        self.file.append([b"".join(encoded)])\n',
    ),
    Mutation(
        "votes are not written",
        "raft/store.py",
        "        if hard_state is not None:\n            self._disk.replace_file",
        "        if False:\n            self._disk.replace_file",
    ),
    Mutation(
        "a node votes twice in a term",
        "raft/core/elections.py",
        "        free = self.vote == message.source or (self.vote is None and self.leader is None)\n",
        "        free = True\n",
    ),
    Mutation(
        "entries of older terms are committed by counting",
        "raft/core/leading.py",
        "        if index <= self._log.commit or self._log.term_at(index) != self._term:\n",
        "        if index <= self._log.commit:\n",
    ),
    Mutation(
        "no cut where logs part", "storage/log/truncation.py", "    if offset >= shape.end_offset:\n", "    if True:\n"
    ),
    Mutation(
        "leaders do not look where logs part",
        "replica/leader_stream.py",
        "    if epoch < follow.last_epoch or end < follow.end:\n",
        "    if False:\n",
    ),
    Mutation(
        "the in-sync set shrinks without the controller",
        "replica/core/isr.py",
        "        self.pending = isr\n        self._recount(now)\n",
        "        self.isr = self.pending = isr\n        self._recount(now)\n",
    ),
    Mutation(
        "the watermark moves below min.insync.replicas",
        "replica/core/isr.py",
        "        if lowest <= self.high_watermark or not self.enough_in_sync:\n",
        "        if lowest <= self.high_watermark:\n",
    ),
    Mutation(
        "writes are taken below min.insync.replicas, and committed",
        "replica/core/isr.py",
        "        return len(self.isr) >= self.isr_size_min or len(self.isr) > len(self._followers)\n",
        "        return True\n",
    ),
    Mutation(
        "after an unclean stop a replica stays eligible",
        "metadata/decisions/brokers.py",
        "        unclean = command.previous_epoch != existing.epoch\n",
        "        unclean = False\n",
    ),
    Mutation(
        "eligible replicas are forgotten",
        "metadata/decisions/elections.py",
        "    for pool in (target.isr, target.elr):\n",
        "    for pool in (target.isr,):\n",
    ),
    Mutation(
        "a follower of an older epoch is served",
        "replica/leader_stream.py",
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
        "metadata/decisions/partitions.py",
        "    return image.is_active(broker_id) and epoch in (-1, image.brokers[broker_id].epoch)\n",
        "    return True\n",
    ),
    Mutation(
        "a follower joins before it has what is committed",
        "replica/core/isr.py",
        "fits = fits and follower.end >= committed_end and self._is_eligible(follower)\n",
        "fits = self._is_eligible(follower)\n",
    ),
    Mutation(
        "a hole between segments is overlooked",
        "storage/log/recovery.py",
        "            if segment.next_offset < next_base and not may_gap:\n",
        "            if False:\n",
    ),
    Mutation(
        "producers are not rolled back with the log",
        "storage/log/log.py",
        "        self.producers.take_over(planned.producers)\n",
        "        pass\n",
    ),
    Mutation(
        "a torn tail is kept",
        "storage/log/recovery.py",
        "segment.rebuild(interval=interval, verify=True, below=next_base, seen=self._note_epoch):\n",
        "segment.rebuild(interval=interval, verify=False, below=next_base, seen=self._note_epoch):\n",
    ),
    Mutation(
        "the mark of a clean stop survives a crash",
        "storage/directories/directory.py",
        '            disk.remove(f"{path}/{CLEAN_SHUTDOWN}")\n',
        "            pass\n",
    ),
    Mutation(
        "logs of a deleted topic are taken for the new one's",
        "storage/directories/directories.py",
        "                elif self.topic_ids.get(key) != expected.get(key) or key not in expected:\n",
        "                elif key not in expected:\n",
    ),
    Mutation(
        "nobody is told of a failed log dir",
        "replica/host.py",
        "        if self._lost is not None:\n            self._lost.check()\n",
        "        pass\n",
    ),
    Mutation(
        "a partition is given to a member before another has let go of it",
        "group/consumer/member.py",
        "    free = frozenset(each for each in wanted if each not in taken)\n",
        "    free = frozenset(wanted)\n",
        GROUPS,
    ),
    Mutation(
        "a transaction is complete before all its markers are written",
        "txn/marker_sender.py",
        "                left -= {one for one, code in zip(order.partitions, codes, strict=True) if code in DONE}\n",
        "                left -= set(order.partitions)\n",
        TRANSACTIONS,
    ),
    Mutation(
        "only the first partition of an order gets its marker",
        "txn/marker_writer.py",
        "        begun = [self._begin(order, one) for one in order.partitions]\n",
        "        begun = [Code.none if at else self._begin(order, one) for at, one in enumerate(order.partitions)]\n",
        TRANSACTIONS,
    ),
    Mutation(
        "markers are confirmed before they are committed",
        "txn/marker_writer.py",
        "            return partition.committed(offset) or Code.none\n",
        "            return Code.none\n",
        TRANSACTIONS,
    ),
    Mutation(
        "markers are sent before the decision is committed",
        "txn/shard.py",
        "            await self._runner.until_committed(self._written[transaction.id], timeout_s=None)\n",
        "            pass\n",
        TRANSACTIONS,
    ),
    Mutation(
        "the decision is told before it is committed",
        "txn/shard.py",
        "            await self.until_id_committed(transactional_id)\n            patience_s",
        "            patience_s",
        TRANSACTIONS,
    ),
    Mutation(
        "a new coordinator forgets what was decided",
        "txn/shard.py",
        "                self._runner.perform(transaction.id, [Send(transaction)])\n",
        "                pass\n",
        TRANSACTIONS,
    ),
    Mutation(
        "a new producer gets the epoch of the one before",
        "txn/core/deciding.py",
        "    epoch, last_epoch = transaction.epoch + 1, NONE\n",
        "    epoch, last_epoch = transaction.epoch, NONE\n",
        TRANSACTIONS,
    ),
    Mutation(
        "a partition's leader does not ask the coordinator",
        "api/batch_verification.py",
        "            await self._ask_coordinator(partition, batch, request, version=version)\n",
        "            pass\n",
        TRANSACTIONS,
    ),
    Mutation(
        "late transactions are not aborted",
        "txn/shard.py",
        "        return [one for one in self.transactions.values() if one.is_timed_out(now_ms)]\n",
        "        return []\n",
        TRANSACTIONS,
    ),
    Mutation(
        "aborted offsets come into force",
        "group/shard.py",
        "        if not commit:\n            self.offsets.abort(producer_id)\n",
        "        if False:\n            self.offsets.abort(producer_id)\n",
        TRANSACTIONS,
    ),
    Mutation(
        "what was decided while offsets were loaded is forgotten",
        "group/shard.py",
        "            self._decided_meanwhile.append((producer_id, commit, offset))\n",
        "            pass\n",
        TRANSACTIONS,
    ),
    Mutation(
        "open transactions are forgotten with a snapshot",
        "storage/core/producers.py",
        "        self._open = {first: producer_id for first, producer_id in sorted(started) if first >= 0}\n",
        "        self._open = {}\n",
        TRANSACTIONS,
    ),
    Mutation(
        "a batch gets in behind the marker of its transaction",
        "storage/core/verification.py",
        "        if ticket is not None and not (batch.is_control and _is_of_an_earlier_one(batch, ticket)):\n",
        "        if ticket is not None and not batch.is_control:\n",
        TRANSACTIONS,
    ),
    Mutation(
        "late markers are taken",
        "storage/core/producers.py",
        "        if producer is not None and producer.transaction_start >= 0 and producer.epoch >= marker.epoch:\n",
        "        if False:\n",
        TRANSACTIONS,
    ),
    Mutation(
        "markers of a replaced coordinator are taken",
        "storage/core/producers.py",
        "        if producer is not None and producer.coordinator_epoch > marker.coordinator_epoch:\n",
        "        if False:\n",
        TRANSACTIONS,
    ),
    Mutation(
        "a share-partition's state is told before it is committed",
        "share/shard.py",
        "        await self.until_committed(self._written.get(key, NOTHING))\n",
        "        pass\n",
        SHARE_STATES,
    ),
    Mutation(
        "snapshots that are still needed are pruned",
        "share/shard.py",
        "        return min(self._snapshots.values(), default=self.partition.log.end_offset)\n",
        "        return max(self._snapshots.values(), default=self.partition.log.end_offset)\n",
        SHARE_STATES,
    ),
    Mutation(
        "a new leader of a share-partition fences nobody",
        "share/core/state.py",
        "        if leader_epoch < self.leader_epoch:\n",
        "        if False:\n",
        SHARE_STATES,
    ),
    Mutation(
        "updates of a state that was replaced are taken",
        "share/core/state.py",
        "        if state_epoch != self.state_epoch:\n",
        "        if False:\n",
        SHARE_STATES,
    ),
    Mutation(
        "a late update takes acknowledgements back",
        "share/core/state.py",
        "        yield _part(max(each, one, key=_finality), first, last)\n",
        "        yield _part(one, first, last)\n",
        SHARE_STATES,
    ),
    Mutation(
        "a share-partition that is begun twice begins anew",
        "share/core/state.py",
        "    if state_epoch == before.state_epoch:\n        return None\n",
        "",
        SHARE_STATES,
    ),
    Mutation(
        "batches may hold fewer records than they claim",
        "wire/framing.py",
        "        if self.index != self.count:\n",
        "        if False:\n",
    ),
    Mutation(
        "a batch overtakes one of its client that is still being opened",
        "replica/serial_queue.py",
        "            if before is not None and not before.done():\n",
        "            if False:\n",
    ),
    Mutation(
        "consumers are given what is not committed",
        "api/fetch_plan.py",
        "        end = partition.last_stable_offset if self._read_committed else partition.high_watermark\n",
        "        end = partition.log.end_offset\n",
    ),
    Mutation(
        "compaction removes the latest record of a key",
        "storage/core/batch_filter.py",
        "                and not superseded(records[key_start : key_start + key_length], offset)\n",
        "                and superseded(records[key_start : key_start + key_length], offset)\n",
    ),
    Mutation(
        "a cut into a gap that compaction left does not set the end",
        "storage/log/segment.py",
        "        base, position = self.position_of(offset) or (offset, self.size)\n"
        "        next_offset = min(offset, base)\n",
        "        base, position = self.position_of(offset) or (self.next_offset, self.size)\n"
        "        next_offset = base\n",
    ),
    Mutation(
        "followers do not hear of deleted records",
        "replica/copying.py",
        "    partition.begin_at(min(start, partition.high_watermark))\n",
        "",
    ),
    Mutation(
        "what must be flushed counts on followers before it is",
        "replica/stored.py",
        "        return self.log.end_offset if self._flush_task is None else self.log.flushed_offset\n",
        "        return self.log.end_offset\n",
    ),
    Mutation(
        "what must be flushed counts on the leader before it is",
        "replica/partition.py",
        "        if appended.must_flush:\n",
        "        if False:\n",
    ),
    Mutation(
        "a compacted segment is read where the old one was",
        "storage/log/replace.py",
        "    new.adopt(next_offset=old[-1].next_offset)\n",
        "    new.adopt(next_offset=old[0].next_offset)\n",
    ),
    Mutation(
        "acknowledgements of shared records are confirmed without being written",
        "share/hosted.py",
        "                failure = await self._write(changes)\n",
        "                failure = None\n",
        SHARES,
    ),
    Mutation(
        "what is there already is told before it is committed",
        "metadata/runtime/active.py",
        "            await self._commit(self._proposed)\n",
        "            pass\n",
        SECURITY,
    ),
    Mutation(
        "decisions are kept when rules change",
        "security/core/acls.py",
        "        self.version += 1\n",
        "        pass\n",
        SECURITY,
    ),
    Mutation(
        "rules that a snapshot does not have stay in force",
        "metadata/model/changes.py",
        "        acls_removed={key: old.acls[key] for key in old.acls.keys() - new.acls.keys()},\n",
        "",
        SECURITY,
    ),
    Mutation(
        "snapshots forget delegation tokens",
        "metadata/model/snapshot.py",
        "    for token in image.delegation_tokens.values():\n",
        "    for token in ():\n",
        SECURITY,
    ),
)


def outcome(mutation: Mutation, histories: int, first_seed: int) -> str:
    """What found it, or that nothing did."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "ottla"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        target = copy / mutation.file
        text = target.read_text()
        assert text.count(mutation.line) == 1, f"{mutation.name}: {text.count(mutation.line)} times in {mutation.file}"
        target.write_text(text.replace(mutation.line, mutation.sabotaged))
        program = [sys.executable, "-c", PROBE, folder, str(first_seed), str(histories), mutation.world]
        found = subprocess.run(program, capture_output=True, text=True, check=True).stdout.strip()
        return found or by_unit_tests(mutation, folder) or SURVIVED


def by_unit_tests(mutation: Mutation, folder: str) -> str | None:
    tests = Path(__file__).parents[1] / "unit" / Path(mutation.file).parts[0]
    program = [sys.executable, "-m", "pytest", str(tests), "-x", "-q", "--tb=no", "-n", "2"]
    done = subprocess.run(program, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": folder})
    failed = re.search(r"^FAILED \S*?(\w+\.py::\S+)", done.stdout, re.MULTILINE)
    return f"found by {failed[1]}" if failed else None


SURVIVED = "SURVIVED"
PROBE = """
import importlib, logging, sys
folder, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.path.insert(0, folder)
import ottla
assert next(iter(ottla.__path__)).startswith(folder), ottla.__path__
logging.disable(logging.CRITICAL)
module, _, name = sys.argv[4].rpartition(".")
World = getattr(importlib.import_module(module), name)
for number in range(count):
    try:
        World(first + number).play()
    except Exception as found:
        print(f"found by history {number + 1}: {str(found)[:90]}")
        break
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
        outcomes.append(outcome(mutation, options.histories, options.first_seed))
        print(f"| {mutation.name} | {outcomes[-1]} |", flush=True)
    return 1 if SURVIVED in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
