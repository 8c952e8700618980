"""Parses and renders the values of settings, in Java's spelling. Pure.

`parse` raises BadValue with Kafka's own sentence. A LIST is a tuple of strings; CLASS, STRING and PASSWORD are strings.
"""

import math
import re

from ottla.config.rules import Range, quoted_list
from ottla.config.setting import Setting, Type

__all__ = ["BadValue", "out_of_range", "parse", "render"]

INTEGERS = {Type.INT: 32, Type.LONG: 64, Type.SHORT: 16}
INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
DOUBLE = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?)", re.ASCII)


class BadValue(ValueError):
    """The setting does not allow this value; the text is Kafka's sentence."""

    def __init__(self, name: str, shown: str, reason: str) -> None:
        super().__init__(f"Invalid value {shown} for configuration {name}: {reason}")
        self.reason = reason


def parse(setting: Setting, text: str) -> object:
    """The typed value of a text. BadValue if it breaks the setting's rule."""
    value = _typed(setting, text)
    if setting.valid is not None and (problem := setting.valid.problem(value)):
        raise _refused(setting, value, problem)
    return value


def render(value: object) -> str:
    """Kafka's spelling of a typed value."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            return _java_double(value)
        case tuple():
            return ",".join(value)
    return str(value)


def _typed(setting: Setting, text: str) -> object:
    trimmed = text.strip()
    if bits := INTEGERS.get(setting.type):
        return _integer(setting, text, trimmed, bits)
    match setting.type:
        case Type.BOOLEAN:
            if trimmed.lower() not in ("true", "false"):
                raise BadValue(setting.name, text, "Expected value to be either true or false")
            return trimmed.lower() == "true"
        case Type.DOUBLE:
            if not DOUBLE.fullmatch(trimmed):
                raise BadValue(setting.name, text, "Not a number of type DOUBLE")
            return float(trimmed.rstrip("dDfF"))
        case Type.LIST:
            return tuple(re.split(r"\s*,\s*", trimmed)) if trimmed else ()
    return trimmed


def _integer(setting: Setting, text: str, trimmed: str, bits: int) -> int:
    # The length is checked first: Python refuses to parse numbers of thousands of digits.
    if INTEGER.fullmatch(trimmed) and len(trimmed) < 400 and -(1 << bits - 1) <= int(trimmed) < 1 << bits - 1:
        return int(trimmed)
    raise BadValue(setting.name, text, f"Not a number of type {setting.type.name}")


def out_of_range(setting: Setting, text: str) -> str | None:
    """The allowed range, if the text is an integer out of the range of the setting's type. For people."""
    bits = INTEGERS.get(setting.type)
    if bits is None or not INTEGER.fullmatch(text.strip()):
        return None
    rule = setting.valid if isinstance(setting.valid, Range) else Range()
    low = -(1 << bits - 1) if rule.low is None else rule.low
    high = (1 << bits - 1) - 1 if rule.high is None else rule.high
    return f"out of range: {low} to {high} are allowed"


def _refused(setting: Setting, value: object, problem: str) -> BadValue:
    if isinstance(value, tuple) and problem.startswith("must be"):
        return BadValue(setting.name, quoted_list(value), f"{setting.name} {problem}")
    if isinstance(value, tuple):
        wrong = next(item for item in value if setting.valid and setting.valid.problem((item,)))
        return BadValue(setting.name, wrong, problem)
    return BadValue(setting.name, render(value), problem)


def _java_double(value: float) -> str:
    """As Double.toString: plain between 0.001 and 10^7, otherwise d.dddE±x."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    exponent = int(f"{value:e}".split("e")[1])
    digits = repr(abs(value)).split("e")[0].replace(".", "").strip("0")  # repr has the fewest digits that read back
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{exponent}"
