"""Quotas as a broker keeps them: what is counted together, for how long one pauses, and how they change."""

import pytest
from ottla.api.allowances import CONNECTION_PAUSE_MS_MAX, Allowance, Allowances
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import QuotaEntity

SETTINGS = {
    "quota.window.num": 11,
    "quota.window.size.seconds": 1,
    "controller.quota.window.num": 11,
    "controller.quota.window.size.seconds": 1,
    "max.connection.creation.rate": 2**31 - 1,
}
APP: QuotaEntity = (("client-id", "app"),)
ANN: QuotaEntity = (("user", "ann"),)


class HandClock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def wall_ms(self) -> int:
        return int(self.now_s * 1000)


class Broker:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.image = Image("test")
        self.settings = dict(SETTINGS)
        self.allowances = Allowances(self.clock, self.settings.__getitem__, self.image)

    def set(self, quotas: dict[QuotaEntity, dict[str, float]]) -> None:
        old, self.image = self.image, Image("test", version=self.image.version + 1, client_quotas=quotas)
        self.allowances.image_moved(old, self.image, Changes(client_quotas=True))

    def of(self, user: str = "ann", client_id: str = "app") -> Allowance:
        found = self.allowances.of(user, client_id)
        assert found is not None
        return found


def test_without_quotas_there_is_nothing_to_look_at() -> None:
    broker = Broker()
    assert not broker.allowances.any_for_clients
    assert broker.allowances.of("ann", "app") is None


def test_a_quota_holds_for_those_it_names() -> None:
    broker = Broker()
    broker.set({APP: {"producer_byte_rate": 100.0}})
    assert broker.allowances.any_for_clients
    assert broker.allowances.of("ann", "other") is None
    allowance = broker.of()
    assert allowance.fetch is None and allowance.request is None and allowance.mutations is None
    assert allowance.produce is not None
    assert allowance.produce.charge(1000) == 0
    assert allowance.produce.charge(500) == 5000


def test_users_of_a_client_id_are_counted_together() -> None:
    broker = Broker()
    broker.set({APP: {"producer_byte_rate": 100.0}})
    ann, bob = broker.of("ann").produce, broker.of("bob").produce
    assert ann is not None and bob is not None
    ann.charge(1000)
    assert bob.charge(500) == 5000


def test_a_default_is_for_each_one_separately() -> None:
    broker = Broker()
    broker.set({(("client-id", None),): {"producer_byte_rate": 100.0}})
    app, other = broker.of(client_id="app").produce, broker.of(client_id="other").produce
    assert app is not None and other is not None
    app.charge(1000)
    assert other.charge(500) == 0


def test_a_changed_limit_finds_what_was_used_before() -> None:
    broker = Broker()
    broker.set({APP: {"producer_byte_rate": 1000.0}})
    before = broker.of().produce
    assert before is not None
    before.charge(1500)
    broker.set({APP: {"producer_byte_rate": 100.0}})
    after = broker.of().produce
    assert after is not None
    assert after.charge(0) == 5000
    broker.set({})
    assert broker.allowances.of("ann", "app") is None


def test_time_on_the_loop_is_never_held_against_anybody_for_longer_than_a_window() -> None:
    broker = Broker()
    broker.set({ANN: {"request_percentage": 1.0}})
    meter = broker.of().request
    assert meter is not None
    assert meter.charge(100.0 * 60) == 1000


def test_a_fetch_that_was_not_answered_does_not_count() -> None:
    broker = Broker()
    broker.set({APP: {"consumer_byte_rate": 100.0}})
    meter = broker.of().fetch
    assert meter is not None
    assert meter.window_bytes == 1000
    assert meter.charge(1500) == 5000
    meter.take_back(1500)
    assert meter.charge(1000) == 0


def test_changes_of_partitions_come_in_bursts() -> None:
    broker = Broker()
    broker.set({ANN: {"controller_mutation_rate": 2.0}})
    mutations = broker.of().mutations
    assert mutations is not None
    mutations.charge(22)
    assert mutations.pause_ms() == 0
    mutations.charge(4)
    assert mutations.pause_ms() == 2000
    broker.clock.now_s += 2
    assert mutations.pause_ms() == 0


def test_connections_queue_up() -> None:
    broker = Broker()
    assert broker.allowances.connection_pause_ms("10.0.0.1", "PLAINTEXT") == 0
    broker.set({(("ip", None),): {"connection_creation_rate": 5.0}})
    assert not broker.allowances.any_for_clients
    pauses = [broker.allowances.connection_pause_ms("10.0.0.1", "PLAINTEXT") for _ in range(53)]
    assert pauses[:50] == [0] * 50
    assert pauses[50:] == [200, 400, 600]
    assert broker.allowances.connection_pause_ms("10.0.0.2", "PLAINTEXT") == 0


def test_the_broker_as_a_whole_takes_only_so_many() -> None:
    broker = Broker()
    broker.settings["max.connection.creation.rate"] = 1
    addresses = [f"10.0.0.{number}" for number in range(12)]
    pauses = [broker.allowances.connection_pause_ms(address, "PLAINTEXT") for address in addresses]
    assert pauses == [0] * 10 + [1000, 2000]


@pytest.mark.parametrize("rate", [1e-320, 1e-7])
def test_whoever_comes_to_remove_a_limit_gets_through(rate: float) -> None:
    """Also one that the metadata log has from before such values were refused."""
    broker = Broker()
    broker.set(
        {(("ip", None),): {"connection_creation_rate": rate}, (("client-id", None),): {"request_percentage": rate}}
    )
    assert broker.allowances.connection_pause_ms("10.0.0.1", "PLAINTEXT") == CONNECTION_PAUSE_MS_MAX
    meter = broker.of().request
    assert meter is not None
    assert meter.charge(0.001) == 1000
