"""One client connection: frames in, handlers called in order, answers out in order, pressure passed on both ways.

Requests are handled in the order they arrive. An answer that is ready waits for those before it. A request whose answer
may be large is begun when the client has taken all answers before it; reading stops meanwhile, as it does while too
many requests are under way or their bytes have to wait for memory.
"""

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, cast

from ottla.api.call import Answer, Call, Deferred, Services
from ottla.api.measuring import measured
from ottla.api.registry import APIS, Api
from ottla.api.slices import Turn
from ottla.errors import Code, KafkaError
from ottla.net.admission import Admission
from ottla.net.memory import AnswerMemory, RequestMemory
from ottla.net.not_served import not_served
from ottla.net.outbox import Outbox
from ottla.net.quiet import LineLimit
from ottla.net.turns import Turns
from ottla.wire.frames import FrameBuffer, FrameLimits, ReceiveBuffers
from ottla.wire.reader import Malformed, TooMany, read_uvarint

__all__ = ["Connection", "Shared"]

log = logging.getLogger("ottla.net")
log.addFilter(LineLimit())

REQUEST_HEADER = struct.Struct(">hhih")
PRODUCE = 0
API_VERSIONS = 18
API_KEYS_MAX = 128
WAITING = object()
PENDING_ANSWERS_MAX = 100
HELD_BYTES_MAX = 1024 * 1024  # of answers that are ready and wait for those before them
KEPT_BYTES_MAX = 4 * 1024 * 1024  # of requests that handlers keep until they are answered
RESERVED_BYTES_MIN = 16 * 1024  # a smaller frame that is under way is not worth counting
HEADER_TAGS_MAX = 64
CLIENT_ID_CHARACTERS_MAX = 1_000  # of what is kept and logged; a header may have 32,767
HANDLING_SECONDS_MAX = 0.005  # of one connection in a turn of the loop
TASKS_MAX = 4  # begun in a turn of the loop: they run in the next, all of them


