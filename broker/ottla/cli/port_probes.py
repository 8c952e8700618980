"""What speaks at a port: TLS, or HTTP/2 in the clear."""

import socket
import ssl

from ottla.rpc.probing import split_address

__all__ = ["takes_http2", "takes_tls"]

PROBE_S_MAX = 2.0
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
HTTP2_HEADER_BYTES, HTTP2_SETTINGS = 9, 4


def takes_tls(address: str) -> bool:
    """Whether it begins a handshake; that it would end it without a certificate of ours does not matter."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        with socket.create_connection(split_address(address), PROBE_S_MAX) as plain, context.wrap_socket(plain):
            return True
    except ssl.SSLError as error:
        return error.reason is not None and "ALERT" in error.reason
    except OSError:
        return False


def takes_http2(address: str) -> bool:
    """Whether it answers HTTP/2's first words with its own."""
    try:
        with socket.create_connection(split_address(address), PROBE_S_MAX) as plain:
            plain.sendall(HTTP2_PREFACE)
            header = plain.recv(HTTP2_HEADER_BYTES)
    except OSError:
        return False
    return len(header) == HTTP2_HEADER_BYTES and header[3] == HTTP2_SETTINGS
