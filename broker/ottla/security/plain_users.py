"""Who may log in by SASL/PLAIN: users of a JAAS line, or of a file that is read again when it changes."""

import logging
import os
from collections.abc import Mapping, Sequence

from ottla.config.listeners import ListenerSettings
from ottla.config.properties import parse_properties
from ottla.errors import Refusal
from ottla.security.core.jaas import BadLoginSettings, parse_login_modules
from ottla.security.core.plain import PLAIN, users_of

__all__ = ["JaasUsers", "UsersFile", "users_source"]

log = logging.getLogger("ottla.security")

FILE = "ottla.sasl.plain.users.file"
JAAS = "sasl.jaas.config"
MODULE = ".PlainLoginModule"
FILE_BYTES_MAX = 16 << 20


def users_source(settings: ListenerSettings) -> "JaasUsers | UsersFile":
    """Raises Refusal when there is nobody who could log in."""
    path = settings.given[FILE]
    return UsersFile(path) if path else JaasUsers(settings)


class JaasUsers:
    """The line may be changed while the broker runs; one that cannot be read leaves those before in force, at the
    start those of the broker's file."""

    def __init__(self, settings: ListenerSettings) -> None:
        """Raises Refusal."""
        self._settings = settings
        self._line = settings.of_mechanism(PLAIN, JAAS)
        try:
            self._users = _jaas_users(settings)
        except Refusal as refusal:
            self._users = _jaas_users(settings.given)
            log.error("users of SASL/PLAIN: those of the file stay in force: %s", refusal)

    def users(self) -> Mapping[str, str]:
        line = self._settings.of_mechanism(PLAIN, JAAS)
        if line != self._line:
            self._line = line
            try:
                self._users = _jaas_users(self._settings)
            except Refusal as refusal:
                log.error("users of SASL/PLAIN: the new ones are not taken, the old ones stay: %s", refusal)
        return self._users


def _jaas_users(settings: ListenerSettings) -> Mapping[str, str]:
    line, listener = settings.of_mechanism(PLAIN, JAAS), settings.endpoint.name.lower()
    place = f"listener.name.{listener}.plain.{JAAS}"
    if not line:
        ignored = f" ({JAAS} without listener and mechanism is ignored, as in Kafka)" if settings[JAAS] else ""
        raise Refusal(
            f"{settings.endpoint} takes logins by PLAIN, but knows no user{ignored}: set {place}=org.apache.kafka."
            f'common.security.plain.PlainLoginModule required user_NAME="PASSWORD"; or {FILE}'
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
        self.what = f"users of SASL/PLAIN in {path}"
        self._users = _read(path)

    def users(self) -> Mapping[str, str]:
        return self._users

    # renewed by `Renewal`

    def files(self) -> Sequence[str]:
        return [self.path]

    def load(self) -> Mapping[str, str]:
        return _read(self.path)

    def take(self, loaded: Mapping[str, str]) -> None:
        if loaded != self._users:
            log.info("%s: %d users may log in", self.what, len(loaded))
        self._users = loaded

    def refused(self) -> None:
        pass


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
