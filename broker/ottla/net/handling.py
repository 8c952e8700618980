"""The requests of one connection, each from its frame to its answer.

Handlers are called in the order of requests. A failure becomes the answer that the API has for it; where it has none,
and for what is not Kafka's protocol, the connection is closed.
"""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

from ottla.api.call import Answer, Call, Deferred
from ottla.api.client import Client
from ottla.api.measuring import measured
from ottla.api.registry import APIS, Api, Result
from ottla.errors import Code, KafkaError
from ottla.net.answers import Answers, Slot
from ottla.net.headers import REQUEST_HEADER, client_of, complaint, skip_tags
from ottla.net.intake import Intake
from ottla.net.not_served import not_served
from ottla.net.quiet import LineLimit
from ottla.net.shared import Shared
from ottla.security.authentication import Authentication, OutOfOrder
from ottla.security.core.authentication import Sent
from ottla.security.core.logins import LoginRefused
from ottla.wire.reader import Malformed, TooMany

__all__ = ["Handling"]

log = logging.getLogger("ottla.net")
log.addFilter(LineLimit())

SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 17, 18, 36
SENT = {API_VERSIONS: Sent.VERSIONS, SASL_HANDSHAKE: Sent.HANDSHAKE, SASL_AUTHENTICATE: Sent.AUTHENTICATE}
CHANGE_SECONDS_MAX = 10.0  # for one whose client is gone
UNREADABLE = (Malformed, IndexError, struct.error, UnicodeDecodeError)


class Receiver(Protocol):
    """The connection on which the requests come."""

    @property
    def may_go_on(self) -> bool:
        """No more requests were taken, and whatever that was for may be over."""

    def resume(self) -> None:
        """Take the requests that wait."""

    def pause(self, pause_ms: int) -> None: ...
    def close(self, reason: str) -> None: ...


