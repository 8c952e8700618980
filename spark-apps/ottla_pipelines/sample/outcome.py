"""The sessions in the result topic: the last value of each key, since Spark's Kafka sink may write a record twice."""

import json
from datetime import datetime

from ottla_pipelines.sample.answer import Session
from ottla_pipelines.sample.kafka import read_topic

__all__ = ["read_sessions", "session_from_json"]


def read_sessions(bootstrap: str, topic: str, *, group: str | None = None) -> set[Session]:
    last: dict[bytes, bytes] = {}
    for message in read_topic(bootstrap, topic, group=group):
        key, value = message.key(), message.value()
        assert isinstance(key, bytes) and isinstance(value, bytes), f"{topic}: a session has a key and a value"
        last[key] = value
    return {session_from_json(value) for value in last.values()}


def session_from_json(value: bytes) -> Session:
    fields = json.loads(value)
    start, end = (datetime.fromisoformat(fields[name]) for name in ("start", "end"))
    return Session(fields["user"], start, end, fields["clicks"], tuple(fields["pages"]))
