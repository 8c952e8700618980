"""Reads a server.properties file and the environment."""

import contextlib
import os
import socket
from collections.abc import Mapping

from ottla.config.broker import BrokerConfig, configure
from ottla.config.endpoints import PROTOCOLS, BadEndpoint, parse_protocol_map
from ottla.config.listeners import refuse_lost_security
from ottla.config.properties import parse_properties
from ottla.config.providers import provided
from ottla.errors import Refusal

__all__ = ["load"]

PROTOCOLS_OF = "listener.security.protocol.map"


def load(
    path: str | None, overrides: Mapping[str, str], data_dir: str | None, *, port: int | None = None
) -> BrokerConfig:
    """From a file, `--set` pairs, `--data-dir` and `--port`; the later win. Raises Refusal."""
    given: dict[str, str] = {}
    sources: dict[str, str] = {}
    if path is not None:
        for name, value, line in _read(path):
            given[name], sources[name] = value, f"{path}, line {line}"
    for name, value in overrides.items():
        given[name], sources[name] = value, "--set"
    if data_dir is not None:
        given["log.dirs"], sources["log.dirs"] = data_dir, "--data-dir"
    given = provided(given, sources, os.environ)
    if port is not None:
        if "listeners" in given:
            refuse_lost_security(given["listeners"], _protocols(given.get(PROTOCOLS_OF)), sources["listeners"])
        given["listeners"], sources["listeners"] = f"PLAINTEXT://127.0.0.1:{port}", "--port"
    return configure(given, sources, hostname=socket.gethostname())


def _protocols(text: str | None) -> dict[str, str]:
    """A map that cannot be read is reported later."""
    with contextlib.suppress(BadEndpoint):
        return dict(zip(PROTOCOLS, PROTOCOLS, strict=True)) | parse_protocol_map(text or "")
    return {}


def _read(path: str) -> list[tuple[str, str, int]]:
    try:
        with open(path, "rb") as file:
            data = file.read()
        return [*parse_properties(_decode(data))]
    except OSError as error:
        raise Refusal(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise Refusal(f"{path}, {error}") from None


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:  # Java writes these files in Latin-1
        return data.decode("latin-1")
