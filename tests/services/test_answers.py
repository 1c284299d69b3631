"""Refused, reset, time-out, 503 and 200 are five answers; only the whole proof counts. Over real sockets."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from specconsole.adapters.http import HostHttp
from specconsole.adapters.llamacpp_api import LlamacppApi
from specconsole.adapters.local import LocalTransport
from specconsole.adapters.process_launcher import ProcessLauncher
from specconsole.adapters.sglang_api import SglangApi
from specconsole.core.launching.asking import interval_s
from specconsole.core.launching.folder import HostMoment, LaunchRecord, ServerProcess
from specconsole.core.launching.spec import LaunchSpec
from specconsole.errors import BadInputError, ConnectionResetAtHostError
from specconsole.services.answers import Answers, Asked, Prove
from tests.support.waiting import free_port

Handler = Callable[[bytes], bytes | None]


def http(status: int, body: object = "") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body != "" else b""
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(data)) + data


def healthy(tokens: int = 16) -> Handler:
    def handle(request: bytes) -> bytes:
        path = request.split(b" ")[1]
        if path == b"/v1/models":
            return http(200, {"data": [{"id": "tiny"}]})
        if path == b"/v1/completions":
            assert json.loads(request.split(b"\r\n\r\n")[1])["model"] == "tiny"
            return http(200, {"usage": {"completion_tokens": tokens}})
        return http(200)

    return handle


@asynccontextmanager
async def serving(handle: Handler) -> AsyncIterator[int]:
    """A server in this process; None from the handler means to say nothing for ever, b"" to reset."""
    open_writers: set[asyncio.StreamWriter] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_writers.add(writer)
        request = await reader.readuntil(b"\r\n\r\n")
        for line in request.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                request += await reader.readexactly(int(line.split(b":")[1]))
        answer = handle(request)
        if answer is None:
            await reader.read()
        elif answer == b"":
            writer.transport.abort()
        else:
            writer.write(answer)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in open_writers:
            writer.close()
        await server.wait_closed()


def this_process(port: int) -> LaunchRecord:
    """A record that says that this very test is the launch's server."""
    with open("/proc/self/stat") as file:
        ticks = int(file.read().rsplit(") ", 1)[1].split()[19])
    spec = LaunchSpec("20261129-000000-aaaaaa", "p", "llamacpp", ("x",), port=port, health_timeout_s=0.5)
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = f"{file.read().strip()}/{os.readlink('/proc/self/ns/pid')}"
    process = ServerProcess(os.getpid(), ticks, boot, 0.0)
    return LaunchRecord("20261129-000000-aaaaaa", "/x", spec, process, alive=True, moment=HostMoment(boot))


Ask = Callable[..., Awaitable[Asked]]


@pytest.fixture
async def ask() -> AsyncIterator[Ask]:
    transport = LocalTransport()
    client = HostHttp(transport)
    answers = Answers(ProcessLauncher(transport), client, LlamacppApi())

    async def question(port: int, prove: Prove = "request", record: LaunchRecord | None = None) -> Asked:
        return await answers.ask(record or await asyncio.to_thread(this_process, port), version=None, prove=prove)

    yield question
    await client.aclose()


@pytest.mark.parametrize(
    ("handle", "health"),
    [
        (lambda _: b"", "reset"),
        (lambda _: None, "timeout"),
        (lambda _: http(503, {"error": {"message": "Loading model"}}), "503"),
        (lambda _: http(401), "http-error"),
        (lambda _: b"SSH-2.0-OpenSSH_9.2\r\n", "reset"),
        (lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf", "reset"),
    ],
    ids=["reset", "silent", "503", "401", "no-http", "half"],
)
async def test_each_trouble_is_told_apart(ask: Ask, handle: Handler, health: str) -> None:
    async with serving(handle) as port:
        asked = await ask(port)
    assert (asked.health, asked.proven) == (health, False)
    assert "\n" not in asked.detail


async def test_nothing_there_is_refused(ask: Ask) -> None:
    assert (await ask(free_port())).health == "refused"


async def test_all_of_it_is_an_answer(ask: Ask) -> None:
    async with serving(healthy()) as port:
        assert await ask(port) == Asked("200", "16 tokens came back", proven=True)
        assert await ask(port, "owner") == Asked("200", "a request came back earlier", proven=True)
        assert await ask(port, "nothing") == Asked("200")


async def test_a_healthy_server_of_somebody_else_is_none_of_ours(ask: Ask) -> None:
    async with serving(healthy()) as port:
        record = await asyncio.to_thread(this_process, port)
        assert record.process is not None
        another = replace(record, process=replace(record.process, start_ticks=1))
        asked = await ask(port, "request", another)
    assert (asked.health, asked.proven) == ("200", False)
    assert "belongs to another process" in asked.detail


async def test_too_few_tokens_prove_nothing(ask: Ask) -> None:
    async with serving(healthy(tokens=9)) as port:
        asked = await ask(port)
    assert (asked.proven, asked.detail) == (False, "a request came back with 9 of 16 tokens")


async def test_a_request_that_breaks_is_told_beside_the_health(ask: Ask) -> None:
    def handle(request: bytes) -> bytes:
        return b"" if b"/v1/completions" in request else healthy()(request)

    async with serving(handle) as port:
        asked = await ask(port)
    assert (asked.health, asked.proven) == ("reset", False)
    assert asked.detail.startswith("health is 200, but a request: ")


async def test_a_proxy_variable_changes_nothing(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    async with serving(healthy()) as port:
        assert (await ask(port)).proven


async def test_sglang_is_asked_to_drop_its_requests() -> None:
    seen: list[bytes] = []

    def handle(request: bytes) -> bytes:
        seen.append(request)
        return http(200)

    client = HostHttp(LocalTransport())
    async with serving(handle) as port:
        assert await SglangApi().drop_requests(client, "127.0.0.1", port) == "requests dropped"
    assert seen[0].startswith(b"POST /abort_request ")
    assert seen[0].endswith(b'{"abort_all": true}')
    await client.aclose()


def test_sglangs_cheap_endpoint_is_used_where_it_is() -> None:
    api = SglangApi()
    assert [api.health_path(v) for v in (None, "0.5.12.post1", "0.5.23", "0.6.0")] == [
        "/health", "/health", "/ready", "/ready",
    ]  # fmt: skip


async def test_an_endless_answer_ends() -> None:
    client = HostHttp(LocalTransport())
    async with serving(lambda _: b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (9 * 1024 * 1024)) as port:
        with pytest.raises(BadInputError, match="larger than"):
            await client.get("127.0.0.1", port, "/", timeout_s=20)
    async with serving(lambda _: b"") as port:
        with pytest.raises(ConnectionResetAtHostError):
            await client.get("127.0.0.1", port, "/", timeout_s=5)
    await client.aclose()


def test_the_pace_follows_phase_and_cost() -> None:
    assert interval_s("weights", "refused", proven=False, costs=False) > interval_s(
        "warm-up", "503", proven=False, costs=False
    )
    assert interval_s("warm-up", "503", proven=False, costs=True) >= 2.0
    assert interval_s("serving", "200", proven=True, costs=True) >= 60.0
