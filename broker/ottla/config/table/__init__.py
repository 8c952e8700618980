"""The one table of settings: a file per subject, each with its SETTINGS. Pure declarations."""

from types import ModuleType

from ottla.config.setting import Setting
from ottla.config.table import (
    access,
    cleaner,
    groups,
    log,
    metrics,
    network,
    node,
    oauth,
    own,
    quorum,
    quotas,
    remote,
    replication,
    sasl,
    share,
    streams,
    tls,
    topic,
    transactions,
)

__all__ = ["BROKER", "SUBJECTS", "TOPIC"]

# The order of CONFIG.md: what a newcomer needs comes first.
SUBJECTS: tuple[tuple[str, ModuleType], ...] = (
    ("Ottla's own", own),
    ("Node", node),
    ("Network", network),
    ("Log", log),
    ("Compaction", cleaner),
    ("Replication", replication),
    ("Quorum and controller", quorum),
    ("Consumer groups", groups),
    ("Transactions", transactions),
    ("TLS", tls),
    ("SASL", sasl),
    ("OAuth", oauth),
    ("Access", access),
    ("Quotas", quotas),
    ("Metrics", metrics),
    ("Share groups", share),
    ("Streams groups", streams),
    ("Tiered storage", remote),
)

BROKER: dict[str, Setting] = {setting.name: setting for _, module in SUBJECTS for setting in module.SETTINGS}
TOPIC: dict[str, Setting] = {setting.name: setting for setting in topic.SETTINGS}
