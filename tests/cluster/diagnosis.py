"""What a person would look at after a failure, gathered in one text."""

from cluster.access import Access
from cluster.commands import CommandFailed

LINES_MAX = 60


def diagnosis(access: Access) -> str:
    return "\n".join(f"$ kubectl {' '.join(look)}\n{_last_lines(access, look)}" for look in _looks(access))


def _looks(access: Access) -> list[tuple[str, ...]]:
    """Of somebody's cluster nothing but what the run made there."""
    here = ("-n", access.namespace)
    where = ("-A",) if access.visit.is_ours else here
    return [
        ("get", "nodes"),
        ("get", "kafkaclusters,kafkatopics,sparkapplications", *where),
        ("get", "pods", *where, "-o", "wide"),
        ("get", "kafkaclusters", *where, "-o", "jsonpath={.items[*].status}"),
        ("get", "events", *where, "--sort-by=.lastTimestamp"),
        ("logs", "-n", access.visit.operator_namespace, "-l", "app.kubernetes.io/component=operator", "--tail=60"),
        ("logs", *here, "-l", "app.kubernetes.io/component=broker", "--tail=15", "--prefix"),
        ("logs", *here, "-l", "spark-role=driver", "--tail=30", "--prefix"),
        ("get", "sparkapplications", *where, "-o", "jsonpath={.items[*].status}"),
    ]


def _last_lines(access: Access, look: tuple[str, ...]) -> str:
    try:
        said = access.kubectl(*look, timeout_s=20)
    except CommandFailed as failed:
        said = str(failed)
    return "\n".join(said.splitlines()[-LINES_MAX:])
