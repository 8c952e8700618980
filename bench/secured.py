"""With everything on: SASL_SSL with SCRAM-SHA-512 and 7,000 ACLs, on both brokers alike.

Produce, catch up and one record at a time by librdkafka, produce by Java; new TLS connections by openssl. A last broker
has the same listener and no rules, to tell what rules cost.
"""

import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from support.certificates import Authority
from support.java import java_command
from support.listeners import listen
from support.process import BrokerProcess

from bench import differences
from bench.client_process import JAVA_WARM_UP_S, ClientRun, client_program, run_client
from bench.context import Context, fresh_topic
from bench.produce_java import HEAP
from bench.produce_java import readings as java_readings
from bench.rows import SECURED_CPU_PER_GB, SECURED_RATE, SECURED_TAIL_LATENCY, Goal, Reading

USER, PASSWORD, MECHANISM = "bench", "bench-secret", "SCRAM-SHA-512"
LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
LISTENERS = {"PLAINTEXT": "PLAINTEXT", "SAFE": "SASL_SSL", "TLS": "SSL"}
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ACLS, ACLS_AT_ONCE, TOPICS = 7_000, 500, 504
OPERATIONS = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
GB = 1e9
RECORD_BYTES, RECORDS, WARM_UP_RECORDS, CATCH_UP_RECORDS, JAVA_RECORDS = 1000, 1_000_000, 500_000, 1_000_000, 1_000_000
LATENCY_RECORDS = 10_000
HANDSHAKE_SECONDS = 6
GOALS = {"p99": SECURED_TAIL_LATENCY}  # only the tail has one
OPEN_LOOP_RATE, OPEN_LOOP_S = 30_000, 10
DEADLINE_S = 60.0


@dataclass(frozen=True)
class Secured:
    broker: BrokerProcess
    ports: Mapping[str, int]
    ca: Path

    @property
    def bootstrap(self) -> str:
        return f"{self.broker.host}:{self.ports['SAFE']}"

    @property
    def client(self) -> dict[str, str]:
        login = {"sasl.mechanism": MECHANISM, "sasl.username": USER, "sasl.password": PASSWORD}
        return {"security.protocol": "SASL_SSL", "ssl.ca.location": str(self.ca), **login}

    def properties(self) -> Path:
        """A file for Java's tools."""
        lines = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": f'{LOGIN_MODULE} required username="{USER}" password="{PASSWORD}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
        }
        path = self.ca.with_name("client.properties")
        path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        return path


def run(context: Context) -> Iterator[Reading]:
    with secured(context, rules=True) as it:
        warm_up(context, it)
        done = produce(it, "measured", context.scaled(RECORDS))
        yield from throughput("secured: produce librdkafka", done, SECURED_RATE)
        yield from java(context, it)
        yield from catch_up(context, it)
        yield from latency(context, it)
        yield from handshakes(context, it)
    with secured(context, rules=False) as it:
        warm_up(context, it)
        done = produce(it, "measured", context.scaled(RECORDS))
        yield from throughput("secured without rules: produce librdkafka", done, None)


