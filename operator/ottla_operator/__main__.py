"""`python -m ottla_operator`: the operator, with its health at :8080/healthz."""

import logging
import os
import sys

import kopf

import ottla_operator.handlers.kafka_cluster
import ottla_operator.handlers.kafka_topic
import ottla_operator.handlers.lifecycle
import ottla_operator.handlers.spark_application  # noqa: F401
from ottla_operator.reconcile.environment import Environment

HEALTH = "http://0.0.0.0:8080/healthz"
LOG_LINE = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def main() -> int:
    logging.basicConfig(format=LOG_LINE, level=os.environ.get("OTTLA_LOG_LEVEL", "INFO"), stream=sys.stderr)
    for noisy in ("kopf.objects", "kopf.activities", "aiohttp.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    namespaces = Environment.read(os.environ).namespaces
    kopf.run(
        clusterwide=not namespaces,
        namespaces=namespaces,
        standalone=True,
        liveness_endpoint=os.environ.get("OTTLA_HEALTH_ENDPOINT", HEALTH),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
