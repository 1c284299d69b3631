"""A streaming server that does exactly what each request's own `test` object says, on a schedule of absolute times.

`{"status": 200, "first_s": 0.05, "gap_s": 0.02, "events": 10, "tokens": 3, "split": false, "end": "done"}`

`end` is one of `done`, `no-done` (closes without the end mark), `cut` (closes in the middle of an event), `stall`
(says nothing more), `error` (an error object in the stream), `no-usage`. `split` sends each event in two pieces, cut
in the middle. It prints its port, and on GET /counts what it has sent: the witness of the tests.

With an argument (a file with certificate and key) it speaks TLS; GET /v1/models names one model.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from typing import Any

COUNTS = {"requests": 0, "events": 0, "tokens": 0, "connections": 0, "most_at_once": 0, "now": 0}


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def serve_stream(writer: asyncio.StreamWriter, plan: dict[str, Any]) -> bool:
    loop = asyncio.get_running_loop()
    start = loop.time()
    status = plan.get("status", 200)
    if status != 200:
        body = json.dumps({"error": {"message": plan.get("message", "no"), "code": status}}).encode()
        writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
        return True
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    events, tokens, end = plan.get("events", 10), plan.get("tokens", 1), plan.get("end", "done")
    sent = 0
    for number in range(events):
        due = start + plan.get("first_s", 0.0) + number * plan.get("gap_s", 0.01)
        await asyncio.sleep(max(0.0, due - loop.time()))
        sent += 1 if number == 0 else tokens
        event: dict[str, Any] = {"choices": [{"index": 0, "text": " w" * (1 if number == 0 else tokens)}]}
        if plan.get("counted", True) and end != "no-usage":
            event["usage"] = {"prompt_tokens": 7, "completion_tokens": sent}
        data = chunk(b"data: " + json.dumps(event).encode() + b"\n\n")
        if end == "cut" and number == events - 1:
            writer.write(data[: len(data) // 2])
            return False
        if plan.get("split"):
            writer.write(data[: len(data) // 2])
            await writer.drain()
            await asyncio.sleep(0.001)
            writer.write(data[len(data) // 2 :])
        else:
            writer.write(data)
        COUNTS["events"] += 1
        COUNTS["tokens"] += 1 if number == 0 else tokens
    if end == "stall":
        await asyncio.sleep(3600)
    if end == "error":
        writer.write(chunk(b'data: {"error": {"message": "out of pages"}}\n\n') + b"0\r\n\r\n")
        return True
    if end == "no-done":
        writer.write(b"0\r\n\r\n")
        return True
    if end == "no-usage":
        writer.write(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        return True
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": sent}}
    writer.write(chunk(b"data: " + json.dumps(usage).encode() + b"\n\ndata: [DONE]\n\n"))
    if plan.get("split"):
        # The end mark in pieces too, as llama.cpp's server sends it: a kept connection must not keep a rest of it.
        for piece in (b"0", b"\r\n", b"\r", b"\n"):
            await writer.drain()
            await asyncio.sleep(0.001)
            writer.write(piece)
    else:
        writer.write(b"0\r\n\r\n")
    return True


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    COUNTS["connections"] += 1
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = 0
            for line in head.split(b"\r\n"):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            body = await reader.readexactly(length)
            if head.startswith(b"GET"):
                models = {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "test"}]}
                data = json.dumps(models if b"/v1/models" in head[:40] else COUNTS).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data))
                continue
            COUNTS["requests"] += 1
            COUNTS["now"] += 1
            COUNTS["most_at_once"] = max(COUNTS["most_at_once"], COUNTS["now"])
            try:
                keep = await serve_stream(writer, json.loads(body).get("test", {}))
                await writer.drain()
            finally:
                COUNTS["now"] -= 1
            if not keep:
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def main() -> None:
    context = None
    if len(sys.argv) > 1:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(sys.argv[1])
    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
