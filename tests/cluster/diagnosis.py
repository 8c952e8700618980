"""What a person would ask a cluster after a failure, gathered in one text."""

from cluster.visited import VisitedCluster

from scripts.local_kubernetes.commands import CommandFailed

LINES_MAX = 60


def diagnosis(cluster: VisitedCluster) -> str:
    said = {question: _last_lines(cluster, question) for question in _questions(cluster)}
    return "\n".join(f"$ kubectl {' '.join(question)}\n{lines}" for question, lines in said.items())


def _questions(cluster: VisitedCluster) -> list[tuple[str, ...]]:
    """Of somebody's cluster nothing but what the run made there."""
    here = ("-n", cluster.namespace)
    where = ("-A",) if cluster.visit.is_ours else here
    return [
        ("get", "nodes"),
        ("get", "kafkaclusters,kafkatopics,sparkapplications", *where),
        ("get", "pods", *where, "-o", "wide"),
        ("get", "kafkaclusters", *where, "-o", "jsonpath={.items[*].status}"),
        ("get", "events", *where, "--sort-by=.lastTimestamp"),
        ("logs", "-n", cluster.visit.operator_namespace, "-l", "app.kubernetes.io/component=operator", "--tail=60"),
        ("logs", *here, "-l", "app.kubernetes.io/component=broker", "--tail=15", "--prefix"),
        ("logs", *here, "-l", "spark-role=driver", "--tail=30", "--prefix"),
        ("get", "sparkapplications", *where, "-o", "jsonpath={.items[*].status}"),
    ]


def _last_lines(cluster: VisitedCluster, question: tuple[str, ...]) -> str:
    try:
        said = cluster.kubectl(*question, timeout_s=20)
    except CommandFailed as failed:
        said = str(failed)
    return "\n".join(said.splitlines()[-LINES_MAX:])
