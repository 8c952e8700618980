"""Consumer groups on one broker: a thousand groups that commit ten times a second, and a hundred members that join.

Each broker runs with its own defaults: group.initial.rebalance.delay.ms is 3 s in Kafka (its distribution's sample file
has 0; the tests use that) and 1 s in Ottla; heartbeats of KIP-848 come every 5 s.
"""

from collections.abc import Iterator

from support.process import BrokerProcess

from bench.client_process import client_program, run_client
from bench.context import Context, fresh_topic
from bench.rows import COMMITS_HELD, JOIN_TIME, Reading

GROUPS, COMMITS_PER_S_EACH = 1000, 10
COMMIT_WARM_UP_S, COMMIT_S = 5, 15
MEMBERS, PARTITIONS = 100, 200
PROTOCOLS = {"classic": "classic", "consumer": "KIP-848"}
WARM_UP_MEMBERS = 2
NAME = f"{GROUPS} groups × {COMMITS_PER_S_EACH} commits/s"
# Kafka's own default: what the peers' handle sets for a broker alone is taken back.
SETTINGS: dict[str, dict[str, str]] = {"kafka": {"group.initial.rebalance.delay.ms": "3000"}, "ottla": {}}


def run(context: Context) -> Iterator[Reading]:
    with context.broker(SETTINGS[context.peer]) as broker:
        yield from joins(context, broker)
    with context.broker(SETTINGS[context.peer]) as broker:
        yield from commits(context, broker)


def joins(context: Context, broker: BrokerProcess) -> Iterator[Reading]:
    topic = fresh_topic(broker, "joined", PARTITIONS)
    members = MEMBERS // 5 if context.quick else MEMBERS
    for protocol, label in PROTOCOLS.items():
        where = (broker.bootstrap, topic, PARTITIONS)
        run_client(broker, client_program("joining", *where, WARM_UP_MEMBERS, protocol, f"warm-up-{protocol}"))
        done = run_client(broker, client_program("joining", *where, members, protocol, f"measured-{protocol}"))
        yield Reading(f"{members} members join and have their share, {label}", "s", done.json()["seconds"], JOIN_TIME)


def commits(context: Context, broker: BrokerProcess) -> Iterator[Reading]:
    """A thousand groups even in a quick run: that is what the goal speaks of."""
    topic = fresh_topic(broker, "committed")
    warm_up_s, seconds = (1, 3) if context.quick else (COMMIT_WARM_UP_S, COMMIT_S)
    load = (GROUPS, COMMITS_PER_S_EACH, warm_up_s, seconds)
    done = run_client(broker, client_program("commits", broker.bootstrap, topic, *load))
    figures = done.json()
    yield Reading(NAME, "commits/s", figures["per_second"], COMMITS_HELD, done.limited_by)
    yield Reading(f"{NAME}, p99", "ms", figures["p99"])
    yield Reading(f"broker CPU, {NAME}", "CPU s/million", done.broker_cpu_s / figures["commits"] * 1e6)
