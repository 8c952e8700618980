"""How far expressions have come, and what they may cost."""

import pytest
from ottla.errors import Code, KafkaError
from ottla.group.consumer import topic_matching
from ottla.group.consumer.topic_matching import CPU_SECONDS_MAX, FORGOTTEN_NAMES_MAX, TopicExpressions, Work


class Cpu:
    """So many seconds pass each time it is asked."""

    def __init__(self, step_s: float = 0.0) -> None:
        self._now, self._step_s = 0.0, step_s

    def __call__(self) -> float:
        self._now += self._step_s
        return self._now


def catch_up(expressions: TopicExpressions, text: str, cpu: Cpu | None = None) -> int:
    """How many pieces of work it took."""
    pieces = 0
    while (work := expressions.work(text)) is not None:
        expressions.accept(work.done(cpu or Cpu()))
        pieces += 1
    return pieces


def topics(*names: str) -> dict[str, None]:
    return dict.fromkeys(names)


def test_new_topics_cost_no_more_than_themselves() -> None:
    expressions, first = TopicExpressions(), topics("a1", "b1")
    expressions.follow(first)
    assert expressions.matched("a.*", first) is None, "nobody has asked for it"
    assert catch_up(expressions, "a.*") == 1
    assert expressions.matched("a.*", first) == {"a1"}
    then = topics("a1", "b1", "a2")
    expressions.follow(then)
    work = expressions.work("a.*")
    assert work is not None and work.names[work.begin :] == ["a2"]
    assert expressions.matched("a.*", then) == {"a1"}, "what is known, until the new ones are matched"
    catch_up(expressions, "a.*")
    assert expressions.matched("a.*", then) == {"a1", "a2"}
    assert expressions.matched("a.*", then) is expressions.matched("a.*", then)


@pytest.mark.parametrize("seen_without", [True, False])
def test_a_topic_that_is_deleted_and_made_again(seen_without: bool) -> None:
    expressions, before, gone, again = TopicExpressions(), topics("a1", "a2"), topics("a2"), topics("a1", "a2")
    expressions.follow(before)
    catch_up(expressions, "a.*")
    if seen_without:
        expressions.follow(gone)
    assert expressions.matched("a.*", gone) == {"a2"}
    expressions.follow(again)
    catch_up(expressions, "a.*")
    assert expressions.matched("a.*", again) == {"a1", "a2"}


def test_names_of_deleted_topics_do_not_pile_up() -> None:
    expressions = TopicExpressions()
    for number in range(FORGOTTEN_NAMES_MAX + 10):
        now = topics("a", f"a{number}")
        expressions.follow(now)
        catch_up(expressions, "a.*")
        assert expressions.matched("a.*", now) == set(now)
    work = Work("a.*", *(expressions.work("fresh") or pytest.fail())[1:])
    assert len(work.names) < FORGOTTEN_NAMES_MAX


def test_slow_ones_are_refused_and_stay_so() -> None:
    expressions, now = TopicExpressions(), topics(*(f"t{number}" for number in range(1000)))
    expressions.follow(now)
    pieces = catch_up(expressions, "t.*", Cpu(step_s=0.002))
    assert pieces == pytest.approx(CPU_SECONDS_MAX / 0.01, rel=0.3), "its time is up after some pieces"
    with pytest.raises(KafkaError, match="use a simpler one") as refused:
        expressions.check("t.*")
    assert refused.value.code is Code.invalid_regular_expression
    assert expressions.work("t.*") is None, "it is not tried again and again"
    catch_up(expressions, "t1.*", Cpu(step_s=5e-6))
    expressions.check("t1.*")


def test_its_time_begins_again_with_every_change() -> None:
    expressions, now = TopicExpressions(), topics("t")
    for number in range(200):
        now = {**now, f"t{number}": None}
        expressions.follow(now)
        catch_up(expressions, "t.*", Cpu(step_s=0.002))
    expressions.check("t.*")
    assert expressions.matched("t.*", now) == set(now)


def test_bad_ones_are_told_even_without_topics() -> None:
    expressions = TopicExpressions()
    assert catch_up(expressions, "(") == 1
    with pytest.raises(KafkaError, match="missing"):
        expressions.check("(")
    assert catch_up(expressions, "a") == 1 and catch_up(expressions, "a") == 0
    assert expressions.matched("a", {}) == frozenset()


def test_expressions_kept_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_matching, "EXPRESSIONS_KEPT_MAX", 2)
    expressions, now = TopicExpressions(), topics("a")
    expressions.follow(now)
    for text in ("a", "b", "c"):
        catch_up(expressions, text)
    assert expressions.matched("a", now) is None
    assert expressions.matched("c", now) == frozenset()


def test_two_who_work_at_the_same_time() -> None:
    expressions, now = TopicExpressions(), topics("a", "b")
    expressions.follow(now)
    first, second = expressions.work("a"), expressions.work("a")
    assert first is not None and second is not None
    expressions.accept(first.done(Cpu()))
    expressions.accept(second.done(Cpu()))
    assert expressions.matched("a", now) == {"a"} and expressions.work("a") is None
