"""Readable texts of settings for CONFIG.md and `ottla config`. Pure."""

from ottla.config.setting import GIB, HOUR_MS, INT_MAX, KIB, LONG_MAX, MIB, Setting
from ottla.config.values import render

__all__ = ["allowed", "default_for_people"]

DURATIONS = ((24 * HOUR_MS, "day"), (HOUR_MS, "hour"), (60_000, "minute"), (1000, "second"))
SIZES = ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))


def default_for_people(setting: Setting) -> str:
    """The exact value with a readable one: `604800000 (7 days)`."""
    if setting.default is None:
        return "unset"
    text = render(setting.default)
    if text == "":
        return "empty"
    amount = _amount(setting)
    return f"{text} ({amount})" if amount else text


def allowed(setting: Setting) -> str:
    if setting.valid is not None:
        return str(setting.valid)
    return {"BOOLEAN": "true, false"}.get(setting.type.name, "")


def _amount(setting: Setting) -> str:
    value = setting.default
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 1000:
        return ""
    if value in (LONG_MAX, INT_MAX) or value > LONG_MAX:
        return "no limit"
    if setting.unit == "ms":
        return next((_many(int(value) // unit, name) for unit, name in DURATIONS if value % unit == 0), "")
    if setting.unit in ("bytes", "bytes/s"):
        return next((f"{int(value) // unit} {name}" for unit, name in SIZES if value % unit == 0), "")
    return ""


def _many(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}s"
