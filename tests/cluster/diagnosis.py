"""What a person would look at after a failure, gathered in one text."""

from cluster.access import Access
from cluster.commands import CommandFailed

LINES_MAX = 60
LOOKS = (
    ("get", "nodes"),
    ("get", "kafkaclusters,kafkatopics,sparkapplications", "-A"),
    ("get", "pods", "-A", "-o", "wide"),
    ("get", "kafkaclusters", "-A", "-o", "jsonpath={.items[*].status}"),
    ("get", "events", "-A", "--sort-by=.lastTimestamp"),
    ("logs", "-n", "ottla-system", "-l", "app.kubernetes.io/component=operator", "--tail=60"),
    ("logs", "-l", "app.kubernetes.io/component=broker", "--tail=15", "--prefix"),
    ("logs", "-l", "spark-role=driver", "--tail=30", "--prefix"),
    ("get", "sparkapplications", "-A", "-o", "jsonpath={.items[*].status}"),
)


def diagnosis(access: Access) -> str:
    return "\n".join(f"$ kubectl {' '.join(look)}\n{_last_lines(access, look)}" for look in LOOKS)


def _last_lines(access: Access, look: tuple[str, ...]) -> str:
    try:
        said = access.kubectl(*look, timeout_s=20)
    except CommandFailed as failed:
        said = str(failed)
    return "\n".join(said.splitlines()[-LINES_MAX:])
