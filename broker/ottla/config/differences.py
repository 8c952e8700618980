"""Where a broker's settings differ from those of Apache Kafka 4.1, each with the reason. Pure.

Everything else in the table has Kafka's type, default, rule, importance and update mode; a test holds it to that.
"""

__all__ = ["ADDED", "OTHER_DEFAULTS"]

OTHER_DEFAULTS = {
    "listeners": "a broker started without a file listens on this machine only",
    "node.id": "Kafka insists on one; a fleet of one needs none",
    "process.roles": "Kafka insists on it; a fleet of one does both",
    "broker.heartbeat.interval.ms": "a broker that hangs is noticed in three seconds rather than nine",
    "broker.session.timeout.ms": "a broker that hangs is noticed in three seconds rather than nine",
    "group.initial.rebalance.delay.ms": "a hundred members have their partitions after two seconds rather than six",
    "log.dir": "beside you rather than in /tmp, which loses data on a restart of the machine",
}

ADDED = {
    "cluster.id": "the fleet's id may stand in the file, so that empty directories format themselves",
    "ottla.grpc.port": "nodes talk gRPC to each other",
    "ottla.grpc.protocol": "nodes talk gRPC to each other",
    "ottla.grpc.accept": "a fleet goes from plaintext to TLS and back while it works",
    "ottla.grpc.ssl.keystore.location": "a node's certificate among nodes says its role, unlike one for clients",
    "ottla.grpc.ssl.key.location": "Kubernetes keeps key and certificate in two files",
    "ottla.grpc.ssl.truststore.location": "who may be a node is not whom clients are known by",
    "ottla.replication.port": "brokers copy from each other apart from quorum and control",
    "ottla.health.port": "Kubernetes probes over HTTP",
    "ottla.metrics.token.location": "metrics of a secured node are for those who may see them",
    "ottla.answers.max.bytes": "answers that nobody reads must not take a broker's memory",
    "ottla.request.bytes.max": "a text of many megabytes must not be decoded, copied and logged on behalf of anybody",
    "ottla.group.members.bytes.max": "a member's bytes stay as long as its session, also without a connection",
    "ottla.groups.bytes.max": "a group's offsets stay for a week, however often a client takes another id",
    "ottla.transactional.ids.bytes.max": "an id stays for a week, however often a client takes another one",
    "ottla.response.bytes.max": "a few kilobytes that name one thing a thousand times must not take a broker's memory",
    "ottla.request.elements.max": "a request of a few megabytes must not occupy a broker for seconds",
    "ottla.authentication.timeout.ms": "whoever does not get on with a login must not keep a connection",
    "ottla.security.files.check.interval.ms": "certificates are renewed without a command",
    "ottla.sasl.plain.users.file": "users change without a restart",
    "ottla.audit.log.file": "Kafka writes its authorizer's lines with log4j",
    "ottla.audit.log.file.bytes.max": "Kafka writes its authorizer's lines with log4j",
    "ottla.audit.log.files.max": "Kafka writes its authorizer's lines with log4j",
    "ottla.open.files.max": "segment files are opened when they are needed",
    "super.users": "Kafka has it too, in its authorizer",
    "allow.everyone.if.no.acl.found": "Kafka has it too, in its authorizer",
    "leader.replication.throttled.rate": "Kafka has it too, outside its table",
    "follower.replication.throttled.rate": "Kafka has it too, outside its table",
    "replica.alter.log.dirs.io.max.bytes.per.second": "Kafka has it too, outside its table",
}
