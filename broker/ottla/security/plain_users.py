"""Who may log in by SASL/PLAIN: users of a JAAS line, or of a file that is read again when it changes."""

import os
from collections.abc import Callable, Mapping

from ottla.config.listeners import ListenerSettings
from ottla.config.properties import parse_properties
from ottla.errors import Refusal
from ottla.security.core.jaas import BadLoginSettings, parse_login_modules
from ottla.security.core.plain import PLAIN, users_of

__all__ = ["UsersFile", "plain_users"]

FILE = "ottla.sasl.plain.users.file"
JAAS = "sasl.jaas.config"
MODULE = ".PlainLoginModule"
FILE_BYTES_MAX = 16 << 20


def plain_users(settings: ListenerSettings) -> Callable[[], Mapping[str, str]]:
    """Raises Refusal when there is nobody who could log in."""
    if path := settings[FILE]:
        return UsersFile(path).users
    users = _jaas_users(settings)
    return lambda: users


def _jaas_users(settings: ListenerSettings) -> Mapping[str, str]:
    line, listener = settings.of_mechanism(PLAIN, JAAS), settings.endpoint.name.lower()
    place = f"listener.name.{listener}.plain.{JAAS}"
    if not line:
        raise Refusal(
            f"{settings.endpoint} takes logins by PLAIN, but knows no user: set {place}=org.apache.kafka.common."
            f'security.plain.PlainLoginModule required user_NAME="PASSWORD"; or {FILE}'
        )
    try:
        modules = parse_login_modules(line)
    except BadLoginSettings as error:
        raise Refusal(f"{place}: {error}") from None
    users: dict[str, str] = {}
    for module in modules:
        if module.name.endswith(MODULE):
            users |= users_of(module.options)
    if not users:
        raise Refusal(f'{place} names no user: add user_NAME="PASSWORD" to its PlainLoginModule')
    return users


class UsersFile:
    """Lines of name=password, as in a properties file. What cannot be read leaves those before in force."""

    def __init__(self, path: str) -> None:
        """Raises Refusal."""
        self.path = path
        self._users = _read(path)

    def users(self) -> Mapping[str, str]:
        return self._users

    def reload(self) -> None:
        """Reads the file: for threads. Raises Refusal."""
        self._users = _read(self.path)


def _read(path: str) -> Mapping[str, str]:
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise Refusal(f"{FILE}: {path} has more than {FILE_BYTES_MAX} bytes")
        users = {name: password for name, password, _ in parse_properties(data.decode())}
    except OSError as error:
        raise Refusal(f"{FILE}: cannot read {path}: {os.strerror(error.errno or 0)}") from None
    except ValueError:
        raise Refusal(f"{FILE}: {path} has no lines of name=password, in UTF-8") from None
    if "" in users or "" in users.values():
        raise Refusal(f"{FILE}: {path} has a line without a name or a password")
    return users
