"""Questions between brokers: whatever goes wrong, whoever asks hears of it."""

import asyncio
from collections.abc import Sequence

import pytest
from ottla.coordination.asking import Asking, Unreachable
from ottla.errors import Code
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.txn.core.messages import MarkerOrder
from ottla.txn.exchange import Exchange


def test_a_fault_that_nobody_thought_of_is_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(orders: Sequence[MarkerOrder]) -> list[Code]:
        raise TypeError("nobody thought of this")

    asking = Asking(node_id=0, feed=MetadataFeed(Image(cluster_id="c")), call=None)
    exchange = Exchange(asking, write_here=broken)
    with pytest.raises(Unreachable, match="nobody thought of this"):
        asyncio.run(exchange.write_markers(0, []))
    assert "a request to broker 0 failed" in caplog.text
