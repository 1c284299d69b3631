"""A server for comparing clients: each stream gets its first event at once, then one event every 1/rate seconds.

    _paced_server.py RATE EVENTS     prints its port

The first event goes out as soon as the request is read, so a client's time to first token is the client's own delay
(and the server's some ten microseconds). New requests come before due events, due events go out one at a time between
looks at the sockets, and all bytes are made beforehand. It speaks as much HTTP as clients in comparisons need:
`/v1/models`, `/health`, and streams on any POST.
"""

from __future__ import annotations

import heapq
import json
import select
import socket
import sys
import time

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
TURN = 8
"""Due events that go out before the sockets are looked at again."""


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(text: str, *, chat: bool, finish: str | None = None) -> bytes:
    """One chunk with one SSE event, as vLLM and SGLang write them."""
    inner = {"delta": {"content": text}} if chat else {"text": text}
    choice = {"index": 0, **inner, "logprobs": None, "finish_reason": finish}
    kind = "chat.completion.chunk" if chat else "text_completion"
    shape = {"id": "cmpl-1", "object": kind, "created": 1700000000, "model": "m", "choices": [choice]}
    return chunk(b"data: " + json.dumps(shape).encode() + b"\n\n")


class PacedServer:
    def __init__(self, rate: float, events: int) -> None:
        self.gap_s = 1.0 / rate
        self.events = events
        self.texts = {chat: event(" word", chat=chat) for chat in (False, True)}
        usage = {"prompt_tokens": 5, "completion_tokens": events, "total_tokens": events + 5}
        shape = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m", "choices": [], "usage": usage}
        done = chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
        said = {True: chunk(b"data: " + json.dumps(shape).encode() + b"\n\n"), False: b""}
        self.lasts = {
            (chat, counts): event(" word", chat=chat, finish="length") + said[counts] + done
            for chat in (False, True)
            for counts in (False, True)
        }
        self.due: list[tuple[float, int, int, int, tuple[bool, bool]]] = []
        """(when, serial, socket, events that were sent, (chat, usage wanted))."""
        self.serial = 0
        self.socks: dict[int, socket.socket] = {}
        self.rest: dict[int, bytes] = {}
        self.poll = select.epoll()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.listener.setblocking(False)
        self.poll.register(self.listener, select.EPOLLIN)

    def run(self) -> None:
        while True:
            wait_s = max(0.0, self.due[0][0] - time.monotonic()) if self.due else 1.0
            if 0.0 < wait_s < 0.002:
                select.select([self.poll], [], [], wait_s)
                wait_s = 0.0
            for fd, _ in self.poll.poll(wait_s - 0.001 if wait_s else 0):
                self.accept() if fd == self.listener.fileno() else self.read(fd)
            now_s = time.monotonic()
            for _ in range(TURN):
                if not self.due or self.due[0][0] > now_s:
                    break
                at_s, _, fd, sent, kind = heapq.heappop(self.due)
                if fd not in self.socks:
                    continue
                last = sent + 1 == self.events
                if self.send(fd, self.lasts[kind] if last else self.texts[kind[0]]) and not last:
                    self.later(at_s + self.gap_s, fd, sent + 1, kind)

    def accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socks[sock.fileno()] = sock
            self.rest[sock.fileno()] = b""
            self.poll.register(sock, select.EPOLLIN)

    def read(self, fd: int) -> None:
        try:
            data = self.socks[fd].recv(262144)
        except OSError:
            data = b""
        if not data:
            self.drop(fd)
            return
        whole = self.rest[fd] + data
        head, found, body = whole.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        if not found or len(body) < length:
            self.rest[fd] = whole
            return
        self.rest[fd] = body[length:]
        if head.startswith(b"GET"):
            models = {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "paced"}]}
            answer = json.dumps(models).encode()
            text = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            self.send(fd, text % (len(answer), answer))
            return
        kind = (b"/chat/" in head[:200], b"include_usage" in body)
        if self.send(fd, HEAD + self.texts[kind[0]]):
            self.later(time.monotonic() + self.gap_s, fd, 1, kind)

    def send(self, fd: int, data: bytes) -> bool:
        try:
            self.socks[fd].send(data)
        except OSError:
            self.drop(fd)
            return False
        return True

    def drop(self, fd: int) -> None:
        self.poll.unregister(fd)
        self.socks.pop(fd).close()
        del self.rest[fd]

    def later(self, at_s: float, fd: int, sent: int, kind: tuple[bool, bool]) -> None:
        self.serial += 1
        heapq.heappush(self.due, (at_s, self.serial, fd, sent, kind))


def main() -> None:
    server = PacedServer(float(sys.argv[1]), int(sys.argv[2]))
    sys.stdout.write(f"{server.listener.getsockname()[1]}\n")
    sys.stdout.flush()
    server.run()


if __name__ == "__main__":
    main()
