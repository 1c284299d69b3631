"""One HTTP/1.1 exchange on a non-blocking socket: bytes and their arrival times, kept as they come.

While a stream runs, an arriving piece costs one `recv` and a look at its last bytes; nothing is decoded, and its
chunks are walked only when those bytes could be the end. `Response` takes the pieces apart after the stream: status,
headers, chunked coding, and for each byte of the body the time of the piece that completed it.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Tuple, Type

RECV_BYTES = 16384
"""A larger one costs more to make and to shrink each time than another turn would (262144: 19 us against 4)."""
NOTE_BYTES = 64
_SO_TIMESTAMPNS = 35
"""Linux (asm-generic/socket.h): a receive tells when its last bytes came in; the socket module has no name for it."""
Piece = Tuple[float, bytes]


def stamping_socket(family: int = socket.AF_INET) -> socket.socket:
    """A stream socket that tells when its bytes came, where the system can."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    return sock


class Exchange:
    """A request on its way. States: `connecting`, `sending`, `receiving`, `done`, `failed`."""

    LATER: Tuple[Type[OSError], ...] = (BlockingIOError,)
    """What a socket raises that can't go on now."""

    def __init__(self, sock: Optional[socket.socket], address: Tuple[str, int], payload: bytes) -> None:
        self.reused = sock is not None
        self.started_s = time.perf_counter()
        self.sent_s: Optional[float] = None
        """When the last byte of the request had been handed to the kernel."""
        self.last_s = self.started_s
        self.pieces: List[Piece] = []
        self.error: Optional[str] = None
        self.detail = ""
        self.keep_alive = False
        self.wants_write = True
        """Which way the socket is waited for until the state is `receiving`."""
        self.streaming = False
        """Chunks are coming: only what could be the end of the last one needs `on_data`."""
        self._payload = memoryview(payload)
        self._walked = 0
        self._partial = b""
        self._skip = 0
        self._length: Optional[int] = None
        self._received = 0
        self._head_done = False
        self._chunked = False
        self._address = address
        if sock is None:
            sock = stamping_socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            status = sock.connect_ex(address)
            self.state = "connecting"
            if status not in (0, errno.EINPROGRESS):
                self._fail(connect_class(status), errno.errorcode.get(status, str(status)))
        else:
            self.state = "sending"
        self.sock = sock
        self.receive: Callable[[int, int], Tuple[bytes, Any, int, Any]] = sock.recvmsg
        """Bytes, and what the kernel notes about them."""
        if self.state != "failed":
            self._begin()

    def fileno(self) -> int:
        return self.sock.fileno()

    def on_writable(self) -> None:
        """Goes on with connecting or sending."""
        if self.state == "connecting":
            if not self._connected():
                return
            self.state = "sending"
        if self.state == "sending":
            self._send()

    def _connected(self) -> bool:
        """How connecting ended; False when it failed, which is then told."""
        status = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if status:
            self._fail(connect_class(status), errno.errorcode.get(status, str(status)))
        return not status

    def _begin(self) -> None:
        """A kept connection takes the request at once; so does a new one to this machine."""
        self._send()

    def _send(self) -> None:
        try:
            sent = self.sock.send(self._payload)
        except self.LATER:
            return
        except OSError as error:
            if self.state == "connecting":
                status = error.errno or 0
                self._fail(connect_class(status), errno.errorcode.get(status, str(status)))
            else:
                self._fail("reset", error.__class__.__name__)
            return
        self._payload = self._payload[sent:]
        if not self._payload:
            self.sent_s = self.last_s = time.perf_counter()
            self.state = "receiving"
            self.wants_write = False

    def broken(self, error: OSError) -> bytes:
        """The socket gave an error instead of bytes."""
        self._fail("reset", error.__class__.__name__)
        return b""

    def on_data(self) -> None:
        """Looks at the pieces that came since the last look: is the response whole?"""
        if not self._head_done:
            self._read_head()
        elif self._chunked:
            fresh = self.pieces[self._walked :]
            self._walked = len(self.pieces)
            self._walk_chunks(b"".join([data for _, data in fresh]))
        else:
            self._received += len(self.pieces[-1][1])
        if self._length is not None and self._received >= self._length and self.state == "receiving":
            self.state = "done"

    def _walk_chunks(self, data: bytes) -> None:
        """Steps from chunk size to chunk size, without copying, until the last chunk (size 0)."""
        position = self._skip
        if self._partial:
            data, position, self._partial = self._partial + data, 0, b""
        size_of = len(data)
        while position < size_of:
            line_end = data.find(b"\r\n", position)
            if line_end < 0:
                self._partial, self._skip = data[position:], 0
                return
            try:
                size = int(data[position:line_end].split(b";")[0], 16)
            except ValueError:
                self._fail("bad-response", "no chunk size where one must be")
                return
            if size == 0:
                # Trailers may follow; the empty line ends it all, and may come in a piece of its own.
                if data.find(b"\r\n\r\n", line_end) >= 0:
                    self.state = "done"
                else:
                    self._partial, self._skip = data[position:], 0
                return
            position = line_end + size + 4
        self._skip = position - size_of

    def abort(self, error_class: str, detail: str) -> None:
        """Gives the exchange up: time limit, cancel."""
        if self._chunked and self.state == "receiving":
            self.on_data()  # a stream that can't be read is told as that
        if self.state not in ("done", "failed"):
            self._fail(error_class, detail)

    def close(self) -> None:
        self.sock.close()

    def _read_head(self) -> None:
        raw = b"".join(piece for _, piece in self.pieces)
        end = raw.find(b"\r\n\r\n")
        if end < 0:
            if len(raw) > 65536:
                self._fail("bad-response", "no end of the headers within 64 KiB")
            return
        self._head_done = True
        _, headers = parse_head(raw[:end])
        self._chunked = headers.get("transfer-encoding", "").lower().endswith("chunked")
        self.keep_alive = headers.get("connection", "").lower() != "close"
        if not self._chunked and "content-length" in headers:
            try:
                self._length = int(headers["content-length"])
            except ValueError:
                self._fail("bad-response", "content-length is not a number")
                return
            self._received = len(raw) - end - 4
        if self._chunked:
            self.streaming = True
            self._walked = len(self.pieces)
            self._walk_chunks(raw[end + 4 :])
        if not self._chunked and self._length is None:
            self.keep_alive = False  # delimited by the close

    def on_end_of_stream(self) -> None:
        """The server closed."""
        self.keep_alive = False
        if self.state == "receiving" and self._chunked:
            self.on_data()
        if self.state in ("done", "failed"):
            return
        if self._head_done and not self._chunked and self._length is None:
            self.state = "done"
        elif self.pieces:
            self._fail("truncated", "the server closed in the middle of a response")
        else:
            self._fail("reset", "the server closed without a byte")

    def _fail(self, error_class: str, detail: str) -> None:
        self.state = "failed"
        self.error = error_class
        self.detail = detail
        self.keep_alive = False


