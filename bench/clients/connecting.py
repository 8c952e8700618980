"""How a client reaches its broker: the address, and librdkafka's settings that BENCH_CLIENT_SETTINGS adds in JSON."""

import json
import os

SETTINGS = "BENCH_CLIENT_SETTINGS"


def connection(bootstrap: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(os.environ.get(SETTINGS, "{}"))
    return {"bootstrap.servers": bootstrap, **found}