@contextmanager
def secured(context: Context, *, rules: bool) -> Iterator[Secured]:
    """Administration goes over a plaintext listener, whose anonymous clients are super users."""
    with tempfile.TemporaryDirectory(prefix="bench-ca-") as folder, context.stopped_broker() as broker:
        Authority.in_folder(Path(folder))
        ports = listen(broker, LISTENERS)
        broker.settings |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": f"{folder}/broker.pem",
            "sasl.enabled.mechanisms": MECHANISM,
            "listener.name.safe.scram-sha-512.sasl.jaas.config": f"{LOGIN_MODULE} required;",
        }
        if rules:
            broker.settings |= {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        add_user(admin)
        if rules:
            add_rules(admin)
        yield Secured(broker, ports, Path(folder) / "ca.pem")


def add_user(admin: AdminClient) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    asked = admin.alter_user_scram_credentials([UserScramCredentialUpsertion(USER, info, PASSWORD.encode())])
    for future in asked.values():
        future.result(DEADLINE_S)


def add_rules(admin: AdminClient) -> None:
    """All but two are of other users, as in KAFKA-20667; those two allow ours every topic and group."""
    random = Random(1)
    others = {
        (f"u{random.randrange(1_000)}", f"topic-{random.randrange(TOPICS):03}", random.choice(OPERATIONS))
        for _ in range(ACLS)
    }
    mine = [allowed(USER, "*", AclOperation.ALL, kind) for kind in (ResourceType.TOPIC, ResourceType.GROUP)]
    bindings = mine + [allowed(*other) for other in sorted(others, key=str)]
    for at in range(0, len(bindings), ACLS_AT_ONCE):
        for future in admin.create_acls(bindings[at : at + ACLS_AT_ONCE]).values():
            future.result(DEADLINE_S)


def allowed(user: str, name: str, operation: AclOperation, kind: ResourceType = ResourceType.TOPIC) -> AclBinding:
    pattern, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    return AclBinding(kind, name, pattern, f"User:{user}", "*", operation, allow)


def warm_up(context: Context, it: Secured) -> None:
    produce(it, "warm-up", context.scaled(WARM_UP_RECORDS))


def produce(it: Secured, topic: str, count: int) -> ClientRun:
    fresh_topic(it.broker, topic)
    arguments = (it.bootstrap, topic, 1, RECORD_BYTES, count, "none")
    return run_client(it.broker, client_program("producer", *arguments, settings=it.client))


def throughput(name: str, done: ClientRun, goal: Goal | None) -> Iterator[Reading]:
    figures, differs = done.json(), differences.VALIDATION
    rate = figures["bytes"] / figures["seconds"] / 1e6
    yield Reading(name, "MB/s", rate, goal, done.limited_by, differs)
    cpu_goal = SECURED_CPU_PER_GB if goal else None
    yield Reading(f"broker CPU, {name}", "CPU s/GB", done.broker_cpu_s / (figures["bytes"] / GB), cpu_goal)


def java(context: Context, it: Secured) -> Iterator[Reading]:
    count, tool = context.scaled(JAVA_RECORDS), "org.apache.kafka.tools.ProducerPerformance"
    size = ["--num-records", str(count), "--record-size", str(RECORD_BYTES), "--throughput", "-1"]
    login = ["--producer.config", str(it.properties())]
    more = ["--producer-props", f"bootstrap.servers={it.bootstrap}", "acks=all", "batch.size=262144", "linger.ms=5"]
    topic = fresh_topic(it.broker, "java")
    command = java_command(tool, "--topic", topic, *size, *login, *more, options=HEAP)
    done = run_client(it.broker, command, warm_up_s=JAVA_WARM_UP_S)
    yield from java_readings("secured: produce Java 256 KiB batches", done, count, SECURED_RATE, SECURED_CPU_PER_GB)


def catch_up(context: Context, it: Secured) -> Iterator[Reading]:
    count = context.scaled(CATCH_UP_RECORDS)
    produce(it, "preloaded", count)
    command = client_program("consumer", it.bootstrap, "preloaded", count, settings=it.client)
    run_client(it.broker, command)  # for the JVM to compile the path
    for _ in range(2):
        yield from throughput("secured: consume librdkafka", run_client(it.broker, command), SECURED_RATE)


def latency(context: Context, it: Secured) -> Iterator[Reading]:
    for topic in ("one-warm-up", "one"):
        fresh_topic(it.broker, topic)
        arguments = (it.bootstrap, topic, context.scaled(LATENCY_RECORDS))
        done = run_client(it.broker, client_program("latency", *arguments, settings=it.client))
    yield from percentiles("secured: latency one at a time", done)
    seconds = 3 if context.quick else OPEN_LOOP_S
    arguments = (it.bootstrap, fresh_topic(it.broker, "open"), OPEN_LOOP_RATE, seconds)
    done = run_client(it.broker, client_program("open_loop", *arguments, settings=it.client))
    yield from percentiles(f"secured: latency at {OPEN_LOOP_RATE:,} records/s", done)


def percentiles(name: str, done: ClientRun) -> Iterator[Reading]:
    for percentile, milliseconds in done.json().items():
        yield Reading(f"{name} {percentile}", "ms", milliseconds, GOALS.get(percentile))


def handshakes(context: Context, it: Secured) -> Iterator[Reading]:
    """One after the other, none resumed; all of a handshake in CPU, of the broker."""
    for seconds in (2, 2 if context.quick else HANDSHAKE_SECONDS):  # the first for the JVM
        cpu_before, began = it.broker.cpu_seconds(), time.monotonic()
        made = connect(it, seconds)
        passed, used = time.monotonic() - began, it.broker.cpu_seconds() - cpu_before
    yield Reading("1,000 new TLS connections", "s", passed / made * 1000, None)
    yield Reading("broker CPU, 1,000 new TLS connections", "CPU s", used / made * 1000, SECURED_CPU_PER_GB)


def connect(it: Secured, seconds: int) -> int:
    where = f"{it.broker.host}:{it.ports['TLS']}"
    command = ["openssl", "s_time", "-connect", where, "-new", "-time", str(seconds), "-CAfile", str(it.ca)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    found = re.search(r"^(\d+) connections in [\d.]+ real seconds|^(\d+) connections in", done.stdout, re.M)
    assert found, f"openssl s_time: {done.stdout[-500:]}{done.stderr[-500:]}"
    return int(found[1] or found[2])
