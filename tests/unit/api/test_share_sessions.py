"""Sessions of members of share groups: begun, gone on with, ended, lost."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path

import pytest
from ottla.errors import Code, KafkaError
from support.replica_hosts import HostFleet, run, until
from support.share_clients import (
    ACCEPT,
    GROUP,
    ShareMember,
    ShareNode,
    acquired,
    key_of,
    opened,
    parts_of,
    with_node,
)


def test_not_before_it_is_turned_on(tmp_path: Path) -> None:
    async def main(fleet: HostFleet) -> None:
        await fleet.join(1)
        await fleet.create("orders", (1,))
        with pytest.raises(KafkaError) as caught:
            await ShareMember(ShareNode(fleet, 1), "ana").fetch(0)
        assert caught.value.code is Code.unsupported_version

    run(main, tmp_path)


def test_sessions(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        async def refusal(asking: Awaitable[object]) -> Code:
            with pytest.raises(KafkaError) as caught:
                await asking
            return caught.value.code

        ana = ShareMember(node, "ana")
        assert await refusal(ana.fetch(0, epoch=1)) is Code.share_session_not_found
        assert await refusal(ana.fetch(epoch=-1)) is Code.share_session_not_found
        assert await refusal(ana.acknowledge([(0, 0, (ACCEPT,))], epoch=0)) is Code.invalid_share_session_epoch
        assert await refusal(ana.fetch(epoch=0, acknowledge={0: [(0, 0, (1,))]})) is Code.invalid_request
        await ana.fetch(0)
        assert await refusal(ana.fetch(epoch=2)) is Code.invalid_share_session_epoch
        assert await refusal(ana.acknowledge([(0, 0, (ACCEPT,))], epoch=2)) is Code.invalid_share_session_epoch
        await ana.fetch(0)
        node.fleet.configure_broker("", "group.share.max.share.sessions", "1")
        assert await refusal(ShareMember(node, "ben").fetch(0)) is Code.share_session_limit_reached
        await ana.fetch(epoch=-1)
        assert await refusal(ana.fetch()) is Code.share_session_not_found

    with_node(test, tmp_path)


@pytest.mark.parametrize("how", ["last fetch", "last acknowledgement", "connection lost"])
def test_who_leaves_releases(tmp_path: Path, how: str) -> None:
    async def test(node: ShareNode) -> None:
        node.fleet.write(1, 2)
        ben = await opened(node, "ben")
        ana = ShareMember(node, "ana")
        assert acquired(await ana.fetch(0)) == [(0, 5, 1)]
        if how == "connection lost":
            ana.hang_up()
        elif how == "last fetch":
            await ana.fetch(epoch=-1, acknowledge={0: [(0, 0, (ACCEPT,))]})
        else:
            await ana.acknowledge([(0, 0, (ACCEPT,))], epoch=-1)
        left = 0 if how == "connection lost" else 1
        assert acquired(await ben.fetch(wait_ms=1000)) == [(left, 5, 1)], "it counts as not delivered"
        assert len(node.shares.sessions) == 1

    with_node(test, tmp_path)


def test_a_reopened_session_may_acknowledge_what_the_last_one_fetched(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        node.fleet.write(1)
        ana = ShareMember(node, "ana")
        await ana.fetch(0)
        ana.epoch = 0
        await ana.fetch(0)
        assert parts_of(await ana.acknowledge([(0, 2, (ACCEPT,))]))[0].error_code is Code.none

    with_node(test, tmp_path)


def test_what_a_replaced_session_acquired_is_released_with_its_successor(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        node.fleet.write(1)
        ben = await opened(node, "ben")
        ana = ShareMember(node, "ana")
        assert acquired(await ana.fetch(0)) == [(0, 2, 1)]
        ana.epoch = 0
        await ana.fetch(0, wait_ms=0)
        assert acquired(await ben.fetch(wait_ms=0)) == []
        await ana.fetch(epoch=-1)
        assert acquired(await ben.fetch(wait_ms=1000)) == [(0, 2, 1)]

    with_node(test, tmp_path)


def test_with_the_last_session_the_state_is_forgotten(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        node.fleet.write(1, 2)
        ana = ShareMember(node, "ana")
        await ana.fetch(0)
        await ana.fetch(epoch=-1)
        await until(lambda: node.shares.find(GROUP, (ana.topic_id.bytes, 0)) is None)
        await node.persister.initialize(key_of(node), state_epoch=1, start=3)
        ana.epoch = 0
        assert acquired(await ana.fetch(0, wait_ms=500)) == [(3, 5, 1)], "as AlterShareGroupOffsets would have it"

    with_node(test, tmp_path)


@pytest.mark.parametrize("how", ["closed", "opened again"])
def test_a_fetch_of_a_session_that_ended_gets_nothing(tmp_path: Path, how: str) -> None:
    async def test(node: ShareNode) -> None:
        ana = await opened(node, "ana")
        ben = await opened(node, "ben")
        waiting = asyncio.ensure_future(ana.fetch(wait_ms=10_000))
        await asyncio.sleep(0.02)
        await ana.fetch(0, epoch=-1 if how == "closed" else 0, wait_ms=0)
        node.fleet.write(1)
        assert acquired(await waiting) == []
        assert acquired(await ben.fetch()) == [(0, 2, 1)]

    with_node(test, tmp_path)


def test_what_nobody_waits_for_is_not_loaded(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        ana = ShareMember(node, "ana")
        fetching = asyncio.ensure_future(ana.fetch(0, wait_ms=5000))
        await asyncio.sleep(0)
        ana.hang_up()
        assert acquired(await fetching) == []
        assert node.shares.find(GROUP, (ana.topic_id.bytes, 0)) is None

    with_node(test, tmp_path)


@pytest.mark.parametrize("how", ["closed", "closed by another connection", "replaced by another connection"])
def test_a_connection_forgets_a_session_that_ended(tmp_path: Path, how: str) -> None:
    async def test(node: ShareNode) -> None:
        ana, elsewhere = await opened(node, "ana"), ShareMember(node, "ana")
        assert len(ana.on_close) == 1
        if how == "closed":
            await ana.fetch(epoch=-1)
        else:
            await elsewhere.fetch(epoch=-1 if how.startswith("closed") else 0)
        assert not ana.on_close
        ana.hang_up()
        assert len(node.shares.sessions) == len(elsewhere.on_close) == how.startswith("replaced")

    with_node(test, tmp_path)


def test_a_member_id_is_a_uuid(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        ana = ShareMember(node, "ana")
        ana.name = "m" * 100_000
        with pytest.raises(KafkaError) as caught:
            await ana.fetch(0)
        assert caught.value.code is Code.invalid_request and not ana.on_close

    with_node(test, tmp_path)
