"""What the regular expressions of consumer groups match among the topics that there are. Pure.

Each expression is matched against names in the order in which they became known, and remembers how far it has come:
new topics cost no more than themselves. The matching itself is done by whoever asks for the next `Work`
(`group.resolving`), before a heartbeat is decided on. Where that has not been done yet, what the log says holds on.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from ottla.errors import Code, KafkaError
from ottla.group.consumer.member import Member
from ottla.group.consumer.records import REGEX, Entry, ResolvedRegex
from ottla.group.consumer.regex import BadRegex, Matches, compiled, match_for_a_while, shown
from ottla.group.consumer.state import GroupState
from ottla.metadata.model.image import Image

__all__ = ["TopicExpressions", "TopicMatching", "Work", "refreshed_regexes", "refusal"]

EXPRESSIONS_KEPT_MAX = 10_000
# What matching one expression may cost: so much, and so much more for every name.
CPU_SECONDS_MAX, CPU_SECONDS_PER_NAME = 0.1, 20e-6
WORK_CPU_SECONDS_MAX = 0.01
FORGOTTEN_NAMES_MAX = 1000  # beyond as many as there are topics


class TopicMatching(Protocol):
    """As the decisions of groups see it."""

    def matched(self, text: str, topics: Mapping[str, Any]) -> frozenset[str] | None:
        """Those of these topics that the expression is known to match; None when that has not been found out."""

    def check(self, text: str) -> None:
        """KafkaError: INVALID_REGULAR_EXPRESSION."""


def refusal(text: str, reason: str) -> KafkaError:
    return KafkaError(
        Code.invalid_regular_expression,
        f"SubscribedTopicRegex `{shown(text)}` is not a valid regular expression: {reason}.",
    )


class Work(NamedTuple):
    """A piece of matching: it touches nothing else, so that it may be done in a thread."""

    text: str
    names: list[str]
    begin: int

    def done(self, cpu: Callable[[], float]) -> "Done":
        """`cpu` counts seconds."""
        started = cpu()
        try:
            regex = compiled(self.text)
        except BadRegex as error:
            return Done(self, str(error), Matches([], self.begin, self.begin, cpu() - started))
        found = match_for_a_while(regex, self.names, self.begin, cpu=cpu, cpu_s_max=WORK_CPU_SECONDS_MAX)
        return Done(self, None, found._replace(cpu_s=cpu() - started))


class Done(NamedTuple):
    work: Work
    problem: str | None
    matches: Matches


class Expression:
    """`position`: how many of the names it has been matched against. `names`: what it matched when it last was through
    with all of them, or None; `found`: what it matches among the names since."""

    __slots__ = ("found", "left_s", "names", "position", "problem", "topics", "view")

    def __init__(self, *, left_s: float) -> None:
        self.position = 0
        self.names: frozenset[str] | None = None
        self.found: list[str] = []
        self.left_s = left_s  # of CPU, until it is through
        self.problem: str | None = None
        self.topics: Mapping[str, Any] | None = None
        self.view: frozenset[str] = frozenset()  # of `names`, those that are among `topics`

    def begin_again(self) -> None:
        self.position, self.found, self.names = 0, [], None


class TopicExpressions:
    def __init__(self) -> None:
        self._names: list[str] = []  # only ever extended: a thread may be reading it
        self._topics: Mapping[str, Any] = {}
        self._expressions: dict[str, Expression] = {}

    def follow(self, topics: Mapping[str, Any]) -> None:
        """These are the topics now. One that is deleted and made again counts as a new one, or was never gone."""
        if topics is self._topics:
            return
        self._names.extend(topics.keys() - self._topics.keys())
        self._topics = topics
        if len(self._names) > 2 * len(topics) + FORGOTTEN_NAMES_MAX:
            self._names = list(topics)
            for one in self._expressions.values():
                one.begin_again()

    def work(self, text: str) -> Work | None:
        """What is to be done next for this expression; None when it is through or refused."""
        one = self._expressions.get(text)
        if one is None:
            one = self._keep(text)
        elif one.problem is not None or (one.names is not None and one.position == len(self._names)):
            return None
        return Work(text, self._names, one.position)

    def accept(self, done: Done) -> None:
        one = self._expressions.get(done.work.text)
        if one is None or done.work.names is not self._names or done.work.begin != one.position:
            return  # somebody else did it, or the names are others now
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