class Handling:
    __slots__ = ("_answers", "_authentication", "_connection", "_intake", "_on_close", "_shared", "_transport",
                 "_under_way", "client")  # fmt: skip

    def __init__(
        self,
        shared: Shared,
        transport: asyncio.Transport,
        connection: Receiver,
        *,
        client: Client,
        intake: Intake,
        answers: Answers,
    ) -> None:
        self._shared = shared
        self._transport = transport
        self._connection = connection
        self.client = client
        self._authentication = client.authentication
        self._intake = intake
        self._answers = answers
        self._under_way: dict[asyncio.Future[Any] | Deferred, Call | None] = {}
        self._on_close: dict[object, Callable[[], None]] = {}

    def close(self) -> None:
        """The connection is lost: nobody waits for answers. It refers to this object, and must not be referred to from
        here any longer: a cycle would leave both to the collector."""
        del self._connection
        for each, call in self._under_way.items():
            if isinstance(each, asyncio.Future) and call is not None and call.outcomes is not None:
                _cancel_later(each)
            else:
                each.cancel()
        self._under_way.clear()
        for lost in list(self._on_close.values()):
            lost()
        self._on_close.clear()  # calls refer to it, and it to sessions

    # beginning

    def begin(self, frame: memoryview) -> bool:
        """False when it cannot begin yet: the frame has to come again. Raises Malformed."""
        login = self._authentication
        if login is not None and not login.is_passed and (begun := self._begin_login(login, frame)) is not None:
            return begun
        try:
            key, version, correlation_id, client_size = REQUEST_HEADER.unpack_from(frame, 0)
            api = APIS.get(key)
            if api is None or not api.serves(version):
                self._answers.fill(self._answers.expect(), self._decline(api, frame))
                return True
            if not self._is_its_turn(api, version):
                return False
            call, position = self._call(frame, api, version, correlation_id, client_size)
            # Bytes behind the request are ignored, as in Kafka: librdkafka sends some after Metadata v13.
            request, _ = api.reader(version)(frame, position)
        except TooMany:
            self._begin_large(call, bytes(frame), position)
        except UNREADABLE as error:
            raise Malformed(complaint(frame, error)) from error
        else:
            self._begin_small(request, call)
        return True

    def _begin_login(self, login: Authentication, frame: memoryview) -> bool | None:
        """As `begin`, before the login is through; None for a request that may be begun like any other."""
        self._answers.flush()
        if not self._answers.are_taken:
            return False
        if login.is_raw:
            slot = self._answers.expect()
            self._await(login.step(bytes(frame)), lambda done: self._raw_finished(slot, done))
            return True
        if len(frame) < REQUEST_HEADER.size:
            raise Malformed(complaint(frame, Malformed("too short")))
        key, version, _, _ = REQUEST_HEADER.unpack_from(frame, 0)
        name = APIS[key].name if key in APIS else f"API {key}"
        try:
            login.admit(_sent(key, version), name)
        except OutOfOrder as error:
            raise Malformed(str(error)) from None
        return None

    def _is_its_turn(self, api: Api, version: int) -> bool:
        """Whether the client has taken all its answers, or this request need not wait for that."""
        if not api.is_prepared(version):
            self._prepare(api, version)
            return False
        if api.pipelined or self._answers.are_taken:
            return True
        self._answers.flush()
        return self._answers.are_taken

    def _begin_small(self, request: Any, call: Call) -> None:
        slot = self._answers.expect()
        try:
            result = self._handle(request, call)
        except Exception as error:
            self._deliver(slot, call, self._failed(call, error))
            return
        if isinstance(result, list) or result is None:
            self._deliver(slot, call, result)
        elif isinstance(result, Deferred):
            self._defer(slot, call, result)
        else:
            self._intake.task_begun()
            self._await(result, lambda done: self._finished(slot, call, done), call)

    def _call(
        self, frame: memoryview, api: Api, version: int, correlation_id: int, client_size: int
    ) -> tuple[Call, int]:
        """The call, and where its request begins."""
        client_id, position = client_of(frame, client_size)
        if api.flexible(version):
            position = skip_tags(frame, position)
        shared = self._shared
        call = Call(shared.long_work, api, version, correlation_id, client_id, self.client, self._on_close)
        shared.handled[api.key] += 1
        if shared.allowances.any_for_clients:
            call.allowance = shared.allowances.of(self.client.principal.name, client_id or "")
            call.request_bytes = len(frame)
        return call, position

    def _handle(self, request: Any, call: Call) -> Result:
        handle = self._shared.handlers[call.api.key]
        return handle(request, call) if call.allowance is None else measured(handle, request, call, self._shared.clock)

    def _decline(self, api: Api | None, frame: memoryview) -> Answer:
        _, version, correlation_id, client_size = REQUEST_HEADER.unpack_from(frame, 0)
        if api is not None and api.key == API_VERSIONS:
            call = Call(self._shared.long_work, api, 0, correlation_id, None, self.client)
            return cast(Answer, self._shared.handlers[api.key](None, call))
        raise Malformed(not_served(api, version, frame, client_size))

    # away from the loop: no further request of this connection is begun meanwhile

    def _prepare(self, api: Api, version: int) -> None:
        self._intake.begin_alone()
        self._await(self._shared.large_requests.prepare(api, version), self._prepared)

    def _prepared(self, done: "asyncio.Future[None]") -> None:
        self._under_way.pop(done, None)
        self._intake.end_alone()
        if done.cancelled():
            return
        error = done.exception()
        if self._transport.is_closing():
            return
        if error is not None:
            self._connection.close(f"its request cannot be read: {error!r}")
        else:
            self._connection.resume()

    def _begin_large(self, call: Call, frame: bytes, position: int) -> None:
        slot = self._answers.expect()
        self._intake.begin_alone()
        self._intake.keep_large(len(frame))
        answer = self._shared.large_requests.answer(call, memoryview(frame), position, self._handle)
        self._await(answer, lambda done: self._large_finished(slot, call, len(frame), done), call)

    def _large_finished(self, slot: Slot, call: Call, size: int, done: "asyncio.Future[Answer | Deferred]") -> None:
        self._intake.end_alone()
        self._intake.give_back(size)
        self._finished(slot, call, done)

    # waiting

    def _await(
        self, awaitable: Awaitable[Any], finished: "Callable[[asyncio.Future[Any]], None]", call: Call | None = None
    ) -> None:
        task = asyncio.ensure_future(awaitable)
        self._under_way[task] = call
        task.add_done_callback(finished)

    def _finished(self, slot: Slot, call: Call, done: "asyncio.Future[Answer | Deferred]") -> None:
        self._under_way.pop(done, None)
        call.close()
        if done.cancelled():
            return
        error = done.exception()  # also when nobody waits for it any more: it counts as seen
        result = done.result() if error is None else None
        if self._transport.is_closing():
            if isinstance(result, Deferred):
                result.cancel()
            return
        if isinstance(result, Deferred):
            self._defer(slot, call, result)
        else:
            self._deliver(slot, call, result if error is None else self._failed(call, error))
            self._answers.flush()
        if self._authentication is not None and (reason := self._reason()) is not None:
            self._connection.close(reason)
        elif self._connection.may_go_on:
            self._connection.resume()

    def _raw_finished(self, slot: Slot, done: "asyncio.Future[tuple[bytes, int]]") -> None:
        """After SaslHandshake v0: the answer has a length, and no header."""
        self._under_way.pop(done, None)
        if done.cancelled():
            return
        error = done.exception()
        if self._transport.is_closing():
            return
        if error is not None:
            if not isinstance(error, LoginRefused):
                log.error("the login of %s failed", self.client.host, exc_info=error)
            self._connection.close(self._reason(error) or "login failed")
            return
        challenge, _ = done.result()
        self._answers.fill(slot, [len(challenge).to_bytes(4, "big") + challenge])
        self._answers.flush()
        self._connection.resume()

    def _reason(self, error: BaseException | None = None) -> str | None:
        """That the login failed, whose, and why."""
        login = self._authentication
        told = login.complaint if login is not None else None
        return told or (f"login failed: {error}" if error is not None else None)

    def _defer(self, slot: Slot, call: Call, deferred: Deferred) -> None:
        self._under_way[deferred] = call
        if call.kept_bytes:
            self._intake.keep(call.kept_bytes)
        deferred.start(lambda: self._made(slot, call, deferred))

    def _made(self, slot: Slot, call: Call, deferred: Deferred) -> None:
        """Called from wherever the answer became known: further requests are left to a turn of their own."""
        self._under_way.pop(deferred, None)
        if self._transport.is_closing():
            return
        try:
            answer = deferred.make()
        except Exception as error:
            answer = self._failed(call, error)
        self._intake.give_back(call.kept_bytes)
        self._deliver(slot, call, answer)
        self._answers.flush()
        if self._connection.may_go_on:
            asyncio.get_running_loop().call_soon(self._connection.resume)

    # done

    def _deliver(self, slot: Slot, call: Call, answer: Answer) -> None:
        """Every answer comes by here, and throttles its connection if the client is over a quota."""
        self._answers.fill(slot, answer)
        if call.throttle_ms:
            self._connection.pause(call.throttle_ms)

    def _failed(self, call: Call, error: BaseException) -> Answer:
        if call.is_large and isinstance(error, UNREADABLE):
            self._connection.close(f"bad request: {error} in {call.api.name} v{call.version}")
            return None
        if isinstance(error, Malformed):
            self._connection.close(str(error))
            return None
        if isinstance(error, TooMany):
            error = KafkaError(Code.invalid_request, f"The request has {error}; split it")
        if not isinstance(error, KafkaError):
            log.error("%s v%d from %s failed", call.api.name, call.version, self.client.host, exc_info=error)
            error = KafkaError(Code.unknown_server_error, "see the broker's log")
        try:
            answer = call.failure(error)
        except Exception as unsaid:  # nobody else would close the connection, and the client waits
            log.error("%s v%d cannot say that it failed", call.api.name, call.version, exc_info=unsaid)
            answer = None
        if answer is None:
            self._connection.close(f"{call.api.name} failed and its answer has no place to say so: {error}")
        return answer


def _sent(key: int, version: int) -> Sent:
    return Sent.HANDSHAKE_0 if key == SASL_HANDSHAKE and version == 0 else SENT.get(key, Sent.OTHER)


def _cancel_later(change: "asyncio.Future[Any]") -> None:
    """Whoever sends and hangs up is written down, with what became of it, unless that takes very long."""
    timer = asyncio.get_running_loop().call_later(CHANGE_SECONDS_MAX, change.cancel)
    change.add_done_callback(lambda _: timer.cancel())
