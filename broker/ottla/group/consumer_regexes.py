"""Regular expressions that members of a consumer group subscribe to, and the topics they match. Pure.

They are matched when first asked for, and again, against the new topics only, when there are any.
"""

from collections.abc import Iterable

from ottla.errors import Code, KafkaError
from ottla.group.consumer_member import Member
from ottla.group.consumer_records import REGEX, Entry, ResolvedRegex
from ottla.group.consumer_state import GroupState
from ottla.group.regex import BadRegex, Regex, compiled
from ottla.metadata.image import Image

__all__ = ["refreshed_regexes"]


def refreshed_regexes(
    state: GroupState, members: Iterable[Member], *, image: Image, seen: Image | None, now_ms: int
) -> tuple[dict[str, ResolvedRegex], list[Entry]]:
    """What the regular expressions of these members match now, and the entries that say what changed."""
    wanted = dict.fromkeys(member.subscription.regex for member in members if member.subscription.regex)
    if not wanted and not state.regexes:
        return {}, []
    now: dict[str, ResolvedRegex] = {}
    for text in wanted:
        known = state.regexes.get(text)
        topics = _matching(text, known, image, seen)
        if known is not None and topics == known.topics:
            now[text] = known
        else:
            now[text] = ResolvedRegex(topics, image.version, now_ms)
    written = [Entry(REGEX, (state.group_id, text), value) for text, value in now.items()]
    changed = [entry for entry in written if state.regexes.get(entry.key[1]) is not entry.value]
    gone = [Entry(REGEX, (state.group_id, text), None) for text in state.regexes if text not in now]
    return now, changed + gone


def _matching(text: str, known: ResolvedRegex | None, image: Image, seen: Image | None) -> frozenset[str]:
    if known is None or seen is None:
        return _matches(_checked(text), image.topics)
    if seen.topics is image.topics:
        return known.topics
    kept = frozenset(name for name in known.topics if name in image.topics)
    return kept | _matches(_checked(text), image.topics.keys() - seen.topics.keys())


def _matches(regex: Regex, names: Iterable[str]) -> frozenset[str]:
    return frozenset(name for name in names if regex.matches(name))


def _checked(text: str) -> Regex:
    try:
        return compiled(text)
    except BadRegex as error:
        raise KafkaError(
            Code.invalid_regular_expression,
            f"SubscribedTopicRegex `{text}` is not a valid regular expression: {error}.",
        ) from None
