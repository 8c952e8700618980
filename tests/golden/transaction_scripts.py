"""Scripts (`golden.scripts`) of the transaction automaton: they print what it answers, logs and tells partitions.

ID is a transactional id, P/E a producer's id and epoch. Fresh producer ids are 1000, 1001, …

    > version 2                    the fleet's finalized transaction.version
    > at 5000                      the clock stands at 5000 ms
    > init ID 60000 [P/E]          InitProducerId with a timeout, perhaps going on as P/E
    > add ID P/E t-0 g-3           AddPartitionsToTxn, AddOffsetsToTxn, or a leader on behalf of a producer
    > verify ID P/E t-0            a leader asks whether the partition is in the transaction
    > commit ID P/E [v5]           EndTxn, in the old flow or with version 5
    > abort ID P/E [v5]
    > marked ID                    every partition has its marker
    > late                         transactions whose time is up are aborted
    > expire 1000                  ids that were not used for so long are forgotten
    > crash                        another coordinator reads the log
    > epoch ID 32766               as if so many epochs had been used
"""

from collections.abc import Callable
from dataclasses import replace

from ottla.errors import Code
from ottla.txn.core import deciding, records
from ottla.txn.core.deciding import NEEDS_PRODUCER_ID, Decision, ProducerSession
from ottla.txn.core.states import ENDING, State
from ottla.txn.core.transaction import NONE, TopicPartition, Transaction

OLD_FLOW, NEXT_EPOCHS = 0, 2


class Script:
    def __init__(self) -> None:
        self.now_ms = 0
        self.version = NEXT_EPOCHS
        self.lines: list[str] = []
        self.log: list[tuple[bytes, bytes | None]] = []
        self.transactions: dict[str, Transaction] = {}
        self.next_id = 1000

    def run(self, line: str) -> list[str]:
        self.lines = []
        name, *arguments = line.split()
        command: Callable[..., None] = getattr(self, f"do_{name}")
        command(*arguments)
        return self.lines

    # what the shell does

    def decide(self, transactional_id: str, ask: Callable[[Transaction | None, int], Decision]) -> None:
        decision = ask(self.transactions.get(transactional_id), NONE)
        if decision is NEEDS_PRODUCER_ID:
            decision = ask(self.transactions.get(transactional_id), self.next_id)
            self.next_id += 1
        if decision.write is not None:
            self.write(decision.write)
        told = f" {decision.producer_id}/{decision.epoch}" if decision.producer_id != NONE else ""
        self.lines.append(f"answer {decision.code.name}{told}")

    def write(self, transaction: Transaction) -> None:
        self.log.append((records.key_of(transaction.id), records.value_of(transaction)))
        self.transactions[transaction.id] = transaction
        self.lines.append(f"log {described(transaction)}")
        self.tell(transaction)

    def tell(self, transaction: Transaction) -> None:
        if transaction.state in ENDING:
            kind = "COMMIT" if transaction.state is State.PREPARE_COMMIT else "ABORT"
            where = " ".join(f"{topic}-{index}" for topic, index in sorted(transaction.partitions)) or "nobody"
            self.lines.append(f"marker {kind} {transaction.producer_id}/{transaction.epoch} to {where}")

    # commands

    def do_version(self, version: str) -> None:
        self.version = int(version)

    def do_at(self, now_ms: str) -> None:
        self.now_ms = int(now_ms)

    def do_init(self, transactional_id: str, timeout_ms: str, expected: str | None = None) -> None:
        self.decide(
            transactional_id,
            lambda one, fresh: deciding.initiate(
                one,
                transactional_id=transactional_id,
                timeout_ms=int(timeout_ms),
                expected=session(expected) if expected else None,
                new_producer_id=fresh,
                version=self.version,
                now_ms=self.now_ms,
            ),
        )

    def do_add(self, transactional_id: str, who: str, *partitions: str) -> None:
        places = [place(one) for one in partitions]
        self.decide(transactional_id, lambda one, _: deciding.add(one, session(who), places, now_ms=self.now_ms))

    def do_verify(self, transactional_id: str, who: str, *partitions: str) -> None:
        places = [place(one) for one in partitions]
        code, codes = deciding.verify(self.transactions.get(transactional_id), session(who), places)
        shown = " ".join(f"{topic}-{index} {codes[topic, index].name}" for topic, index in places if codes)
        self.lines.append(f"answer {code.name if code is not Code.none else shown}")

    def do_commit(self, transactional_id: str, who: str, flow: str = "") -> None:
        self.end(transactional_id, who, flow, commit=True)

    def do_abort(self, transactional_id: str, who: str, flow: str = "") -> None:
        self.end(transactional_id, who, flow, commit=False)

    def end(self, transactional_id: str, who: str, flow: str, *, commit: bool) -> None:
        self.decide(
            transactional_id,
            lambda one, fresh: deciding.end(
                one,
                session(who),
                commit=commit,
                version=NEXT_EPOCHS if flow == "v5" else OLD_FLOW,
                new_producer_id=fresh,
                now_ms=self.now_ms,
            ),
        )

    def do_marked(self, transactional_id: str) -> None:
        self.write(self.transactions[transactional_id].marked(now_ms=self.now_ms))

    def do_late(self) -> None:
        for late in [one for one in self.transactions.values() if one.is_timed_out(self.now_ms)]:
            self.decide(late.id, self.fence)

    def fence(self, transaction: Transaction | None, fresh: int) -> Decision:
        assert transaction is not None
        return deciding.fence(transaction, version=self.version, new_producer_id=fresh, now_ms=self.now_ms)

    def do_expire(self, expiration_ms: str) -> None:
        for one in [one for one in self.transactions.values() if one.is_expired(self.now_ms, int(expiration_ms))]:
            self.log.append((records.key_of(one.id), None))
            del self.transactions[one.id]
            self.lines.append(f"log {one.id} forgotten")

    def do_crash(self) -> None:
        self.transactions = {}
        for key, value in self.log:
            transactional_id = records.read_key(memoryview(key))
            if value is None:
                self.transactions.pop(transactional_id, None)
            else:
                self.transactions[transactional_id] = records.read_value(transactional_id, memoryview(value))
        for one in self.transactions.values():
            self.lines.append(f"loaded {described(one)}")
            self.tell(one)

    def do_epoch(self, transactional_id: str, epoch: str) -> None:
        self.write(replace(self.transactions[transactional_id], epoch=int(epoch)))


def session(text: str) -> ProducerSession:
    producer_id, _, epoch = text.partition("/")
    return ProducerSession(int(producer_id), int(epoch))


def place(text: str) -> TopicPartition:
    topic, _, index = text.rpartition("-")
    return topic, int(index)


def described(one: Transaction) -> str:
    parts = [f"{one.id} {one.state.label} {one.producer_id}/{one.epoch}"]
    if one.next_producer_id != NONE:
        parts.append(f"next {one.next_producer_id}")
    if one.partitions:
        parts.append("in " + " ".join(f"{topic}-{index}" for topic, index in sorted(one.partitions)))
    if one.started_ms != NONE:
        parts.append(f"since {one.started_ms}")
    return " ".join(parts)
