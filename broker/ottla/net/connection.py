"""One client connection: frames in, answers out in order, pressure passed on both ways.

Requests are handled in the order they arrive (`handling`); an answer that is ready waits for those before it
(`answers`). A request whose answer may be large is begun when the client has taken all answers before it; reading stops
meanwhile, as it does while too many requests are under way or their bytes have to wait for memory (`intake`).
"""

import asyncio
import logging
from typing import cast

from ottla.api.client import Client
from ottla.net.answers import Answers
from ottla.net.handling import Handling
from ottla.net.intake import Intake
from ottla.net.listener_security import PLAIN_LISTENER, ListenerSecurity
from ottla.net.outbox import Outbox
from ottla.net.shared import Shared
from ottla.net.strangers import login_limits
from ottla.security.authentication import Authentication
from ottla.security.core.certificate_names import BadCertificate
from ottla.security.core.logins import Login
from ottla.security.core.principal_rules import NoRuleApplies
from ottla.wire.frames import FrameBuffer, FrameLimits
from ottla.wire.reader import Malformed

__all__ = ["Connection"]

log = logging.getLogger("ottla.net")


class Connection(asyncio.BufferedProtocol):
    """`open_connections` has it from its beginning to its end."""

    def __init__(
        self,
        shared: Shared,
        listener: str,
        *,
        frame_bytes_max: int,
        limits: FrameLimits | None = None,
        security: ListenerSecurity = PLAIN_LISTENER,
        open_connections: "set[Connection]",
    ) -> None:
        self._shared = shared
        self._listener = listener
        self._security = security
        self._open_connections = open_connections
        self._limits = (frame_bytes_max, limits)
        self._frames = FrameBuffer(frame_bytes_max=frame_bytes_max, buffers=shared.buffers, limits=limits)
        self._authentication: Authentication | None = None
        self._intake = Intake(self._frames, shared.requests)
        self._reading = True
        self._host = "?"
        self._stranger: str | None = None  # why nobody knows who it is
        self._is_begun = False
        self.received_bytes = 0

    # transport → connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = self._transport.get_extra_info("peername")
        self._host = peer[0] if peer else "?"
        self._open_connections.add(self)
        refused = self._shared.admission.enter(self._host, self._listener)
        try:
            self._begin(refused)
        except Exception:  # or the client would wait for ever, and its file be lost
            log.exception("connection from %s on %s cannot begin", self._host, self._listener)
            self._transport.abort()

    def _begin(self, refused: str | None) -> None:
        shared = self._shared
        self._outbox = Outbox(
            self._transport,
            threads=shared.threads,
            memory=shared.answers,
            turns=shared.turns,
            drained=self.resume,
            failed=self._abort,
        )
        self._answers = Answers(self._outbox, self._transport, shared.clock)
        self._handling = Handling(
            shared,
            self._transport,
            self,
            client=self._client(),
            intake=self._intake,
            answers=self._answers,
        )
        self._is_begun = True
        if reason := refused or self._stranger:
            self.close(reason)
        elif pause_ms := shared.allowances.connection_pause_ms(self._host, self._listener):
            self.pause(pause_ms)

    def _client(self) -> Client:
        """Known by its certificate, or to be known by its login."""
        shared = self._shared
        client = Client(self._listener, self._host, authorizer=shared.authorizer, trail=shared.trail)
        rules = self._security.login
        if rules is not None:
            client.authentication = self._authentication = Authentication(
                rules, host=self._host, clock=self._shared.clock, identify=self._logged_in
            )
            self._frames.set_limits(rules.receive_bytes_max, login_limits(self._authentication))
            return client
        try:
            client.identify(self._security.principal_of(self._transport.get_extra_info("ssl_object")))
        except (NoRuleApplies, BadCertificate) as error:
            self._stranger = f"its certificate gives no principal: {error}"
        return client

    def _logged_in(self, login: Login) -> None:
        self._frames.set_limits(*self._limits)
        self._shared.strangers.leave(self)
        self._handling.client.log_in(login)

    def connection_lost(self, error: Exception | None) -> None:
        self._open_connections.discard(self)
        self._shared.admission.leave(self._host, self._listener)
        if error is not None:
            log.info("connection from %s on %s lost: %s", self._host, self._listener, error)
        self._frames.close()
        self._intake.close(self)
        self._shared.strangers.leave(self)
        if self._is_begun:
            self._outbox.close()
            self._answers.close()
            self._handling.close()
        if self._authentication is not None:
            self._authentication.close()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.free_space()

    def buffer_updated(self, count: int) -> None:
        self.received_bytes += count
        self._frames.received(count)
        self.resume()

    def eof_received(self) -> bool:
        if self._frames.unread_bytes and not self._answers.are_pending:
            log.info("%s closed in the middle of a request (%d bytes of it)", self._host, self._frames.unread_bytes)
        return False

    def pause_writing(self) -> None:
        self._outbox.paused()
        self._set_reading()

    def resume_writing(self) -> None:
        self._outbox.resumed()

    # requests

    def resume(self) -> None:
        """Handle what has arrived, as long as the client also takes its answers."""
        frames, intake, answers, handling = self._frames, self._intake, self._answers, self._handling
        intake.begin_turn()
        try:
            while not intake.holds and (answers.have_room or self._sent_some()):
                if (frame := frames.next_frame()) is None:
                    break
                if not handling.begin(frame):
                    intake.postpone(frame)
                elif intake.turn_is_over:
                    intake.give_way(self.resume)
        except Malformed as error:
            if self._authentication is not None:
                self._authentication.spoiled(str(error))
            self.close(f"bad request: {error}")
            return
        frames.settle()
        if self._authentication is None or self._authentication.has_logged_in:
            intake.reserve(self, self.resume)
        else:
            self._shared.strangers.hold(self, frames.unread_bytes)
        answers.flush()
        self._set_reading()

    def _sent_some(self) -> bool:
        """There was no room for answers, and now there is: nothing else would come back to frames that are here."""
        self._answers.flush()
        return self._answers.have_room

    @property
    def may_go_on(self) -> bool:
        """Reading had stopped, and whatever it stopped for may be over."""
        if self._intake.is_postponed:
            return self._answers.are_taken
        return not (self._reading or self._intake.holds) and self._answers.have_room

    def _set_reading(self) -> None:
        wanted = not self._intake.holds and self._answers.have_room
        if wanted == self._reading or self._transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def pause(self, pause_ms: int) -> None:
        """Read nothing for so long; what came already waits."""
        if not self._transport.is_closing():
            self._intake.mute(pause_ms, self._pause_is_over)
            self._set_reading()

    def _pause_is_over(self) -> None:
        if not self._transport.is_closing():
            self.resume()

    # the end

    def close(self, reason: str, *, quiet: bool = False) -> None:
        if not self._transport.is_closing():
            level = logging.DEBUG if quiet else logging.WARNING
            log.log(level, "connection from %s on %s closed: %s", self._host, self._listener, reason)
            self._answers.flush()
            if self._outbox.is_empty:
                self._transport.close()
            else:  # the client takes nothing, so that an orderly end would wait for ever
                self._transport.abort()

    def _abort(self, reason: str) -> None:
        if not self._transport.is_closing():
            log.warning("connection from %s on %s closed: %s", self._host, self._listener, reason)
            self._transport.abort()

    def close_if_idle_since(self, deadline: float) -> None:
        """Also when it takes too long to log in."""
        if self._authentication is not None and self._authentication.is_late(self._shared.clock.monotonic()):
            self._authentication.spoiled("it took too long to log in")
            self.close("it took too long to log in (ottla.authentication.timeout.ms)")
        elif self._answers.are_idle_since(deadline):
            self.close("idle for connections.max.idle.ms", quiet=True)
