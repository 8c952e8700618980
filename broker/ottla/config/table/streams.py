"""Groups of Kafka Streams."""

# fmt: off
from ottla.config.table.words import INT, INT_MAX, MEDIUM, Setting, at_least, broker

SETTINGS: tuple[Setting, ...] = (
    broker("group.streams.heartbeat.interval.ms", INT, 5000, MEDIUM, valid=at_least(1), effect="none",
           doc="Heartbeat interval given to members."),
    broker("group.streams.max.heartbeat.interval.ms", INT, 15_000, MEDIUM, valid=at_least(1), effect="none",
           doc="Longest heartbeat interval a group may set."),
    broker("group.streams.min.heartbeat.interval.ms", INT, 5000, MEDIUM, valid=at_least(1), effect="none",
           doc="Shortest heartbeat interval a group may set."),
    broker("group.streams.session.timeout.ms", INT, 45_000, MEDIUM, valid=at_least(1), effect="none",
           doc="A member silent for this long is removed."),
    broker("group.streams.max.session.timeout.ms", INT, 60_000, MEDIUM, valid=at_least(1), effect="none",
           doc="Longest session a group may set."),
    broker("group.streams.min.session.timeout.ms", INT, 45_000, MEDIUM, valid=at_least(1), effect="none",
           doc="Shortest session a group may set."),
    broker("group.streams.max.size", INT, INT_MAX, MEDIUM, valid=at_least(1), unit="members", effect="none",
           doc="Members in one group."),
    broker("group.streams.max.standby.replicas", INT, 2, MEDIUM, valid=at_least(0), effect="none",
           doc="Most standby replicas a group may set."),
    broker("group.streams.num.standby.replicas", INT, 0, MEDIUM, valid=at_least(0), effect="none",
           doc="Standby replicas of each task."),
)
