"""From a certificate's name to a principal's: `ssl.principal.mapping.rules` with Kafka's grammar. Pure.

    RULE:^CN=(.*?),OU=ops.*$/$1@ops/L, RULE:…, DEFAULT

The first rule whose pattern is the whole name gives the principal.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["BadRule", "NoRuleApplies", "PrincipalRules"]

GRAMMAR = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
SPLITTER = re.compile(rf"\s*(?P<rule>{GRAMMAR})\s*(?:,\s*|$)")
PARSER = re.compile(GRAMMAR)
NAMED_GROUP = re.compile(r"\(\?<([A-Za-z])")  # as Java writes it
REFERENCE = re.compile(r"\\(.)|\$\{(\w+)\}|\$(\d+)", re.DOTALL)


class BadRule(ValueError):
    """The text says what is wrong."""


class NoRuleApplies(Exception):
    """Whoever has this certificate gets no principal: the connection is closed."""


class Rule(NamedTuple):
    pattern: "re.Pattern[str] | None"
    """None takes the name as it is."""
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if not self.pattern.fullmatch(name):
            return None
        result = self.pattern.sub(self._replaced, name)
        return result.lower() if self.case == "L" else result.upper() if self.case == "U" else result

    def _replaced(self, match: "re.Match[str]") -> str:
        return REFERENCE.sub(lambda found: _reference(found, match), self.replacement)


class PrincipalRules:
    def __init__(self, text: str) -> None:
        """Raises BadRule."""
        self._text = text
        self._rules = _parse(text)

    def apply(self, name: str) -> str:
        for rule in self._rules:
            result = rule.apply(name)
            if result is not None:
                return result
        raise NoRuleApplies(f"No rules apply to {name}, rules {self._text}")


def _parse(text: str) -> Sequence[Rule]:
    rules = []
    for part in SPLITTER.finditer(text.strip()):
        match = PARSER.match(part["rule"])
        if match is None or match.end() != len(part["rule"]):
            raise BadRule(f"{part['rule']!r} is neither DEFAULT nor RULE:pattern/replacement/[LU]")
        if match[1]:
            rules.append(Rule(None, "", ""))
        elif match[2] is not None:
            rules.append(Rule(_compiled(match[2]), match[3], match[4]))
    return rules


def _compiled(pattern: str) -> "re.Pattern[str]":
    try:
        return re.compile(NAMED_GROUP.sub(r"(?P<\1", pattern))
    except re.error as error:
        raise BadRule(f"{pattern!r} is no regular expression: {error}") from None


def _reference(found: "re.Match[str]", match: "re.Match[str]") -> str:
    """As in Kafka, `$12` is group 1 and a 2 where there are fewer than 12 groups, and text where there is none."""
    if found[1] is not None:
        return found[1]
    if found[2] is not None:
        return match[found[2]] or ""
    number = found[3]
    for length in range(len(number), 0, -1):
        if int(number[:length]) <= len(match.groups()):
            return (match[int(number[:length])] or "") + number[length:]
    return found[0]
