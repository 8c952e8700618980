"""What the log says of a request whose API or version is not served."""

from ottla.api.registry import Api

__all__ = ["not_served"]

CLIENT_CHARACTERS_MAX = 200
CLIENT_AT = 10  # in the header of every version that names a client
PRODUCE, FETCH = 0, 1


def not_served(api: Api | None, version: int, frame: memoryview, client_size: int) -> str:
    """`client_size` is the length of the client id, as the header claims it."""
    client = bytes(frame[CLIENT_AT : CLIENT_AT + min(max(client_size, 0), CLIENT_CHARACTERS_MAX)])
    named = f", sent by client id {client.decode('utf-8', 'replace')!r}," if client else ""
    if api is None:
        return f"an API that is not served{named}"
    served = f"v{api.version_min} to v{api.version_max} are"
    old = api.key in (PRODUCE, FETCH) and version < api.version_min
    return f"a version that is not served ({served}{'; it needs Kafka 0.11 or newer clients' if old else ''}){named}"
