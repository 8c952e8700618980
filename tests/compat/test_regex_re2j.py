"""Expressions over topic names, judged by RE2 as Ottla has it and by re2j as Kafka has it. Differences are listed."""

import base64
import random

from ottla.group.consumer.regex import BadRegex, compiled
from support.java import java_program

SEED, EXPRESSIONS = 15, 4000
NAMES = ["a", "b", "ab", "aab", "A", "1", "a1", "a-b", "a.b", "_", "foo-1", "FOO_2", "aaa", "a-1.b_2", "zz9"]
ATOMS = [
    *("a", "b", "1", "-", ".", "_", "foo", "[ab]", "[^a]", "[a-c]", "[[:alpha:]]", "[[:^digit:]]", "[[:word:]]"),
    *(
        "\\d",
        "\\w",
        "\\D",
        "\\W",
        "\\s",
        "\\b",
        "\\B",
        "\\pL",
        "\\p{Lu}",
        "\\PN",
        "\\Qa.b\\E",
        "\\x61",
        "\\x{62}",
        "\\.",
    ),
    *("^", "$", "\\A", "\\z", "(?i)a", "(?i:f)", "(?s).", "(?U)a+", "", "[]a]", "[a-]", "\\141", "\\C", "\\pZ", "\\t"),
]
# What neither takes, or only one of them.
ODD = ["(?=a)", "\\1", "a**", "a{2}{2}", "(?P<n>a)", "(?<n>a)", "a{1001}", "{2}", "[z-a]", "\\y", "\\Z", "(?x)a", "a++"]
REPEATS = ["", "", "", "*", "+", "?", "*?", "{2}", "{1,3}", "{0}", "{,2}", "{2,}"]
TOO_LARGE = "too large"


def is_known_to_differ(text: str) -> bool:
    """Two groups of one name, where nothing is captured; and \\C, one byte, which re2j does not have."""
    return text.count("n>") > 1 or "\\C" in text


def expression(chance: random.Random, depth: int) -> str:
    kind = chance.random()
    if depth == 0 or kind < 0.3:
        return chance.choice(ATOMS if chance.random() < 0.97 else ODD) + chance.choice(REPEATS)
    parts = [expression(chance, depth - 1) for _ in range(chance.randint(1, 3))]
    if kind < 0.7:
        return "".join(parts)
    return f"({'|'.join(parts)}){chance.choice(REPEATS)}"


def judged(text: str) -> str:
    try:
        regex = compiled(text)
    except BadRegex as error:
        return TOO_LARGE if "too large" in str(error) else "refused"
    return "".join("1" if regex.matches(name) else "0" for name in NAMES)


def test_as_re2j() -> None:
    chance = random.Random(SEED)
    texts = [*ATOMS, *ODD, *(expression(chance, 3) for _ in range(EXPRESSIONS))]
    lines = "\n".join(" ".join(base64.b64encode(one.encode()).decode() for one in (text, *NAMES)) for text in texts)
    theirs = java_program("RegexJudge", stdin=lines + "\n").out.splitlines()
    assert len(theirs) == len(texts)
    pairs = [(text, judged(text), there) for text, there in zip(texts, theirs, strict=True)]
    large = [text for text, ours, _ in pairs if ours == TOO_LARGE]
    assert len(large) <= EXPRESSIONS / 1000, large[:10]
    differing = [pair for pair in pairs if pair[1] not in (pair[2], TOO_LARGE) and not is_known_to_differ(pair[0])]
    assert not differing, f"{len(differing)} of {len(texts)}; first: {differing[:10]}"
    assert sum(1 for _, ours, _ in pairs if ours != "refused") > EXPRESSIONS / 2