@dataclass(frozen=True, slots=True)
class Shared:
    """What the connections of a node have in common."""

    services: Services
    admission: Admission
    requests: RequestMemory
    answers: AnswerMemory
    buffers: ReceiveBuffers = field(default_factory=ReceiveBuffers)
    turns: Turns = field(default_factory=Turns)
    codecs: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the one that waits for codecs to be made."""
    handled: list[int] = field(default_factory=lambda: [0] * API_KEYS_MAX)
    """Requests that were begun, by the keys of their APIs."""


class Slot:
    """The place of one answer in the order of answers."""

    __slots__ = ("answer", "kept_bytes")

    def __init__(self) -> None:
        self.answer: Any = WAITING
        self.kept_bytes = 0  # of the request, by its handler


class Connection(asyncio.BufferedProtocol):
    def __init__(
        self,
        shared: Shared,
        listener: str,
        *,
        frame_bytes_max: int,
        limits: FrameLimits | None = None,
        open_connections: "set[Connection]",
    ) -> None:
        self._services = shared.services
        self._listener = listener
        self._frames = FrameBuffer(frame_bytes_max=frame_bytes_max, buffers=shared.buffers, limits=limits)
        self._open_connections = open_connections
        self._shared = shared
        self._slots: deque[Slot] = deque()
        self._tasks: set[asyncio.Future[Any] | Deferred] = set()
        self._held_bytes = 0  # of answers that are ready and wait for those before them
        self._kept_bytes = 0  # of requests, by handlers that are not done
        self._reserved_bytes = 0  # for the frame that is under way
        self._starved = False  # the frame under way waits for memory
        self._postponed = False  # the next request waits until all answers are taken
        self._giving_way = False  # others are served before the next request
        self._working_off = False  # a large request, or the codecs of the next one: none overtakes it
        self._reading = True
        self._host = "?"
        self._user = "ANONYMOUS"
        self._allowances = self._services.allowances
        self._tasks_left = TASKS_MAX
        self._muted: asyncio.TimerHandle | None = None  # until a quota allows the next request
        self._farewells: dict[object, Callable[[], None]] = {}
        self.idle_since = 0.0
        self.received_bytes = 0

    # transport → connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._outbox = Outbox(
            self._transport,
            threads=self._services.system.threads,
            memory=self._shared.answers,
            turns=self._shared.turns,
            drained=self._handle_frames,
            failed=self._abort,
        )
        peer = self._transport.get_extra_info("peername")
        self._host = peer[0] if peer else "?"
        self._open_connections.add(self)
        self.idle_since = self._services.system.clock.monotonic()
        if reason := self._shared.admission.enter(self._host):
            self.close(reason)
        elif pause_ms := self._allowances.connection_pause_ms(self._host):
            self._mute(pause_ms)

    def connection_lost(self, error: Exception | None) -> None:
        self._open_connections.discard(self)
        self._shared.admission.leave(self._host)
        if error is not None:
            log.info("connection from %s on %s lost: %s", self._host, self._listener, error)
        if self._muted is not None:
            self._muted.cancel()
        self._outbox.close()
        self._frames.close()
        self._give_memory_back()
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        self._slots.clear()
        for farewell in self._farewells.values():
            farewell()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.free_space()

    def buffer_updated(self, count: int) -> None:
        self.received_bytes += count
        self._frames.received(count)
        self._handle_frames()

    def eof_received(self) -> bool:
        if self._frames.unread_bytes and not self._slots:
            log.info("%s closed in the middle of a request (%d bytes of it)", self._host, self._frames.unread_bytes)
        return False

    def pause_writing(self) -> None:
        self._outbox.paused()
        self._set_reading()

    def resume_writing(self) -> None:
        self._outbox.resumed()

    # requests

    def _handle_frames(self) -> None:
        """Handle what has arrived, as long as the client also takes its answers."""
        self._postponed = self._giving_way = False
        frames = self._frames
        until, self._tasks_left = perf_counter() + HANDLING_SECONDS_MAX, TASKS_MAX
        try:
            while self._accepting and (frame := frames.next_frame()) is not None:
                if not self._may_begin(frame):
                    frames.put_back(frame)
                    self._postponed = True
                    break
                self._handle(frame)
                if not self._tasks_left or perf_counter() >= until:
                    self._give_way()
        except Malformed as error:
            self.close(f"bad request: {error}")
            return
        frames.settle()
        self._reserve()
        self._flush()
        self._set_reading()

    def _give_way(self) -> None:
        """One that sends faster than its requests can be handled does not keep the loop from others."""
        if self._frames.unread_bytes:
            self._giving_way = True
            asyncio.get_running_loop().call_soon(self._handle_frames)

    @property
    def _accepting(self) -> bool:
        return (
            self._muted is None
            and not self._postponed
            and not self._starved
            and not self._working_off
            and not self._giving_way
            and self._outbox.is_writable
            and self._held_bytes < HELD_BYTES_MAX
            and self._kept_bytes < KEPT_BYTES_MAX
            and len(self._slots) < PENDING_ANSWERS_MAX
            and not self._transport.is_closing()
        )

    def _may_begin(self, frame: memoryview) -> bool:
        """Whether the client has taken all its answers, or this request need not wait for that."""
        api = APIS.get(int.from_bytes(frame[:2], "big"))
        version = int.from_bytes(frame[2:4], "big")
        if api is None or not api.serves(version):
            return True
        if not api.is_prepared(version):
            self._prepare(api, version)
            return False
        if api.pipelined or (not self._slots and self._outbox.is_empty):
            return True
        self._flush()
        return not self._slots and self._outbox.is_empty

    def _prepare(self, api: Api, version: int) -> None:
        """The first request of its kind waits for the codecs, not everybody for it."""
        self._working_off = True
        task = asyncio.ensure_future(self._prepare_in_turn(api, version))
        self._tasks.add(task)
        task.add_done_callback(self._prepared)

    async def _prepare_in_turn(self, api: Api, version: int) -> None:
        async with self._shared.codecs:
            if not api.is_prepared(version):
                await self._services.system.threads.run(api.prepare, version)

    def _prepared(self, done: "asyncio.Future[None]") -> None:
        self._tasks.discard(done)
        self._working_off = False
        if done.cancelled():
            return
        error = done.exception()
        if self._transport.is_closing():
            return
        if error is not None:
            self.close(f"its request cannot be read: {error!r}")
        else:
            self._handle_frames()

    def _reserve(self) -> None:
        """Memory for the frame that is under way, before more of it is read; what is whole is handled soon."""
        wanted = self._frames.begun_bytes
        if wanted and wanted <= self._frames.unread_bytes:
            return
        if wanted <= RESERVED_BYTES_MIN:
            wanted = 0
        if wanted == self._reserved_bytes or self._starved:
            return
        requests = self._shared.requests
        if self._reserved_bytes:
            requests.release(self._reserved_bytes, self)
            self._reserved_bytes = 0
        if wanted:
            self._starved = not requests.reserve(wanted, self, lambda: self._memory_came(wanted))
            self._reserved_bytes = 0 if self._starved else wanted

    def _memory_came(self, size: int) -> None:
        self._starved = False
        self._reserved_bytes = size
        asyncio.get_running_loop().call_soon(self._handle_frames)

    def _give_memory_back(self) -> None:
        requests = self._shared.requests
        requests.forget(self)
        requests.release(self._reserved_bytes + self._kept_bytes, self)
        self._reserved_bytes = self._kept_bytes = 0

    def _set_reading(self) -> None:
        if self._transport.is_closing() or self._reading == self._accepting:
            return
        self._reading = not self._reading
        if self._reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _mute(self, pause_ms: int) -> None:
        """Read nothing for so long; what came already waits. The longest of several pauses holds."""
        if self._transport.is_closing():
            return
        loop = asyncio.get_running_loop()
        until = loop.time() + pause_ms / 1000
        if self._muted is not None:
            if self._muted.when() >= until:
                return
            self._muted.cancel()
        self._muted = loop.call_at(until, self._unmute)
        self._set_reading()

    def _unmute(self) -> None:
        self._muted = None
        if not self._transport.is_closing():
            self._handle_frames()

    def _handle(self, frame: memoryview) -> None:
        slot = Slot()
        try:
            key, version, correlation_id, client_size = REQUEST_HEADER.unpack_from(frame, 0)
            api = APIS.get(key)
            if api is None or not api.serves(version):
                self._slots.append(slot)
                self._fill(slot, self._decline(frame))
                return
            call, position = self._call(frame, api, version, correlation_id, client_size)
            # Bytes behind the request are ignored, as in Kafka: librdkafka sends some after Metadata v13.
            request, _ = api.reader(version)(frame, position)
        except TooMany:
            self._slots.append(slot)
            self._work_off(slot, call, bytes(frame), position)
            return
        except (Malformed, IndexError, struct.error, UnicodeDecodeError) as error:
            short = f"a request of {len(frame)} bytes, its header alone has {REQUEST_HEADER.size}"
            raise Malformed(short if len(frame) < REQUEST_HEADER.size else f"{error} in {describe(frame)}") from error
        self._slots.append(slot)
        try:
            result = self._begin(request, call)
        except Exception as error:
            self._fill(slot, self._failed(call, error))
            return
        if isinstance(result, list) or result is None:
            self._fill(slot, result)
            if call.throttle_ms:
                self._mute(call.throttle_ms)
        elif isinstance(result, Deferred):
            self._defer(slot, call, result)
        else:
            self._await(slot, call, result)

    def _call(
        self, frame: memoryview, api: Api, version: int, correlation_id: int, client_size: int
    ) -> tuple[Call, int]:
        """The call, and where its request begins."""
        position = 10 + max(client_size, 0)
        client_id = str(frame[10:position], "utf-8") if client_size >= 0 else None
        if client_id is not None and client_size > CLIENT_ID_CHARACTERS_MAX:
            client_id = client_id[:CLIENT_ID_CHARACTERS_MAX]
        if api.flexible(version):
            position = skip_tags(frame, position)
        call = Call(
            self._services, api, version, correlation_id, client_id, self._listener, self._host, self._farewells
        )
        self._shared.handled[api.key] += 1
        if self._allowances.any_for_clients:
            call.allowance = self._allowances.of(self._user, client_id or "")
            call.request_bytes = len(frame)
        return call, position

    @staticmethod
    def _begin(request: Any, call: Call) -> Answer | Awaitable[Answer | Deferred] | Deferred:
        return measured(request, call) if call.allowance is not None else call.api.handler(request, call)

    def _decline(self, frame: memoryview) -> Answer:
        key, version, correlation_id, client_size = REQUEST_HEADER.unpack_from(frame, 0)
        api = APIS.get(key)
        if key == API_VERSIONS and api is not None:
            call = Call(self._services, api, 0, correlation_id, None, self._listener, self._host)
            return cast(Answer, api.handler(None, call))
        raise Malformed(not_served(api, version, frame, client_size))

    # large requests: one at a time on all connections, decoded in a thread, worked off in slices

    def _work_off(self, slot: Slot, call: Call, frame: bytes, position: int) -> None:
        """No further request of this connection is begun before the handler is through with this one."""
        self._working_off = True
        slot.kept_bytes = len(frame)
        self._kept_bytes += slot.kept_bytes
        self._shared.requests.keep_large(slot.kept_bytes)
        task = asyncio.ensure_future(self._begin_large(call, memoryview(frame), position))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._worked_off(slot, call, done))

    async def _begin_large(self, call: Call, frame: memoryview, position: int) -> Answer | Deferred:
        services = self._services
        call.is_large = True
        call.turn = Turn(self._lock_for(call.api))
        async with call.turn:
            await self._shared.answers.until_plenty()
            elements_max = services.config["ottla.request.elements.max"]
            read = call.api.large_reader(call.version, elements_max=elements_max)
            request, _ = await services.system.threads.run(read, frame, position)
            result = self._begin(request, call)
            return result if isinstance(result, list | Deferred | None) else await result

    def _lock_for(self, api: Api) -> asyncio.Lock:
        if api.key == PRODUCE:
            return self._services.long_appends
        return self._services.long_work if api.works_in_slices else self._services.long_commands

    def _worked_off(self, slot: Slot, call: Call, done: "asyncio.Future[Answer | Deferred]") -> None:
        self._working_off = False
        self._give_back_kept(slot)
        self._finished(slot, call, done)

    def _defer(self, slot: Slot, call: Call, deferred: Deferred) -> None:
        self._tasks.add(deferred)
        if call.kept_bytes:
            slot.kept_bytes = call.kept_bytes
            self._kept_bytes += call.kept_bytes
            self._shared.requests.keep(call.kept_bytes)
        deferred.deliver_to(lambda: self._made(slot, call, deferred))

    def _made(self, slot: Slot, call: Call, deferred: Deferred) -> None:
        """Called from wherever the answer became known: further requests are left to a turn of their own."""
        self._tasks.discard(deferred)
        if self._transport.is_closing():
            return
        try:
            answer = deferred.make()
        except Exception as error:
            answer = self._failed(call, error)
        self._give_back_kept(slot)
        self._fill(slot, answer)
        if call.throttle_ms:
            self._mute(call.throttle_ms)
        self._flush()
        if self._may_go_on:
            asyncio.get_running_loop().call_soon(self._handle_frames)

    def _give_back_kept(self, slot: Slot) -> None:
        """Not after the connection was lost: then all was given back at once."""
        if slot.kept_bytes and self._kept_bytes:
            self._kept_bytes -= slot.kept_bytes
            self._shared.requests.release(slot.kept_bytes)
        slot.kept_bytes = 0

    @property
    def _may_go_on(self) -> bool:
        """Reading had stopped, and whatever it stopped for may be over."""
        if self._postponed:
            return not self._slots and self._outbox.is_empty
        return not self._reading and self._accepting

    def _await(self, slot: Slot, call: Call, result: Awaitable[Answer | Deferred]) -> None:
        self._tasks_left -= 1
        task = asyncio.ensure_future(result)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._finished(slot, call, done))

    def _finished(self, slot: Slot, call: Call, done: "asyncio.Future[Answer | Deferred]") -> None:
        self._tasks.discard(done)
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
            self._fill(slot, result if error is None else self._failed(call, error))
            self._flush()
            if call.throttle_ms:
                self._mute(call.throttle_ms)
        if self._may_go_on:
            self._handle_frames()

    def _failed(self, call: Call, error: BaseException) -> Answer:
        if isinstance(error, Malformed | IndexError | struct.error | UnicodeDecodeError) and call.is_large:
            self.close(f"bad request: {error} in {call.api.name} v{call.version}")
            return None
        if isinstance(error, Malformed):
            self.close(str(error))
            return None
        if isinstance(error, TooMany):
            error = KafkaError(Code.invalid_request, f"The request has {error}; split it")
        if not isinstance(error, KafkaError):
            log.error("%s v%d from %s failed", call.api.name, call.version, self._host, exc_info=error)
            error = KafkaError(Code.unknown_server_error, "see the broker's log")
        answer = call.failure(error)
        if answer is None:
            self.close(f"{call.api.name} failed and its answer has no place to say so: {error}")
        return answer

    # answers

    def _fill(self, slot: Slot, answer: Answer) -> None:
        """Small answers are sent together when all frames at hand are handled, large ones at once."""
        slot.answer = answer
        if answer is not None:
            self._held_bytes += sum(map(len, answer))
            if self._held_bytes >= HELD_BYTES_MAX:
                self._flush()

    def _flush(self) -> None:
        """Send every answer that has none before it waiting."""
        slots = self._slots
        if not slots or slots[0].answer is WAITING or self._transport.is_closing():
            return
        parts: list[Any] = []
        while slots and (answer := slots[0].answer) is not WAITING:
            slots.popleft()
            if answer:
                parts += answer
        if parts:
            self._held_bytes -= sum(map(len, parts))
            self._outbox.send(parts)
        self.idle_since = self._services.system.clock.monotonic()

    def close(self, reason: str, *, quiet: bool = False) -> None:
        if not self._transport.is_closing():
            level = logging.DEBUG if quiet else logging.WARNING
            log.log(level, "connection from %s on %s closed: %s", self._host, self._listener, reason)
            self._flush()
            if self._outbox.is_empty:
                self._transport.close()
            else:  # the client takes nothing, so that an orderly end would wait for ever
                self._transport.abort()

    def _abort(self, reason: str) -> None:
        if not self._transport.is_closing():
            log.warning("connection from %s on %s closed: %s", self._host, self._listener, reason)
            self._transport.abort()

    def close_if_idle_since(self, deadline: float) -> None:
        if self.idle_since < deadline and not self._slots:
            self.close("idle for connections.max.idle.ms", quiet=True)


def skip_tags(frame: memoryview, position: int) -> int:
    count, position = read_uvarint(frame, position)
    if count > HEADER_TAGS_MAX:
        raise Malformed(f"{count} tagged fields in the header, at most {HEADER_TAGS_MAX} are read")
    for _ in range(count):
        _, position = read_uvarint(frame, position)
        size, position = read_uvarint(frame, position)
        position += size
    return position


def describe(frame: memoryview) -> str:
    if len(frame) < 4:
        return f"a frame of {len(frame)} bytes"
    key, version = struct.unpack_from(">hh", frame, 0)
    name = APIS[key].name if key in APIS else f"API {key}"
    return f"{name} v{version}, {len(frame)} bytes"
