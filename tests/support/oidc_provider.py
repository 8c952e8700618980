"""A real OpenID provider, npm's `oidc-provider`, which is installed into the user's cache when it is first needed."""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from support.kafka_jars import cache_folder
from support.ports import free_port

__all__ = ["CLIENT", "SECRET", "OidcProvider"]

PACKAGE = "oidc-provider@8.8.1"
PROGRAM = Path(__file__).parent / "oidc" / "provider.mjs"
INSTALL_TIMEOUT_S = 300.0
CLIENT, SECRET = "app", "the secret of the app"


def packages() -> Path:
    target = cache_folder().parent / PACKAGE.replace("@", "-")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            made = Path(scratch) / "made"
            made.mkdir()
            (made / "package.json").write_text("{}")
            command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent", PACKAGE]
            subprocess.run(command, cwd=made, check=True, timeout=INSTALL_TIMEOUT_S)
            os.rename(made, target)
    return target


def private_key(key_id: str) -> dict[str, Any]:
    key = rsa.generate_private_key(65537, 2048)
    fields: dict[str, Any] = dict(jwt.get_algorithm_by_name("RS256").to_jwk(key, as_dict=True))
    fields.pop("key_ops", None)
    return {**fields, "kid": key_id, "use": "sig", "alg": "RS256"}


class OidcProvider:
    """`start` with the names of its keys: it signs with the first one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[str] | None = None
        self.issuer = f"http://127.0.0.1:{self._port}"
        self.token_url = f"{self.issuer}/token"
        self.keys_url = f"{self.issuer}/jwks"

    def start(self, key_ids: Sequence[str]) -> None:
        keys = self._folder / "keys.json"
        keys.write_text(json.dumps({"keys": [private_key(each) for each in key_ids]}))
        command = ["node", str(PROGRAM), str(packages()), str(self._port), str(keys)]
        log = open(self._folder / "provider.log", "a")  # noqa: SIM115
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == "listening":
                return
        raise AssertionError((self._folder / "provider.log").read_text())

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None