class Response:
    """Pieces taken apart. `complete` says that the whole body came; `body` is what did."""

    def __init__(self, pieces: List[Piece]) -> None:
        raw = b"".join(piece for _, piece in pieces)
        self.status: Optional[int] = None
        self.headers: Dict[str, str] = {}
        self.body = b""
        self.complete = False
        self.marks: List[Tuple[int, float]] = []
        """(end offset in `body`, arrival time): the body up to that offset had arrived at that time."""
        end = raw.find(b"\r\n\r\n")
        if end < 0:
            return
        self.status, self.headers = parse_head(raw[:end])
        arrivals: List[Tuple[int, float]] = []
        offset = 0
        for at_s, piece in pieces:
            offset += len(piece)
            arrivals.append((offset, at_s))
        if self.headers.get("transfer-encoding", "").lower().endswith("chunked"):
            self._dechunk(raw, end + 4, arrivals)
        else:
            self.body = raw[end + 4 :]
            length = self.headers.get("content-length", "")
            self.complete = not length.isdigit() or len(self.body) >= int(length)
            self.marks = [(max(0, stop - end - 4), at_s) for stop, at_s in arrivals if stop > end + 4]

    def _dechunk(self, raw: bytes, position: int, arrivals: List[Tuple[int, float]]) -> None:
        parts: List[bytes] = []
        total = 0
        index = 0
        while True:
            line_end = raw.find(b"\r\n", position)
            if line_end < 0:
                break
            try:
                size = int(raw[position:line_end].split(b";")[0], 16)
            except ValueError:
                break
            start = line_end + 2
            if size == 0:
                self.complete = True
                break
            stop = min(start + size, len(raw))
            # A chunk may have come in several pieces: one mark for each piece that reaches into it.
            while index < len(arrivals) and arrivals[index][0] < stop:
                if arrivals[index][0] > start:
                    self.marks.append((total + arrivals[index][0] - start, arrivals[index][1]))
                index += 1
            parts.append(raw[start:stop])
            total += stop - start
            if index < len(arrivals):
                self.marks.append((total, arrivals[index][1]))
            if start + size > len(raw):
                break
            position = start + size + 2
        self.body = b"".join(parts)


def parse_head(head: bytes) -> Tuple[Optional[int], Dict[str, str]]:
    """Status and headers (names in lower case); the status is None when the first line is not HTTP."""
    lines = head.split(b"\r\n")
    words = lines[0].split(b" ", 2)
    status = int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") and words[1].isdigit() else None
    headers: Dict[str, str] = {}
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        headers[name.strip().lower().decode("latin-1")] = value.strip().decode("latin-1")
    return status, headers


def build_request(method: str, path: str, headers: bytes, body: bytes) -> bytes:
    """The bytes of one request."""
    head = ("%s %s HTTP/1.1\r\n" % (method, path)).encode("latin-1")
    return b"".join([head, headers, b"Content-Length: ", str(len(body)).encode(), b"\r\n\r\n", body])


def connect_class(status: int) -> str:
    """What a failure to connect is called."""
    return "refused" if status == errno.ECONNREFUSED else "connect-failed"
