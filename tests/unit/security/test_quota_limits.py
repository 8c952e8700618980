"""Which quota holds: Kafka's eight levels, one by one taken away."""

from ottla.metadata.model.state import QuotaEntity
from ottla.security.core.quota_limits import Limit, client_limit, connection_limit

KEY = "producer_byte_rate"
BY_PRECEDENCE: list[tuple[QuotaEntity, tuple[str, str]]] = [
    ((("client-id", "app"), ("user", "ann")), ("ann", "app")),
    ((("client-id", None), ("user", "ann")), ("ann", "app")),
    ((("user", "ann"),), ("ann", "")),
    ((("client-id", "app"), ("user", None)), ("ann", "app")),
    ((("client-id", None), ("user", None)), ("ann", "app")),
    ((("user", None),), ("ann", "")),
    ((("client-id", "app"),), ("", "app")),
    ((("client-id", None),), ("", "app")),
]


def test_the_closest_quota_holds() -> None:
    quotas = {entity: {KEY: float(level)} for level, (entity, _) in enumerate(BY_PRECEDENCE)}
    for level, (entity, measured) in enumerate(BY_PRECEDENCE):
        assert client_limit(quotas, KEY, user="ann", client_id="app") == Limit(float(level), measured)
        del quotas[entity]
    assert client_limit(quotas, KEY, user="ann", client_id="app") is None


def test_a_closer_entity_without_this_key_does_not_count() -> None:
    quotas: dict[QuotaEntity, dict[str, float]] = {
        (("user", "ann"),): {"consumer_byte_rate": 1.0},
        (("client-id", "app"),): {KEY: 2.0},
    }
    assert client_limit(quotas, KEY, user="ann", client_id="app") == Limit(2.0, ("", "app"))


def test_others_have_no_quota() -> None:
    quotas: dict[QuotaEntity, dict[str, float]] = {(("client-id", "app"),): {KEY: 2.0}}
    assert client_limit(quotas, KEY, user="ann", client_id="other") is None


def test_addresses_come_before_their_default() -> None:
    key = "connection_creation_rate"
    quotas: dict[QuotaEntity, dict[str, float]] = {(("ip", "10.0.0.1"),): {key: 5.0}, (("ip", None),): {key: 9.0}}
    assert connection_limit(quotas, "10.0.0.1") == 5
    assert connection_limit(quotas, "10.0.0.2") == 9
    assert connection_limit({}, "10.0.0.1") is None
