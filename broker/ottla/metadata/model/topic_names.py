"""Kafka's rules for topic names. Pure."""

import re
from collections.abc import Iterable, Mapping

from ottla.errors import Code, KafkaError

__all__ = ["INTERNAL_TOPICS", "check_topic_name", "collision_index", "collision_key", "names_of_topics"]

TOPIC_NAME_LENGTH_MAX = 249
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    if reason := _reason_invalid(name):
        raise KafkaError(Code.invalid_topic_exception, f"Topic name is invalid: {reason}")


def _reason_invalid(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {TOPIC_NAME_LENGTH_MAX}"
    if _LEGAL.fullmatch(name) is None:
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def names_of_topics(names: frozenset[str]) -> frozenset[str]:
    """Without those that are too long for any topic: nobody needs to keep what cannot match."""
    if all(len(name) <= TOPIC_NAME_LENGTH_MAX for name in names):
        return names
    return frozenset(name for name in names if len(name) <= TOPIC_NAME_LENGTH_MAX)


def collision_key(name: str) -> str | None:
    """Names that differ only in '.' and '_' would share metric names; None for a name that has neither."""
    return name.replace(".", "_") if "." in name or "_" in name else None


def collision_index(names: Iterable[str]) -> Mapping[str, str]:
    return {key: name for name in names if (key := collision_key(name))}
