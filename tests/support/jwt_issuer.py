"""Whoever signs tokens: a key whose public half is in a file, as a listener's settings name it."""

import json
import time
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

__all__ = ["HOUR_S", "JwtIssuer"]

HOUR_S = 3600
ISSUER, AUDIENCE, KEY_ID = "https://provider", "fleet", "one"


class JwtIssuer:
    def __init__(self, folder: Path) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        public = jwt.get_algorithm_by_name("ES256").to_jwk(self._key.public_key(), as_dict=True)
        published = folder / "keys.json"
        published.write_text(json.dumps({"keys": [{**public, "kid": KEY_ID, "use": "sig"}]}))
        self.settings = {
            "sasl.oauthbearer.jwks.endpoint.url": published.as_uri(),
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
        }

    def token(self, *, by: Any = None, algorithm: str = "ES256", key_id: str = KEY_ID, **changes: Any) -> str:
        """A good one, but for what is changed; `by`: signed with another key."""
        now_s = int(time.time())
        claims = {"sub": "bob", "iss": ISSUER, "aud": AUDIENCE, "iat": now_s, "exp": now_s + 10 * HOUR_S, **changes}
        key = self._key if by is None else by
        return jwt.encode(claims, key, algorithm=algorithm, headers={"kid": key_id})
