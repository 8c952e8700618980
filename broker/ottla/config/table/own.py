"""Ottla's own settings, which Kafka does not have."""

# fmt: off
from ottla.config.rules import ClusterId
from ottla.config.table.words import (
    HIGH,
    INT,
    LIST,
    LOW,
    MEDIUM,
    MIB,
    STRING,
    Setting,
    at_least,
    between,
    broker,
    one_of,
    some_of,
)

SETTINGS: tuple[Setting, ...] = (
    broker("cluster.id", STRING, None, HIGH, valid=ClusterId(),
           doc="Id of the fleet. With it an empty data directory formats itself; without it only that "
               "of a sole voter does. A directory of another fleet is refused."),
    broker("ottla.grpc.port", INT, 9094, HIGH, valid=between(0, 65_535),
           doc="Port for quorum and control, which nodes, operators and tools talk to. 0 takes a free one. A voter"
               " without an entry takes that of controller.quorum.voters; a broker that is the only voter opens none."),
    broker("ottla.replication.port", INT, 0, HIGH, valid=between(0, 65_535),
           doc="Port at which other brokers copy from this one and ask its coordinators. 0 takes a free one; the others"
               " learn it from the broker's registration. Set it where a firewall stands between brokers."),
    broker("ottla.grpc.protocol", STRING, "PLAINTEXT", HIGH, valid=one_of("PLAINTEXT", "TLS"),
           doc="What this node speaks to other nodes, on the ports of gRPC: quorum, control and replication. TLS asks"
               " both sides for a certificate, in which its role stands (`ottla pki`)."),
    broker("ottla.grpc.accept", LIST, (), HIGH, valid=some_of("PLAINTEXT", "TLS"),
           doc="What others may speak to this node there; without an entry what ottla.grpc.protocol says. With both, a"
               " running fleet is rolled from one to the other: first this, then the protocol, then this again."),
    broker("ottla.grpc.ssl.keystore.location", STRING, None, HIGH,
           doc="PEM file with the node's certificates, its own first, and its key. Read again when it changes."),
    broker("ottla.grpc.ssl.key.location", STRING, None, MEDIUM,
           doc="PEM file with the node's key, where it is not in ottla.grpc.ssl.keystore.location."),
    broker("ottla.grpc.ssl.truststore.location", STRING, None, HIGH,
           doc="PEM file with the certificates of the CAs that issue to nodes, operators and people of this fleet, and"
               " to nobody else. Read again when it changes."),
    broker("ottla.health.port", INT, None, MEDIUM, valid=between(0, 65_535),
           doc="Port for HTTP on every address: /livez while the process works, /readyz when clients are served,"
               " /metrics for Prometheus. 0 takes a free one. Without an entry there is none."),
    broker("ottla.metrics.token.location", STRING, None, MEDIUM,
           doc="File with a bearer token that /metrics asks for; read at each question. Without an entry everybody sees"
               " them, but of a node that is secured only its own machine."),
    broker("ottla.answers.max.bytes", INT, 24 * MIB, MEDIUM, valid=at_least(MIB),
           doc="Memory for answers that clients have not taken yet, on all connections. When there is more, clients"
               " that take nothing for a second lose their connection; beyond twice as much, at once."),
    broker("ottla.response.bytes.max", INT, 32 * MIB, MEDIUM, valid=at_least(MIB),
           doc="Size of an answer that lists or describes things. A request for more is refused with INVALID_REQUEST:"
               " ask for fewer at once. Records are not meant: see fetch.max.bytes."),
    broker("ottla.request.elements.max", INT, 50_000, MEDIUM, valid=at_least(2_000), unit="elements",
           doc="Topics, partitions, names and the like in one request. One with more is refused with INVALID_REQUEST,"
               " or by closing its connection where the answer has no place to say so."),
    broker("ottla.request.bytes.max", INT, 2 * MIB, MEDIUM, valid=at_least(64 * 1024),
           doc="Bytes of one request: a connection that begins a larger one is closed. Produce may have"
               " socket.request.max.bytes, requests that list much and members' own at least 8 or 16 MiB."),
    broker("ottla.group.members.bytes.max", INT, 64 * MIB, MEDIUM, valid=at_least(MIB),
           doc="Memory for what members of groups keep at this broker: subscriptions, metadata of protocols and"
               " assignments. Beyond it they are answered with COORDINATOR_NOT_AVAILABLE."),
    broker("ottla.groups.bytes.max", INT, 256 * MIB, MEDIUM, valid=at_least(MIB),
           doc="Memory for the groups that this broker coordinates and their offsets (220 bytes each), until they"
               " expire. Beyond it, what is new is answered with COORDINATOR_NOT_AVAILABLE."),
    broker("ottla.transactional.ids.bytes.max", INT, 64 * MIB, MEDIUM, valid=at_least(MIB),
           doc="Memory for the transactional ids that this broker coordinates, from their first use until they expire."
               " Beyond it, producers with a new one are answered with COORDINATOR_NOT_AVAILABLE."),
    broker("ottla.authentication.timeout.ms", INT, 30_000, MEDIUM, valid=at_least(100),
           doc="How long a client may take for the handshake of TLS, and how long for its login by SASL. Then its"
               " connection is closed."),
    broker("ottla.security.files.check.interval.ms", INT, 2_000, LOW, valid=at_least(100),
           doc="How often key stores, trust stores and files of users are looked at: what has changed is loaded, and"
               " taken for new connections if it fits."),
    broker("ottla.sasl.plain.users.file", STRING, None, MEDIUM,
           doc="File with the users of SASL/PLAIN: lines of name=password. It is read again when it changes. Takes the"
               " place of user_NAME in a JAAS line."),
    broker("ottla.audit.log.file", STRING, "", MEDIUM,
           doc="File for the audit trail: a line of JSON per denial, per change of an administrator and per login that"
               " failed. What strangers fail at is beside it, in a file whose name ends with `.strangers`. Empty: none"
               " is kept."),
    broker("ottla.audit.log.file.bytes.max", INT, 100 * MIB, MEDIUM, valid=at_least(MIB),
           doc="Size at which a file of the audit trail is put aside as `.1`, and a new one begun."),
    broker("ottla.audit.log.files.max", INT, 10, MEDIUM, valid=at_least(1), unit="files",
           doc="Files of the audit trail, the one being written included. The oldest is deleted. There are as many of"
               " strangers."),
    broker("ottla.open.files.max", INT, 10_000, MEDIUM, valid=at_least(16), unit="files",
           doc="Segment files kept open at one time, least recently used first to close."),
)
