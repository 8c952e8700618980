"""Commands to a controller that takes them and does not answer."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import CreateTopics
from ottla.metadata.model.image import Image
from ottla.rpc import forwarding
from ottla.rpc.channels import Channels
from ottla.rpc.forwarding import Forwarding
from ottla.system import System


class Loses:
    """Controllers that lose the lead over every command, locally or elsewhere."""

    def __init__(self, *, is_active: bool) -> None:
        self.is_active = is_active
        self.leader_id = 1
        self.taken = 0

    async def submit(self, command: Any) -> Any:
        self.taken += 1
        raise KafkaError(Code.not_controller, "lost the lead")

    def address_of(self, node: int) -> str:
        """Asked when a command goes there; from then on another one leads."""
        self.taken += 1
        self.leader_id = node + 1
        return "127.0.0.1:1"


@pytest.mark.parametrize("is_active", [True, False], ids=["here", "elsewhere"])
def test_a_command_is_not_sent_to_one_controller_after_the_other(
    monkeypatch: pytest.MonkeyPatch, is_active: bool
) -> None:
    async def never(*_: Any, **__: Any) -> None:
        await asyncio.get_running_loop().create_future()

    async def scene() -> Loses:
        loses: Any = Loses(is_active=is_active)
        none: Any = SimpleNamespace()
        way = Forwarding(
            local=loses,
            watch=none,
            voters=none,
            driver=loses,
            feed=SimpleNamespace(image=Image("c")),
            channels=Channels(),
            address_of=loses.address_of,
            clock=System().clock,
        )
        with pytest.raises(KafkaError) as refused:
            async with asyncio.timeout(10):
                await way.submit(CreateTopics([]))
        assert refused.value.code is Code.request_timed_out
        return loses

    monkeypatch.setattr(forwarding, "ControlStub", lambda channel: SimpleNamespace(Submit=never))
    assert asyncio.run(scene()).taken == forwarding.SILENCES_MAX
