"""FindCoordinator: this fleet has no coordinators yet, and says so in the way that makes clients ask again.

It is served because librdkafka compresses with lz4 only where a broker knows this API. v1 key type · v3 flexible ·
v4 several keys at once (KIP-699).
"""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.errors import Code

NOBODY: dict[str, Any] = {
    "node_id": -1,
    "host": "",
    "port": -1,
    "error_code": Code.coordinator_not_available,
    "error_message": "consumer groups and transactions are not served by this broker; use assign() to consume",
}


@api(key=10, versions=(0, 6))
def find_coordinator(request: Any, call: Call) -> Answer:
    if call.version < 4:
        return call.reply(**NOBODY)
    return call.reply(coordinators=[{"key": key, **NOBODY} for key in request.coordinator_keys])
