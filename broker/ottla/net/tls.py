"""TLS between a socket and its connection, with OpenSSL on memory.

    socket ─ uvloop ─ TlsTransport ─ Connection

To the socket's transport it is a protocol, to the connection a transport: reading, writing, limits, pausing and closing
mean what they mean without TLS. Bytes are decrypted into the connection's own buffers, encrypted in pieces, and an idle
connection holds none. asyncio and uvloop would drop the alert of a failed handshake, so that the client is told
nothing, and keep large buffers for every connection.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, cast

from ottla.net.handshakes import Handshakes

__all__ = ["CIPHER_BYTES", "TlsTransport"]

CIPHER_BYTES = 128 * 1024  # that arrive at once, in a buffer that all connections of a listener share
PIECE_BYTES = 64 * 1024  # encrypted at once: they and their ciphertext stay in the processor's cache
FED_BYTES = 16 * 1024  # given to OpenSSL at once: it does not come back before it has data or nothing left to read
DECRYPTING_SECONDS_MAX = 0.005  # of one connection in a turn of the loop
# Not more than this is around the data of a record. In TLS 1.3 these are 22 bytes and padding, of which Java gives each
# record 16; with a key update before it they would be 49. Older versions have more.
AROUND_BYTES_MAX, AROUND_OLD_BYTES_MAX = 48, 512
# Of ciphertext without data, which costs OpenSSL much more (a key update derives keys from 27 bytes): a record that is
# under way, a few key updates, and one in so many bytes of data.
BARREN_BYTES_MAX, DATA_PER_BARREN_BYTE = 24 * 1024, 64
JOINED_BYTES_MAX = 16 * 1024  # smaller parts of an answer become one record
TRUNCATED = "the connection ended without the end of TLS (close_notify)"

log = logging.getLogger("ottla.net")


class TlsTransport(asyncio.Transport, asyncio.BufferedProtocol):
    """`make_connection` is called when the handshake has succeeded; what it returns gets the bytes."""

    def __init__(
        self,
        context: ssl.SSLContext,
        *,
        handshakes: Handshakes,
        arriving: memoryview,
        make_connection: Callable[[], asyncio.BufferedProtocol],
    ) -> None:
        super().__init__()
        self._arrived, self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._handshakes = handshakes
        self._arriving = arriving
        self._make_connection = make_connection
        self._connection: asyncio.BufferedProtocol | None = None
        self._first: bytes | None = None  # how what the client sent begins
        self._in_turn = False  # the handshake goes on as soon as it is its turn
        self._reading = True
        self._giving_way = False
        self._given_bytes = 0  # to OpenSSL, since the last record with data
        self._barren_bytes = 0  # of what it was given before, without those records
        self._around_bytes_max = AROUND_BYTES_MAX
        self._ended = False

    # as a protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast(asyncio.Transport, transport)
        peer = self._socket.get_extra_info("peername")
        self.host = peer[0] if peer else "?"
        self._handshakes.begun(self)

    def connection_lost(self, error: Exception | None) -> None:
        """What refers to the connection is dropped here: a cycle would leave both to the collector."""
        self._ended = True
        connection, self._connection = self._connection, None
        del self._make_connection
        if connection is None:
            self._handshakes.lost(self, begun=self._first is not None)
        else:
            connection.connection_lost(error)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._arriving

    def buffer_updated(self, count: int) -> None:
        if self._ended:
            return
        if self._first is None:
            self._first = bytes(self._arriving[: min(count, 8)])
        self._arrived.write(self._arriving[:count])
        if self._connection is not None:
            if not self._giving_way:
                self._decrypt()
        elif not self._in_turn:
            self._in_turn = True
            self._handshakes.in_turn(self._shake_hands)

    def eof_received(self) -> bool:
        if self._connection is not None and not self._ended:
            self._connection.eof_received()
        return False

    def pause_writing(self) -> None:
        if self._connection is not None:
            self._connection.pause_writing()

    def resume_writing(self) -> None:
        if self._connection is not None:
            self._connection.resume_writing()

    # the handshake

    def _shake_hands(self) -> None:
        self._in_turn = False
        if self._ended:
            return
        self._feed()
        try:
            self._tls.do_handshake()
            self._handshakes.check(self._tls)
        except ssl.SSLWantReadError:
            self._flush()
            if self._arrived.pending:
                self._in_turn = True
                self._handshakes.in_turn(self._shake_hands)
            return
        except (ssl.SSLError, ValueError) as error:
            self._flush()  # the alert
            self._handshakes.failed(self, error, first=self._first or b"")
            self._end()
            return
        self._flush()
        self._handshakes.done(self)
        self._given_bytes = self._incoming.pending
        if self._tls.version() != "TLSv1.3":
            self._around_bytes_max = AROUND_OLD_BYTES_MAX
        connection = self._connection = self._make_connection()
        connection.connection_made(self)
        self._decrypt()

    def give_up(self) -> None:
        """The handshake takes too long."""
        self._ended = True
        self._socket.abort()

    # reading

    def _decrypt(self) -> None:
        """What is here, as long as the connection takes it and others need not wait for long."""
        connection, until = self._connection, perf_counter() + DECRYPTING_SECONDS_MAX
        while self._reading and not self._ended and connection is not None:
            if not self._incoming.pending:
                self._feed()
            count, over = self._read_into(connection.get_buffer(-1))
            if count:
                self._barren_bytes = max(0, self._barren_bytes - count // DATA_PER_BARREN_BYTE)
                connection.buffer_updated(count)
            if over is not None:
                self._over(over)
            elif self._barren_bytes + self._given_bytes - self._incoming.pending > BARREN_BYTES_MAX:
                self._refuse_barren()
            if not (self._arrived.pending or self._incoming.pending or self._tls.pending()):
                break
            if self._reading and perf_counter() >= until:
                self._give_way()
                break
        if self._outgoing.pending and not self._ended:
            self._flush()  # TLS itself had to answer

    def _read_into(self, buffer: Any) -> tuple[int, "Exception | str | None"]:
        """How many bytes, and why there will be no more of them. Asking OpenSSL in vain would raise an exception, so it
        is only asked while it has something."""
        tls, incoming, size, count = self._tls, self._incoming, len(buffer), 0
        try:
            while True:
                got = tls.read(size - count, buffer[count:] if count else buffer)
                if not got:
                    return count, ""
                count += cast(int, got)
                self._gave_data(cast(int, got))
                if count == size or not (incoming.pending or tls.pending() or self._feed_more()):
                    return count, None
        except ssl.SSLWantReadError:  # a part of a record
            return count, None
        except ssl.SSLError as error:
            return count, error

    def _feed(self) -> int:
        fed = self._incoming.write(self._arrived.read(FED_BYTES))
        self._given_bytes += fed
        return fed

    def _feed_more(self) -> int:
        """Without a look at the time, unless too little came of it."""
        return self._feed() if self._barren_bytes + self._given_bytes < FED_BYTES else 0

    def _gave_data(self, count: int) -> None:
        """So much of a record, which OpenSSL has taken whole: the rest of its data comes with the next reads."""
        waiting = self._incoming.pending
        around = self._given_bytes - waiting - count - self._tls.pending()
        self._given_bytes = waiting
        if around > self._around_bytes_max:
            self._barren_bytes += around

    def _refuse_barren(self) -> None:
        log.warning("connection from %s closed: more than %d bytes of TLS without data", self.host, BARREN_BYTES_MAX)
        self._flush()
        self._end()

    def _give_way(self) -> None:
        """The rest in a later turn; no more is read meanwhile."""
        self._giving_way = True
        if not self._socket.is_closing():
            self._socket.pause_reading()
        asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._giving_way = False
        self._read_again()

    def _over(self, reason: "Exception | str") -> None:
        connection = self._connection
        if connection is None or self._ended:
            return
        if reason == "":
            connection.eof_received()
            self.close()
        else:
            self._flush()
            self._end()

    def pause_reading(self) -> None:
        self._reading = False
        if not self._socket.is_closing():
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        """What was decrypted meanwhile comes first, in a turn of its own: whoever resumes is in the middle of
        something."""
        self._reading = True
        asyncio.get_running_loop().call_soon(self._read_again)

    def _read_again(self) -> None:
        if not self._reading or self._ended or self._giving_way:
            return
        self._decrypt()
        if self._reading and not (self._ended or self._giving_way) and not self._socket.is_closing():
            self._socket.resume_reading()

    # writing

    def write(self, data: Any) -> None:
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        if self._ended:
            return
        small: list[Any] = []
        small_bytes = 0
        encrypted: list[bytes] = []
        for part in list_of_data:
            if small_bytes + len(part) <= JOINED_BYTES_MAX:
                small.append(part)
                small_bytes += len(part)
                continue
            self._encrypt(small, encrypted)
            small, small_bytes = [part], len(part)
        self._encrypt(small, encrypted)
        if len(encrypted) == 1:
            self._socket.write(encrypted[0])
        elif encrypted:
            self._socket.writelines(encrypted)

    def _encrypt(self, parts: list[Any], encrypted: list[bytes]) -> None:
        data = memoryview(parts[0] if len(parts) == 1 else b"".join(parts))
        for start in range(0, len(data), PIECE_BYTES):
            self._tls.write(data[start : start + PIECE_BYTES])
            encrypted.append(self._outgoing.read())

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._socket.write(self._outgoing.read())

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._socket.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._socket.get_write_buffer_size()

    # the end

    def is_closing(self) -> bool:
        return self._ended or self._socket.is_closing()

    def close(self) -> None:
        """What was written still goes out, and the end of TLS behind it. The client's own is not waited for."""
        if not self._ended:
            with contextlib.suppress(ssl.SSLError):  # it wants to read the client's, or there is nothing to end
                self._tls.unwrap()
            self._flush()
            self._end()

    def _end(self) -> None:
        self._ended = True
        self._socket.close()

    def abort(self) -> None:
        self._ended = True
        self._socket.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._tls if name == "ssl_object" else self._socket.get_extra_info(name, default)
