"""AddRaftVoter and RemoveRaftVoter at a broker alone: kio's requests in, kio reads the answers."""

import asyncio
import datetime
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from kio.index import load_response_schema
from kio.schema.add_raft_voter.v0.request import AddRaftVoterRequest, Listener
from kio.schema.remove_raft_voter.v0.request import RemoveRaftVoterRequest
from kio.static.primitive import i32Timedelta
from ottla.errors import Code
from ottla.raft.voter_changes import VoterChanges
from support.calls import call_of, handle, read
from support.raft_quorum import Quorum, directory

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
SOON = i32Timedelta.parse(datetime.timedelta(milliseconds=100))
CONTROLLER = Listener(name="CONTROLLER", host="localhost", port=9093)  # type: ignore[arg-type]
ALONE = 0
OWN = directory(ALONE)
Outcome = tuple[Code, str | None]


def addition(node: int = ALONE, place: uuid.UUID | None = OWN, **fields: Any) -> AddRaftVoterRequest:
    given = {"cluster_id": None, "timeout": SOON, "listeners": (CONTROLLER,), **fields}
    return AddRaftVoterRequest(voter_id=node, voter_directory_id=place, **given)  # type: ignore[arg-type]


def removal(node: int = ALONE, place: uuid.UUID | None = OWN, **fields: Any) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(**{"cluster_id": None, "voter_id": node, "voter_directory_id": place, **fields})


async def answer(request: Any, voters: VoterChanges) -> Outcome:
    response = await handle(read(request), call_of(request.__api_key__, 0), quorum=voters, cluster_id=CLUSTER)
    return response.error_code, response.error_message

    return load_response_schema(request.__api_key__, 0)


@pytest.fixture
def ask(tmp_path: Path) -> Callable[[Any], Outcome]:
    async def scenario(request: Any) -> Outcome:
        quorum = Quorum(tmp_path, [ALONE])
        await quorum.start(ALONE)
        driver = await quorum.leader()
        outcome = await answer(request, VoterChanges(driver, address_of=None, clock=quorum.system.clock))
        assert [voter.id for voter in driver.raft.log.voters] == [ALONE]
        await quorum.stop(ALONE)
        return outcome

    return lambda request: asyncio.run(_limited(scenario(request)))


async def _limited(scenario: Awaitable[Outcome]) -> Outcome:
    return await asyncio.wait_for(scenario, 10)


@pytest.mark.parametrize("place", [OWN, directory(7)])
def test_it_votes_already(ask: Callable[[Any], Outcome], place: uuid.UUID) -> None:
    assert ask(addition(place=place, cluster_id=CLUSTER))[0] is Code.duplicate_voter


def test_nobody_can_follow_it(ask: Callable[[Any], Outcome]) -> None:
    code, message = ask(addition(1))
    assert code is Code.unsupported_version and message is not None and "ottla.grpc.port" in message


def test_the_last_voter_stays(ask: Callable[[Any], Outcome]) -> None:
    assert ask(removal()) == (Code.voter_not_found, "Node 0 is the only voter; add another one first.")


@pytest.mark.parametrize("request_", [removal(1), removal(place=directory(7))])
def test_who_does_not_vote_is_not_found(ask: Callable[[Any], Outcome], request_: Any) -> None:
    assert ask(request_)[0] is Code.voter_not_found


@pytest.mark.parametrize("make", [addition, removal])
def test_nonsense(ask: Callable[[Any], Outcome], make: Callable[..., Any]) -> None:
    assert ask(make(cluster_id="another")) == (
        Code.inconsistent_cluster_id,
        f"The request is for cluster another; this one is {CLUSTER}.",
    )
    assert ask(make(-1)) == (Code.invalid_request, "-1 is not the id of a node.")
    assert ask(make(place=None))[0] is Code.invalid_request


@pytest.mark.parametrize(
    "listeners", [(), (Listener(name="CONTROLLER", host="", port=1),), (Listener(name="C", host="h", port=0),)]
)
def test_listeners_that_make_no_sense(ask: Callable[[Any], Outcome], listeners: Any) -> None:
    assert ask(addition(1, listeners=listeners))[0] is Code.invalid_request
