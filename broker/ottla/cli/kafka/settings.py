"""How a client reaches a fleet and logs in: a file of settings in librdkafka's names, or in those of Java's clients."""

import difflib
from collections.abc import Mapping
from typing import NamedTuple

from ottla.config.properties import parse_properties
from ottla.errors import Refusal
from ottla.metadata.model.credentials import MECHANISM_NAMES
from ottla.security.core.jaas import BadLoginSettings, parse_login_modules

__all__ = ["PLAIN", "ClientSettings", "read_settings", "settings_of"]

OPTION = "--command-config"
PLAIN = "PLAIN"
MECHANISMS = (PLAIN, *MECHANISM_NAMES.values())
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
FILE_BYTES_MAX = 1 << 20
OF_A_BROKER = ("listeners", "process.roles", "log.dirs", "node.id")
STORES = {"ssl.truststore.location": "ssl.truststore.type", "ssl.keystore.location": "ssl.keystore.type"}
TO_PEM = "give PEM: `openssl pkcs12 -in STORE -out store.pem -nodes` makes it of PKCS12"
KNOWN = {
    "bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password",
    "sasl.jaas.config", "ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.key.password",
    "ssl.endpoint.identification.algorithm", "enable.ssl.certificate.verification", *STORES, *STORES.values(),
}  # fmt: skip
OURS = ("security.", "sasl.", "ssl.", "enable.ssl.", "bootstrap.")
"""A name that begins like this and is not known would change who is reached, or how: it is refused."""


class ClientSettings(NamedTuple):
    source: str = OPTION
    """The file, for what is said of its settings."""
    bootstrap: str | None = None
    protocol: str = "PLAINTEXT"
    mechanism: str = PLAIN
    user: str = ""
    password: str = ""
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = None
    checks_certificate: bool = True
    checks_host: bool = True

    def __repr__(self) -> str:
        return f"ClientSettings({self.source}, {self.protocol})"

    @property
    def by_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def by_login(self) -> bool:
        return self.protocol.startswith("SASL")


def read_settings(path: str | None) -> ClientSettings:
    if path is None:
        return ClientSettings()
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(FILE_BYTES_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"{OPTION} {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(text) > FILE_BYTES_MAX:
        raise Refusal(f"{OPTION} {path} has more than {FILE_BYTES_MAX} bytes")
    return settings_of(text, path)


def settings_of(text: str, source: str) -> ClientSettings:
    """Pure. Refusal for what would be ignored though it decides who is reached and how."""
    values = _values(text, source)
    protocol = values.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise Refusal(f"{source}: security.protocol={protocol}: there are {', '.join(PROTOCOLS)}")
    certificate = values.get("ssl.certificate.location") or values.get("ssl.keystore.location")
    settings = ClientSettings(
        source=source,
        bootstrap=values.get("bootstrap.servers") or None,
        protocol=protocol,
        ca=values.get("ssl.ca.location") or values.get("ssl.truststore.location") or None,
        certificate=certificate or None,
        key=values.get("ssl.key.location") or None,
        key_password=values.get("ssl.key.password") or None,
        checks_certificate=values.get("enable.ssl.certificate.verification", "true").lower() != "false",
        checks_host=values.get("ssl.endpoint.identification.algorithm", "https").lower() == "https",
    )
    if not settings.by_login:
        return settings
    mechanism, user, password = _login(values, source)
    return settings._replace(mechanism=mechanism, user=user, password=password)


def _values(text: str, source: str) -> Mapping[str, str]:
    """In librdkafka's file a backslash is itself, in Java's it escapes; only Java has jaas.config."""
    lines = [line.strip() for line in text.splitlines()]
    pairs = (line.partition("=") for line in lines if line and line[0] not in "#!")
    values = {name.strip(): value.strip() for name, _, value in pairs}
    if "sasl.jaas.config" in text or any(name in values for name in STORES):
        try:
            values = {each.name: each.value for each in parse_properties(text)}
        except ValueError as error:
            raise Refusal(f"{source}: {error}") from None
    _check_names(values, source)
    return values


def _check_names(values: Mapping[str, str], source: str) -> None:
    if any(name in values for name in OF_A_BROKER):
        raise Refusal(
            f"{source} is the file of a broker; {OPTION} takes that of a client, such as the client.properties or "
            "librdkafka.conf of `ottla fleet up --secure`"
        )
    for name in values.keys() - KNOWN:
        if name.startswith(OURS):
            close = difflib.get_close_matches(name, KNOWN, 1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(KNOWN))}"
            raise Refusal(f"{source}: {name} is not known here; {hint}")
    for location, kind in STORES.items():
        if location in values and values.get(kind, "JKS").upper() != "PEM":
            raise Refusal(f"{source}: {location}: {kind}={values.get(kind, 'JKS')} is not read here; {TO_PEM}")


def _login(values: Mapping[str, str], source: str) -> tuple[str, str, str]:
    mechanism = (values.get("sasl.mechanism") or values.get("sasl.mechanisms") or "").upper()
    if mechanism not in MECHANISMS:
        shown = f"sasl.mechanism={mechanism}" if mechanism else "sasl.mechanism is missing"
        raise Refusal(f"{source}: {shown}: this command logs in by {', '.join(MECHANISMS)}, or by a certificate")
    user, password = values.get("sasl.username", ""), values.get("sasl.password", "")
    if "sasl.jaas.config" in values:
        user, password = _of_jaas(values["sasl.jaas.config"], source)
    if not user or not password:
        raise Refusal(f"{source}: sasl.username and sasl.password (or sasl.jaas.config) are missing")
    return mechanism, user, password


def _of_jaas(text: str, source: str) -> tuple[str, str]:
    try:
        options = parse_login_modules(text)[0].options
    except BadLoginSettings as error:
        raise Refusal(f"{source}: sasl.jaas.config: {error}") from None
    return options.get("username", ""), options.get("password", "")
