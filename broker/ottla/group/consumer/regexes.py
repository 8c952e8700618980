"""Regular expressions that members of a consumer group subscribe to, and the topics they match. Pure.

They are matched elsewhere (`regex_resolving`), before a heartbeat is decided on. Where that has not been done yet, what
the log says holds on.
"""

from collections.abc import Iterable

from ottla.group.consumer.member import Member
from ottla.group.consumer.records import REGEX, Entry, ResolvedRegex
from ottla.group.consumer.regex_topics import TopicMatching
from ottla.group.consumer.state import GroupState
from ottla.metadata.model.image import Image

__all__ = ["refreshed_regexes"]


def refreshed_regexes(
    state: GroupState, members: Iterable[Member], *, image: Image, matching: TopicMatching, now_ms: int
) -> tuple[dict[str, ResolvedRegex], list[Entry]]:
    """What the regular expressions of these members match now, and the entries that say what changed."""
    wanted = dict.fromkeys(member.subscription.regex for member in members if member.subscription.regex)
    if not wanted and not state.regexes:
        return {}, []
    now: dict[str, ResolvedRegex] = {}
    for text in wanted:
        known, topics = state.regexes.get(text), matching.matched(text, image.topics)
        if known is not None and (topics is None or topics is known.topics or topics == known.topics):
            now[text] = known
        elif topics is not None:
            now[text] = ResolvedRegex(topics, image.version, now_ms)
    written = [Entry(REGEX, (state.group_id, text), value) for text, value in now.items()]
    changed = [entry for entry in written if state.regexes.get(entry.key[1]) is not entry.value]
    gone = [Entry(REGEX, (state.group_id, text), None) for text in state.regexes if text not in wanted]
    return now, changed + gone
