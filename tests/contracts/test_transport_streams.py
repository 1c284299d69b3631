"""Transport: output that goes on, and connections that start at the host."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from specconsole.errors import ConnectionRefusedAtHostError
from specconsole.ports import ByteStream, Transport
from tests.contracts.test_transport_commands import pids_of
from tests.support.leaks import own_listening_ports
from tests.support.waiting import PATIENCE_S, free_port, is_alive, until


async def read_until(stream: ByteStream, text: bytes) -> bytes:
    seen = b""
    async with asyncio.timeout(PATIENCE_S):
        while text not in seen:
            block = await stream.read()
            assert block, f"the stream ended before {text!r}: {seen!r}"
            seen += block
    return seen


async def read_all(stream: ByteStream) -> bytes:
    seen = b""
    async with asyncio.timeout(PATIENCE_S):
        while block := await stream.read():
            seen += block
    return seen


async def test_output_arrives_while_the_command_runs_also_without_a_newline(transport: Transport, folder: Path) -> None:
    go = folder / "go"
    script = r"""printf 'half a line\r'; while [ ! -e "$1" ]; do sleep 0.02; done; printf 'rest\n'"""
    async with transport.stream(["sh", "-c", script, "sh", str(go)]) as stream:
        assert await read_until(stream, b"\r") == b"half a line\r"
        go.touch()
        assert await read_all(stream) == b"rest\n"
        assert await stream.read() == b""


async def test_both_outputs_are_one_and_bytes_stay_bytes(transport: Transport) -> None:
    async with transport.stream(["sh", "-c", r"printf 'a\377\n'; printf 'b\200\n' >&2; printf 'c\000'"]) as stream:
        assert await read_all(stream) == b"a\xff\nb\x80\nc\0"


async def test_arguments_of_a_stream_arrive_byte_for_byte(transport: Transport) -> None:
    arguments = ["", "a b", "$(id)", "'", "\n", "-n", "é", os.fsdecode(b"\xff")]
    async with transport.stream(["/usr/bin/printf", "%s\\0", *arguments]) as stream:
        assert await read_all(stream) == b"".join(os.fsencode(word) + b"\0" for word in arguments)


async def test_a_fast_stream_is_whole(transport: Transport) -> None:
    count = 400_000
    expected = hashlib.sha256(b"".join(b"%d\n" % number for number in range(1, count + 1))).hexdigest()
    got = hashlib.sha256()
    async with transport.stream(["seq", str(count)]) as stream:
        while block := await stream.read():
            got.update(block)
    assert got.hexdigest() == expected


@pytest.mark.parametrize(
    "script", ["exec sleep 300", "while :; do echo tick; sleep 0.02; done"], ids=["silent", "ticking"]
)
async def test_leaving_is_prompt_and_nothing_stays(transport: Transport, folder: Path, script: str) -> None:
    pids = folder / "pids"
    async with transport.stream(["sh", "-c", f'echo $$ >"$1"; {script}', "sh", str(pids)]):
        [pid] = await pids_of(pids, 1)
        began = time.monotonic()
    assert time.monotonic() - began < 10
    await until(lambda: not is_alive(pid), what=f"pid {pid} is gone")


async def test_a_reader_can_be_cancelled(transport: Transport) -> None:
    async with transport.stream(["sh", "-c", "echo first; exec sleep 300"]) as stream:
        await read_until(stream, b"first\n")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await stream.read()
    assert (await transport.run(["echo", "after"])).stdout == b"after\n"


@contextlib.asynccontextmanager
async def echo_server() -> AsyncIterator[int]:
    """Sends back what it gets, and `bye` when it gets `end`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while block := await reader.read(65536):
                writer.write(block)
                if block.endswith(b"end"):
                    writer.write(b"bye")
                    await writer.drain()
                    break
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_a_connection_carries_bytes_both_ways_and_opens_no_port_here(transport: Transport) -> None:
    async with echo_server() as port:
        before = own_listening_ports()
        reader, writer = await transport.open_connection("127.0.0.1", port)
        try:
            assert own_listening_ports() == before
            payload = bytes(range(256)) * 4000

            async def send() -> None:
                for start in range(0, len(payload), 50_000):
                    writer.write(payload[start : start + 50_000])
                    await writer.drain()

            async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
                group.create_task(send())
                assert await reader.readexactly(len(payload)) == payload
            writer.write(b"end")
            await writer.drain()
            async with asyncio.timeout(PATIENCE_S):
                assert await reader.read(100) + await reader.read(100) == b"endbye"
                assert await reader.read() == b""
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        assert writer.is_closing()


async def test_nobody_listening_is_refused_and_nothing_else(transport: Transport) -> None:
    with pytest.raises(ConnectionRefusedAtHostError):
        await transport.open_connection("127.0.0.1", free_port())
    assert (await transport.run(["echo", "link is fine"])).ok


async def test_a_listener_that_says_nothing_is_connected_not_refused(transport: Transport) -> None:
    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    async with server:
        reader, writer = await transport.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await reader.read(1)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def test_a_dozen_connections_at_once(transport: Transport) -> None:
    async with echo_server() as port:

        async def one(number: int) -> None:
            reader, writer = await transport.open_connection("127.0.0.1", port)
            writer.write(b"%d end" % number)
            await writer.drain()
            async with asyncio.timeout(PATIENCE_S):
                assert await reader.read() == b"%d endbye" % number
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

        async with asyncio.TaskGroup() as group:
            for number in range(12):
                group.create_task(one(number))
