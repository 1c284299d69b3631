"""A server for comparing clients: each stream gets its first event at once, then one event every 1/rate seconds.

    _paced_server.py RATE EVENTS     prints its port

The first event goes out as soon as the request is read, so a client's time to first token is the client's own delay
(and the server's few microseconds). One timer serves all streams; events are made beforehand.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import sys


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class PacedServer:
    def __init__(self, rate: float, events: int) -> None:
        self.gap_s = 1.0 / rate
        self.events = events
        one = {"id": "cmpl-1", "object": "text_completion", "model": "m", "choices": [{"index": 0, "text": " word"}]}
        self.event = chunk(b"data: " + json.dumps(one).encode() + b"\n\n")
        usage = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": events}}
        self.last = chunk(b"data: " + json.dumps(usage).encode() + b"\n\ndata: [DONE]\n\n") + b"0\r\n\r\n"
        self.due: list[tuple[float, int, asyncio.StreamWriter, int]] = []
        self.serial = 0
        self.wake = asyncio.Event()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = 0
                for line in head.split(b"\r\n"):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                await reader.readexactly(length)
                writer.write(HEAD + self.event)
                self.push(asyncio.get_running_loop().time() + self.gap_s, writer, 1)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def push(self, at_s: float, writer: asyncio.StreamWriter, sent: int) -> None:
        self.serial += 1
        heapq.heappush(self.due, (at_s, self.serial, writer, sent))
        self.wake.set()

    async def pace(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self.due:
                self.wake.clear()
                await self.wake.wait()
            wait_s = self.due[0][0] - loop.time()
            if wait_s > 0:
                await asyncio.sleep(min(wait_s, 0.002))
                continue
            at_s, _, writer, sent = heapq.heappop(self.due)
            if writer.is_closing():
                continue
            if sent + 1 == self.events:
                writer.write(self.event + self.last)
            else:
                writer.write(self.event)
                self.push(at_s + self.gap_s, writer, sent + 1)


async def main() -> None:
    paced = PacedServer(float(sys.argv[1]), int(sys.argv[2]))
    server = await asyncio.start_server(paced.handle, "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await paced.pace()


if __name__ == "__main__":
    asyncio.run(main())
