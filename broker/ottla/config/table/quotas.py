"""Quota windows."""

# fmt: off
from ottla.config.table.words import CLASS, INT, LOW, Setting, at_least, broker

SETTINGS: tuple[Setting, ...] = (
    broker("quota.window.num", INT, 11, LOW, valid=at_least(1), unit="samples",
           doc="Samples kept for client quotas."),
    broker("quota.window.size.seconds", INT, 1, LOW, valid=at_least(1),
           doc="Length of one sample of client quotas."),
    broker("replication.quota.window.num", INT, 11, LOW, valid=at_least(1), unit="samples", effect="none",
           doc="Samples kept for replication quotas."),
    broker("replication.quota.window.size.seconds", INT, 1, LOW, valid=at_least(1), effect="none",
           doc="Length of one sample of replication quotas."),
    broker("alter.log.dirs.replication.quota.window.num", INT, 11, LOW, valid=at_least(1), unit="samples",
           effect="none",
           doc="Samples kept for the quota of moves between data directories."),
    broker("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, LOW, valid=at_least(1), effect="none",
           doc="Length of one sample of that quota."),
    broker("controller.quota.window.num", INT, 11, LOW, valid=at_least(1), unit="samples",
           doc="Samples kept for the quota of topic and partition changes."),
    broker("controller.quota.window.size.seconds", INT, 1, LOW, valid=at_least(1),
           doc="Length of one sample of that quota."),
    broker("client.quota.callback.class", CLASS, None, LOW, effect="none",
           doc="Java class that decides quotas."),
)
