"""RE2's regular expressions over topic names; expectations are those of re2j 1.8, which Kafka uses."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.group.consumer.regex import BadRegex, compiled


@pytest.mark.parametrize(
    ("expression", "matching", "others"),
    [
        ("a.*", ["a", "abc"], ["ba", ""]),
        ("^foo-.*$", ["foo-1", "foo-"], ["foo", "xfoo-1"]),
        ("a|bc|", ["a", "bc", ""], ["abc", "b"]),
        ("(a|b)c", ["ac", "bc"], ["abc"]),
        ("(?:a|b)c", ["ac"], ["c"]),
        ("(?P<x>a)", ["a"], [""]),
        ("(?<x>a)", ["a"], [""]),
        ("[a-c]{2,3}x?", ["ab", "abc", "abcx"], ["a", "abcc", "abd"]),
        ("a{2}", ["aa"], ["a", "aaa"]),
        ("a{2,}", ["aa", "aaaa"], ["a"]),
        ("a{,2}", [], ["a", "aa", ""]),
        ("[^ab]", ["c", "_"], ["a", "cc"]),
        ("[]a]+", ["a", "aa"], ["b"]),
        ("[a-]+", ["a-a"], ["b"]),
        ("[[:alpha:]_]+", ["foo_Bar"], ["foo1"]),
        ("[[:^digit:]]", ["a"], ["1"]),
        ("\\d+\\.\\w*", ["1.2_a", "1."], ["1a"]),
        ("\\D\\W", ["a-"], ["1-", "aa"]),
        ("\\p{Lu}\\pN", ["A1"], ["a1"]),
        ("\\P{L}", ["1"], ["a"]),
        ("\\Qa.b\\E.*", ["a.b", "a.bc"], ["axb"]),
        ("\\x61\\x{62}\\143", ["abc"], ["ab"]),
        ("(?i)foo", ["FOO", "Foo"], ["fo"]),
        ("(?i:f)oo", ["Foo"], ["FOO"]),
        ("((?i)a)b", ["Ab"], ["AB"]),
        ("(?i)[a-c]", ["B"], ["D"]),
        ("\\bfoo\\b.*", ["foo", "foo-1"], ["foo1"]),
        ("a\\Bb", ["ab"], ["a-b"]),
        ("\\Aa\\z", ["a"], ["aa"]),
        ("a*?b+?c??", ["b", "aabbc"], ["ac"]),
    ],
)
def test_matching(expression: str, matching: list[str], others: list[str]) -> None:
    regex = compiled(expression)
    assert [name for name in matching if not regex.matches(name)] == []
    assert [name for name in others if regex.matches(name)] == []


UNKNOWN_TO_RE2 = ["(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", "\\1", "(?P=x)", "a**", "a++", "(?x)"]
BROKEN = ["*a", "{2}", "(", "a)", "[a", "[z-a]", "a{3,2}", "\\", "\\y", "[[:foo:]]", "\\p{Foo}", "(?<n"]
TOO_LARGE = ["a{1001}", "(a{1000}){1000}", "(" * 1000]


@pytest.mark.parametrize("expression", UNKNOWN_TO_RE2 + BROKEN + TOO_LARGE)
def test_refusing(expression: str) -> None:
    with pytest.raises(BadRegex):
        compiled(expression)


def test_time_does_not_explode() -> None:
    """`re` would take longer than the universe has."""
    assert not compiled("(a+)+(a+)+$").matches("a" * 240 + "b")


PARTS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "\\d", "\\w", "-", "1"])
REPEATS = st.sampled_from(["", "", "*", "+", "?", "{1,2}"])
EXPRESSIONS = st.recursive(
    st.lists(st.tuples(PARTS, REPEATS).map("".join), min_size=1, max_size=4).map("".join),
    lambda inner: st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
    max_leaves=4,
)


@given(EXPRESSIONS, st.text("ab1-", max_size=6))
def test_as_re_where_both_know_the_same(expression: str, name: str) -> None:
    assert compiled(expression).matches(name) == bool(re.fullmatch(expression, name))
