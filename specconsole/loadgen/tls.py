"""An exchange over TLS: the server's name and certificate are checked, by the system's authorities or a file of them.

The kernel can't say when a decrypted byte came, so arrivals are stamped when they are looked at.
"""

from __future__ import annotations

import socket
import ssl
from typing import Any, Optional, Tuple

from .wire import Exchange


class Tls:
    """How connections are secured. Raises OSError, as which ssl's own errors count, for a file that can't be used."""

    def __init__(self, server_name: str, ca_file: Optional[str]) -> None:
        self.server_name = server_name
        self.context = ssl.create_default_context(cafile=ca_file)


class TlsExchange(Exchange):
    """States: `connecting`, `securing`, then as any exchange."""

    LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

    def __init__(self, sock: Optional[socket.socket], address: Tuple[str, int], payload: bytes, tls: Tls) -> None:
        self._tls = tls
        super().__init__(sock, address, payload)

    def on_writable(self) -> None:
        if self.state == "connecting":
            if not self._connected():
                return
            try:
                self.sock = self._tls.context.wrap_socket(
                    self.sock, server_hostname=self._tls.server_name, do_handshake_on_connect=False
                )
            except (OSError, ValueError) as error:
                self._fail("tls", str(error))
                return
            self.state = "securing"
        if self.state == "securing":
            self._secure()
        if self.state == "sending":
            self._send()

    def _begin(self) -> None:
        if self.reused:
            self.receive = self._receive
            self._send()

    def _secure(self) -> None:
        assert isinstance(self.sock, ssl.SSLSocket)
        try:
            self.sock.do_handshake()
        except ssl.SSLWantReadError:
            self.wants_write = False
        except ssl.SSLWantWriteError:
            self.wants_write = True
        except (OSError, ValueError) as error:
            self._fail("tls", getattr(error, "verify_message", "") or str(error))
        else:
            self.receive = self._receive
            self.wants_write = True
            self.state = "sending"

    def _receive(self, size: int, _: int) -> Tuple[bytes, Any, int, Any]:
        """All that is decrypted: what stays within would wake nobody."""
        assert isinstance(self.sock, ssl.SSLSocket)
        parts = []
        try:
            while True:
                data = self.sock.recv(size)
                parts.append(data)
                if not data or not self.sock.pending():
                    break
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if not parts:
                raise BlockingIOError from None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            pass
        return b"".join(parts), (), 0, None
