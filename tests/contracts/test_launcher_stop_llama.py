"""Launcher: stopping a real llama.cpp server in each of its states. Witness: /proc, the port, the exit status."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from specconsole.core.launching.folder import LaunchRecord
from specconsole.demo.models import ModelFiles
from tests.contracts.conftest import Host
from tests.contracts.launches import Bench, bench_on, log_of, mark_of
from tests.support.llama import llama_argv
from tests.support.waiting import all_pids, free_port, is_alive, until

pytestmark = [
    pytest.mark.real,
    pytest.mark.parametrize("host", ["local", pytest.param("ssh-root", marks=pytest.mark.faults)], indirect=True),
]

ROUNDS = 20


@pytest.fixture
async def bench(host: Host) -> AsyncIterator[Bench]:
    async with bench_on(host) as bench:
        yield bench


async def start(bench: Bench, models: ModelFiles) -> tuple[LaunchRecord, int]:
    port = free_port()
    return await bench.start(bench.spec(*llama_argv(models, port, "--ctx-size", "8192"), port=port)), port


async def open_stream(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A completion that goes on for minutes; its first bytes have come."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({"prompt": "river", "n_predict": 1_000_000, "stream": True, "ignore_eos": True}).encode()
    writer.write(b"POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert await reader.read(100)
    return reader, writer


async def prove_gone(bench: Bench, record: LaunchRecord, port: int) -> LaunchRecord:
    assert record.process is not None
    assert not is_alive(record.process.pid)
    assert [pid for pid in all_pids() if mark_of(pid) == record.launch_id] == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    found = await bench.launcher.observe(record.launch_id)
    assert found is not None
    return found


async def listening(record: LaunchRecord) -> None:
    await until(lambda: b"listening on" in log_of(record), what="it listens")


async def stop_while_loading(bench: Bench, models: ModelFiles) -> None:
    record, port = await start(bench, models)
    await until(lambda: b"loading model" in log_of(record), what="it loads")
    last = (await bench.stop(record.launch_id))[-1]
    assert last.clean
    assert not last.killed
    found = await prove_gone(bench, record, port)
    # TERM while it loads ends it on the spot; a moment later it would have been orderly.
    assert found.exit_status in (143, 0)


async def stop_idle(bench: Bench, models: ModelFiles) -> None:
    record, port = await start(bench, models)
    await listening(record)
    last = (await bench.stop(record.launch_id))[-1]
    assert (last.clean, last.killed, last.exit_status) == (True, False, 0)
    await prove_gone(bench, record, port)


async def stop_with_a_stream_that_is_read(bench: Bench, models: ModelFiles) -> None:
    """It waits for its client after TERM, for ever: only KILL ends it, and that is told."""
    record, port = await start(bench, models)
    await listening(record)
    reader, writer = await open_stream(port)

    async def read_on() -> None:
        with contextlib.suppress(OSError):
            while await reader.read(65536):
                pass

    reading = asyncio.create_task(read_on())
    try:
        last = (await bench.stop(record.launch_id, grace_s=0.5))[-1]
    finally:
        await reading
        writer.close()
    # On a slow machine the context may fill up, and the stream end by itself, before the grace period is over.
    assert last.clean
    assert (last.killed, last.exit_status) in ((True, 137), (False, 0))
    await prove_gone(bench, record, port)


async def stop_with_a_stream_that_nobody_reads(bench: Bench, models: ModelFiles) -> None:
    record, port = await start(bench, models)
    await listening(record)
    _, writer = await open_stream(port)
    try:
        last = (await bench.stop(record.launch_id, grace_s=0.5))[-1]
    finally:
        writer.close()
    assert last.clean
    await prove_gone(bench, record, port)


STATES: dict[str, Callable[[Bench, ModelFiles], Awaitable[None]]] = {
    "loading": stop_while_loading,
    "idle": stop_idle,
    "stream read": stop_with_a_stream_that_is_read,
    "stream not read": stop_with_a_stream_that_nobody_reads,
}


@pytest.mark.parametrize("state", STATES)
async def test_stopped_in_each_state(
    bench: Bench, llama_models: ModelFiles, slow_llama_models: ModelFiles, state: str
) -> None:
    await STATES[state](bench, slow_llama_models if state == "loading" else llama_models)


@pytest.mark.faults
@pytest.mark.timeout(900)
@pytest.mark.parametrize("state", STATES)
async def test_twenty_times_in_each_state(
    bench: Bench, llama_models: ModelFiles, slow_llama_models: ModelFiles, state: str
) -> None:
    for _ in range(ROUNDS):
        await STATES[state](bench, slow_llama_models if state == "loading" else llama_models)
