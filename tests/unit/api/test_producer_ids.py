"""Producer ids of a broker that is not registered for a moment."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ottla.api.producer_ids import ProducerIds
from ottla.errors import Code, KafkaError


def test_an_unregistered_broker_tells_producers_to_come_again() -> None:
    feed = SimpleNamespace(image=SimpleNamespace(brokers={}))
    controller = SimpleNamespace(submit=None)  # is not asked
    ids = ProducerIds(cast(Any, controller), cast(Any, feed), 1)
    with pytest.raises(KafkaError) as raised:
        asyncio.run(ids.next())
    assert raised.value.code is Code.coordinator_load_in_progress
