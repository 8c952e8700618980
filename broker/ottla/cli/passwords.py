"""Passwords for commands: from a file, or asked from the terminal without showing them."""

import getpass
import sys

from ottla.errors import Refusal

__all__ = ["password"]


def password(file: str | None, prompt: str) -> str:
    """Asked twice at a terminal. Refusal for an empty one."""
    secret = _asked(prompt) if file is None else _first_line(file)
    if not secret:
        raise Refusal("a password is not empty")
    return secret


def _first_line(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"--password-file {file} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _asked(prompt: str) -> str:
    if not sys.stdin.isatty():
        raise Refusal("there is no terminal to ask for a password; give --password-file")
    secret = getpass.getpass(prompt)
    if secret != getpass.getpass("again: "):
        raise Refusal("the two passwords differ")
    return secret
