"""Java clients and tools in transactions: the flow of KIP-890, with an epoch for every transaction."""

import re

from support.dump import files_of
from support.java import java_tool
from support.librdkafka import Sent, make_topic, send
from support.process import BrokerProcess
from support.transactions import producer, read_all, transact, write

TOOLS = "org.apache.kafka.tools"
TRANSACTIONS = f"{TOOLS}.TransactionsCommand"
EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT = 0, 1, 2, 4


def copy(bootstrap: str, source: str, target: str, *flags: str) -> str:
    return java_tool(
        f"{TOOLS}.TransactionalMessageCopier",
        *("--broker-list", bootstrap, "--input-topic", source, "--input-partition", "0", "--output-topic", target),
        *("--transactional-id", f"{target}-id", "--consumer-group", f"{target}-group", "--transaction-size", "100"),
        *flags,
    ).text


def test_message_copier(bootstrap: str, name: str) -> None:
    """Reads, writes and commits offsets in transactions, some of which it aborts at random and does again."""
    make_topic(bootstrap, f"{name}-in")
    values = [f"v{i}" for i in range(1000)]
    send(bootstrap, f"{name}-in", [Sent(value.encode()) for value in values])
    for number, flags in enumerate([(), ("--group-mode", "--use-group-metadata")]):
        target = f"{name}-out{number}"
        make_topic(bootstrap, target)
        copy(bootstrap, f"{name}-in", target, "--enable-random-aborts", *flags)
        assert read_all(bootstrap, target) == values
        written = len(read_all(bootstrap, target, isolation="read_uncommitted"))
        assert written >= 1000
        assert '"remaining":0' in copy(bootstrap, f"{name}-in", target, *flags).replace(" ", "")
        assert read_all(bootstrap, target) == values, "the second copy went on where the first had ended"


def test_performance_tool_in_transactions(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=2)
    text = java_tool(
        f"{TOOLS}.ProducerPerformance",
        *("--topic", name, "--num-records", "2000", "--record-size", "100", "--throughput", "4000"),
        *("--transactional-id", f"{name}-id", "--transaction-duration-ms", "50"),
        *("--producer-props", f"bootstrap.servers={bootstrap}"),
    ).text
    assert "2000 records sent" in text
    assert len(read_all(bootstrap, name, partitions=2)) == 2000


def test_console_consumer(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    made = producer(bootstrap, name)
    transact(made, name, ["one", "two"])
    transact(made, name, ["never"], commit=False)
    transact(made, name, ["three"])
    for isolation, expected in [("read_committed", 3), ("read_uncommitted", 4)]:
        shown = java_tool(
            f"{TOOLS}.consumer.ConsoleConsumer",
            *("--bootstrap-server", bootstrap, "--topic", name, "--partition", "0", "--offset", "earliest"),
            *("--timeout-ms", "60000", "--max-messages", str(expected)),
            *("--isolation-level", isolation),
            code=None,
        ).lines
        # "never" is before "three": it would be among the first three.
        assert len(shown) == expected and ("never" in shown) == (expected == 4)


def test_transactions_tool(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=2)
    made = producer(bootstrap, name, transaction_timeout_ms=60_000)
    made.begin_transaction()
    write(made, name, ["open"] * 4, partitions=2)

    def tool(*arguments: str) -> str:
        return java_tool(TRANSACTIONS, "--bootstrap-server", bootstrap, *arguments).out

    listed = tool("list")
    assert re.search(rf"^{re.escape(name)}\s+\d+\s+\d+\s+Ongoing\s*$", listed, re.M), listed
    described = tool("describe", "--transactional-id", name)
    assert re.search(r"Ongoing\s+60000\s", described) and f"{name}-0" in described and f"{name}-1" in described
    producers = tool("describe-producers", "--topic", name, "--partition", "0")
    found = re.search(r"^(\d+)\s+(\d+)\s+(-?\d+)\s+\d+\s+\d+\s+(\d+)\s*$", producers, re.M)
    assert found and found[4] == "0", producers
    hanging = tool("find-hanging", "--broker-id", "1", "--max-transaction-timeout", "1")
    assert name not in hanging, "a transaction that its coordinator knows does not hang"
    made.abort_transaction()
    assert re.search(rf"^{re.escape(name)}\s+\d+\s+\d+\s+CompleteAbort\s*$", tool("list"), re.M)


def test_the_tool_aborts_in_one_partition(bootstrap: str, name: str) -> None:
    """What an operator does to a hanging transaction: WriteTxnMarkers for one partition, by its start offset."""
    make_topic(bootstrap, name)
    made = producer(bootstrap, name, transaction_timeout_ms=600_000)
    made.begin_transaction()
    write(made, name, ["hanging"])
    transact(producer(bootstrap, f"{name}-other"), name, ["behind"])
    assert read_all(bootstrap, name) == []
    java_tool(
        TRANSACTIONS,
        *("--bootstrap-server", bootstrap, "abort", "--topic", name, "--partition", "0", "--start-offset", "0"),
    )
    assert read_all(bootstrap, name) == ["behind"]


def test_offsets_of_the_latest_stable_record(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    made = producer(bootstrap, name)
    transact(made, name, ["a", "b"])
    made.begin_transaction()
    write(made, name, ["c"])
    shown = java_tool(f"{TOOLS}.GetOffsetShell", "--bootstrap-server", bootstrap, "--topic", name, "--time", "-1").lines
    assert shown == [f"{name}:0:4"]
    made.abort_transaction()


def test_state_log_is_kafkas(broker: BrokerProcess, name: str) -> None:
    """Last in this file: the broker is stopped."""
    bootstrap = broker.bootstrap
    make_topic(bootstrap, name)
    transact(producer(bootstrap, name), name, ["x"])
    broker.stop()
    logs = [
        path
        for index in range(50)
        for path in files_of(broker.data_dir, "__transaction_state", ".log", partition=index)
    ]
    full = [path for path in logs if path.stat().st_size]
    text = java_tool(
        "kafka.tools.DumpLogSegments",
        "--transaction-log-decoder",
        "--deep-iteration",
        "--files",
        ",".join(map(str, full)),
    ).text
    mine = [line for line in text.splitlines() if f'"transactionalId":"{name}"' in line]
    states = [int(state) for state in re.findall(r'"transactionStatus":(\d)', "\n".join(mine))]
    assert states[0] == EMPTY and {ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT} <= set(states), text[:3000]
