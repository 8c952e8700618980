"""Login settings as Kafka has them from Java: `module flag key="value" …;`. Pure."""

import re
from typing import NamedTuple

__all__ = ["BadLoginSettings", "LoginModule", "parse_login_modules"]

FLAGS = ("required", "requisite", "sufficient", "optional")
# As Java's StreamTokenizer reads them: quotes of both kinds with escapes, comments, and words up to a space, = or ;.
TOKEN = re.compile(
    r"""(?P<space>[\x00-\x20]+|//[^\n]*|/\*.*?\*/|/[^\n]*)"""
    r"""|"(?P<double>(?:[^"\\\n]|\\.)*)"|'(?P<single>(?:[^'\\\n]|\\.)*)'"""
    r"""|(?P<sign>[;=])|(?P<word>[^\x00-\x20;="'/]+)""",
    re.DOTALL,
)
ESCAPE = re.compile(r"\\([0-7]{1,3}|.)", re.DOTALL)
LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


class BadLoginSettings(ValueError):
    """The text says what is wrong, without the values, which may be passwords."""


class LoginModule(NamedTuple):
    name: str
    """Java's class, such as `org.apache.kafka.common.security.plain.PlainLoginModule`."""
    flag: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name}, {', '.join(self.options)})"


def parse_login_modules(text: str) -> list[LoginModule]:
    tokens = [*_tokens(text)]
    modules = []
    while tokens:
        if (";", True) not in tokens:
            raise BadLoginSettings("JAAS config entry not terminated by semi-colon")
        end = tokens.index((";", True))
        modules.append(_module(tokens[:end]))
        tokens = tokens[end + 1 :]
    if not modules:
        raise BadLoginSettings("Login module not specified in JAAS config")
    return modules


def _tokens(text: str) -> "list[tuple[str, bool]]":
    """Each with whether it is a sign; spaces and comments are left out."""
    found: list[tuple[str, bool]] = []
    position = 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            raise BadLoginSettings("JAAS config has a quote that does not end")
        position = match.end()
        kind = match.lastgroup or ""
        if kind in ("double", "single"):
            found.append((ESCAPE.sub(_unescaped, match[kind]), False))
        elif kind != "space":
            found.append((match[kind], kind == "sign"))
    return found


def _unescaped(match: "re.Match[str]") -> str:
    code = match[1]
    return chr(int(code, 8)) if code[0] in "01234567" else LETTERS.get(code, code)


def _module(tokens: "list[tuple[str, bool]]") -> LoginModule:
    if not tokens or tokens[0][1]:
        raise BadLoginSettings("Login module not specified in JAAS config")
    if len(tokens) < 2:
        raise BadLoginSettings("Login module control flag not specified in JAAS config")
    (name, _), (flag, _), *rest = tokens
    if flag.lower() not in FLAGS:
        raise BadLoginSettings(f"Invalid login module control flag '{flag}' in JAAS config")
    options = {}
    for at in range(0, len(rest), 3):
        (key, _), *more = rest[at : at + 3]
        if len(more) < 2 or more[0] != ("=", True) or more[1][1]:
            raise BadLoginSettings(f"Value not specified for key '{key}' in JAAS config")
        options[key] = more[1][0]
    return LoginModule(name, flag.lower(), options)
