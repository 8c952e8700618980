"""Which of the existing topics the regular expressions of consumer groups match. Pure.

Each expression is matched against names in the order in which they became known, and remembers its position: a new
topic costs one match per expression. `group.resolving` takes the next piece of `Work` and performs it before a
heartbeat is decided. Until then the matches in the log apply.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from ottla.errors import Code, KafkaError
from ottla.group.consumer.member import Member
from ottla.group.consumer.records import REGEX, Entry, ResolvedRegex
from ottla.group.consumer.regex import BadRegex, Matches, compiled, match_until, shown
from ottla.group.consumer.state import GroupState
from ottla.metadata.model.image import Image

__all__ = ["TopicExpressions", "TopicMatching", "Work", "refreshed_regexes", "refusal"]

EXPRESSIONS_KEPT_MAX = 10_000
# CPU budget of one expression: a base, and an amount per name.
CPU_SECONDS_MAX, CPU_SECONDS_PER_NAME = 0.1, 20e-6
WORK_CPU_SECONDS_MAX = 0.01
FORGOTTEN_NAMES_MAX = 1000  # more than there are topics; then the list of names is rebuilt


class TopicMatching(Protocol):
    """The interface for the decisions of groups."""

    def matched(self, group_id: str, text: str, topics: Mapping[str, Any]) -> frozenset[str] | None:
        """Those of these topics that the expression matches for this group; None while that is not known."""

    def check(self, text: str) -> None:
        """KafkaError: INVALID_REGULAR_EXPRESSION."""


def refusal(text: str, reason: str) -> KafkaError:
    return KafkaError(
        Code.invalid_regular_expression,
        f"SubscribedTopicRegex `{shown(text)}` is not a valid regular expression: {reason}.",
    )


class Work(NamedTuple):
    """A piece of matching over immutable values, so it may run in a thread."""

    text: str
    names: list[str]
    begin: int

    def done(self, cpu: Callable[[], float]) -> "Done":
        """`cpu` returns CPU seconds."""
        started = cpu()
        try:
            regex = compiled(self.text)
        except BadRegex as error:
            return Done(self, str(error), Matches([], self.begin, self.begin, cpu() - started))
        found = match_until(regex, self.names, self.begin, cpu=cpu, cpu_s_max=WORK_CPU_SECONDS_MAX)
        return Done(self, None, found._replace(cpu_s=cpu() - started))


class Done(NamedTuple):
    work: Work
    problem: str | None
    matches: Matches


class Expression:
    """`position`: how many names it has been matched against. `names`: its matches when it last had reached the end, or
    None; `found`: its matches since then."""

    __slots__ = ("found", "left_s", "names", "position", "problem", "topics", "view")

    def __init__(self, *, left_s: float) -> None:
        self.position = 0
        self.names: frozenset[str] | None = None
        self.found: list[str] = []
        self.left_s = left_s  # CPU seconds left for all names
        self.problem: str | None = None
        self.topics: Mapping[str, Any] | None = None
        self.view: frozenset[str] = frozenset()  # those of `names` that are in `topics`

    def restart(self) -> None:
        self.position, self.found, self.names = 0, [], None


class TopicExpressions:
    def __init__(self) -> None:
        self._names: list[str] = []  # append-only: a thread may be reading it
        self._topics: Mapping[str, Any] = {}
        self._expressions: dict[str, Expression] = {}

    def follow(self, topics: Mapping[str, Any]) -> None:
        """Set the current topics. A topic that was deleted and created again is the same name."""
        if topics is self._topics:
            return
        self._names.extend(topics.keys() - self._topics.keys())
        self._topics = topics
        if len(self._names) > 2 * len(topics) + FORGOTTEN_NAMES_MAX:
            self._names = list(topics)
            for one in self._expressions.values():
                one.restart()

    def work(self, text: str) -> Work | None:
        """The next piece of work for this expression; None when it is complete or refused."""
        one = self._expressions.get(text)
        if one is None:
            one = self._keep(text)
        elif one.problem is not None or (one.names is not None and one.position == len(self._names)):
            return None
        return Work(text, self._names, one.position)

    def accept(self, done: Done) -> None:
        one = self._expressions.get(done.work.text)
        if one is None or done.work.names is not self._names or done.work.begin != one.position:
            return  # another request did it, or the names were replaced
        one.position = done.matches.end
        one.found += done.matches.names
        one.left_s -= done.matches.cpu_s
        if done.problem is not None:
            one.problem = done.problem
        elif one.position == len(self._names):
            one.names = frozenset(one.found).union(one.names or ())
            one.found, one.left_s, one.topics = [], self._allowance(one.position), None
        elif one.left_s <= 0:
            one.problem = f"it takes too long to match against {len(self._topics)} topics; use a simpler one"

    def matched(self, text: str, topics: Mapping[str, Any]) -> frozenset[str] | None:
        """Those of these topics that the expression matches; None while that is not known."""
        one = self._expressions.get(text)
        if one is None or one.names is None:
            return None
        if one.topics is not topics:
            gone = [name for name in one.names if name not in topics]
            one.topics, one.view = topics, one.names.difference(gone) if gone else one.names
        return one.view

    def check(self, text: str) -> None:
        one = self._expressions.get(text)
        if one is not None and one.problem is not None:
            raise refusal(text, one.problem)

    def _keep(self, text: str) -> Expression:
        if len(self._expressions) >= EXPRESSIONS_KEPT_MAX:
            del self._expressions[next(iter(self._expressions))]
        made = self._expressions[text] = Expression(left_s=self._allowance(0))
        return made

    def _allowance(self, position: int) -> float:
        return CPU_SECONDS_MAX + CPU_SECONDS_PER_NAME * (len(self._names) - position)


def refreshed_regexes(
    state: GroupState, members: Iterable[Member], *, image: Image, matching: TopicMatching, now_ms: int
) -> tuple[dict[str, ResolvedRegex], list[Entry]]:
    """The current matches of these members' regular expressions, and the entries for those that changed."""
    wanted = dict.fromkeys(member.subscription.regex for member in members if member.subscription.regex)
    if not wanted and not state.regexes:
        return {}, []
    now: dict[str, ResolvedRegex] = {}
    for text in wanted:
        known, topics = state.regexes.get(text), matching.matched(state.group_id, text, image.topics)
        if known is not None and (topics is None or topics is known.topics or topics == known.topics):
            now[text] = known
        elif topics is not None:
            now[text] = ResolvedRegex(topics, image.version, now_ms)
    written = [Entry(REGEX, (state.group_id, text), value) for text, value in now.items()]
    changed = [entry for entry in written if state.regexes.get(entry.key[1]) is not entry.value]
    gone = [Entry(REGEX, (state.group_id, text), None) for text in state.regexes if text not in wanted]
    return now, changed + gone
