"""Kubernetes Events (`kubectl describe`, `kubectl get events`) about what the operator did, at a bounded rate."""

import logging
import uuid
from collections import deque
from collections.abc import Callable

from ottla_operator.kube import moments
from ottla_operator.kube.client import EVENTS, Kind, Kube, KubeError
from ottla_operator.resources.model import Metadata

__all__ = ["EventRecorder"]

log = logging.getLogger("ottla.operator")

EVENTS_PER_WINDOW_MAX, WINDOW_SECONDS = 30, 60.0
MESSAGE_LENGTH_MAX = 1000


class EventRecorder:
    """An event over the rate, or that cannot be written, is only logged: nothing depends on it."""

    def __init__(self, kube: Kube, *, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._clock = clock
        self._recent: deque[float] = deque(maxlen=EVENTS_PER_WINDOW_MAX)

    async def record(self, kind: Kind, about: Metadata, *, reason: str, message: str, warning: bool = False) -> None:
        log.log(logging.WARNING if warning else logging.INFO, "%s %s: %s", kind.kind, about.name, message)
        now = self._clock()
        if len(self._recent) == EVENTS_PER_WINDOW_MAX and now - self._recent[0] < WINDOW_SECONDS:
            return
        self._recent.append(now)
        moment = moments.now()
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{about.name}.{uuid.uuid4().hex[:16]}", "namespace": about.namespace},
            "involvedObject": {
                "apiVersion": kind.api,
                "kind": kind.kind,
                "name": about.name,
                "namespace": about.namespace,
                "uid": about.uid,
            },
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": message[:MESSAGE_LENGTH_MAX],
            "source": {"component": "ottla-operator"},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
        try:
            await self._kube.create(event, EVENTS)
        except KubeError as error:
            log.debug("event about %s %s: %s", kind.kind, about.name, error)
