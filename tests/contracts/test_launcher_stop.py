"""Launcher: stopping, proven. Witness: every process id that the victim itself ever said, looked up in /proc."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator

import pytest

from tests.contracts.conftest import Host
from tests.contracts.launches import Bench, alive_of, bench_on, log_of
from tests.support.victims import pids_in
from tests.support.waiting import free_port, is_alive, until

pytestmark = pytest.mark.parametrize(
    "host", ["local", "ssh-user", pytest.param("ssh-root", marks=pytest.mark.faults)], indirect=True
)

VICTIMS = {
    "plain": (),
    "forks": ("--children", "3"),
    "daemons": ("--children", "1", "--daemons", "2"),
    "scrubbed": ("--scrubbed", "2", "--renamed", "1"),
    "ignores-term": ("--ignore-term", "--children", "2", "--daemons", "1"),
    "children-ignore-term": ("--children-ignore-term", "--children", "2"),
    "respawns": ("--respawn", "--children-ignore-term"),
    "respawns-and-ignores": ("--respawn", "--ignore-term"),
    "hops": ("--hopping",),
    "drains-for-ever": ("--drain", "--port", "0"),
    "child-holds-port": ("--port", "0", "--children", "1", "--child-holds-port", "--children-ignore-term"),
}
ROUNDS = 20


@pytest.fixture
async def bench(host: Host) -> AsyncIterator[Bench]:
    async with bench_on(host) as bench:
        yield bench


async def stop_one(bench: Bench, flags: tuple[str, ...], neighbour: subprocess.Popen[bytes]) -> None:
    record = await bench.start_victim(*flags)
    events = await bench.stop(record.launch_id, grace_s=0.5)
    last = events[-1]
    assert last.left_over == (), last
    assert last.clean
    assert alive_of(record) == {}
    assert is_alive(neighbour.pid)
    found = await bench.launcher.observe(record.launch_id)
    assert found is not None
    assert found.alive is False
    assert found.stop is not None
    assert found.exited
    if last.killed and "--ignore-term" in flags:
        assert found.exit_status == 128 + signal.SIGKILL
    if flags == ():
        assert (found.exit_status, last.killed) == (0, False)


@pytest.mark.parametrize("kind", VICTIMS)
async def test_nothing_of_it_is_left_and_the_neighbour_lives(
    bench: Bench, neighbour: subprocess.Popen[bytes], kind: str
) -> None:
    await stop_one(bench, VICTIMS[kind], neighbour)


@pytest.mark.faults
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", VICTIMS)
async def test_twenty_times_each(bench: Bench, neighbour: subprocess.Popen[bytes], kind: str) -> None:
    for _ in range(ROUNDS):
        await stop_one(bench, VICTIMS[kind], neighbour)


async def test_the_steps_are_told_in_order(bench: Bench) -> None:
    record = await bench.start_victim("--ignore-term")
    events = await bench.stop(record.launch_id, grace_s=0.5)
    phases = [event.phase for event in events]
    assert phases[0] == "asked"
    assert [phase for phase in ("asked", "term", "grace", "kill", "finished") if phase in phases] == [
        "asked", "term", "grace", "kill", "finished",
    ]  # fmt: skip
    assert all(event.text for event in events)
    assert events[-1].killed


async def test_requests_are_dropped_before_term(bench: Bench) -> None:
    record = await bench.start_victim()
    told: list[bytes] = []

    async def drop() -> str:
        told.append(await asyncio.to_thread(log_of, record))
        return "2 requests dropped"

    events = [
        event async for event in bench.launcher.stop(record.launch_id, by="me", at_s=0.0, grace_s=5, drop_requests=drop)
    ]
    assert len(told) == 1
    assert b'"signal"' not in told[0]
    assert "2 requests dropped" in [event.text for event in events]


async def test_a_second_stop_at_the_same_time_waits_and_both_are_told_the_truth(bench: Bench) -> None:
    record = await bench.start_victim("--ignore-term", "--children", "2")
    first, second = await asyncio.gather(
        bench.stop(record.launch_id, grace_s=1, by="a@one"), bench.stop(record.launch_id, grace_s=1, by="b@two")
    )
    assert first[-1].clean
    assert second[-1].clean
    assert {first[0].phase, second[0].phase} == {"asked", "waiting-for-lock"}
    waiting = next(events[0] for events in (first, second) if events[0].phase == "waiting-for-lock")
    assert ("a@one" in waiting.text) or ("b@two" in waiting.text)
    assert alive_of(record) == {}


async def test_stopping_again_what_is_stopped_changes_nothing(bench: Bench) -> None:
    record = await bench.start_victim()
    await bench.stop(record.launch_id)
    once = await bench.launcher.observe(record.launch_id)
    again = await bench.stop(record.launch_id)
    twice = await bench.launcher.observe(record.launch_id)
    assert again[-1].clean
    assert not again[-1].killed
    assert once is not None
    assert twice is not None
    assert (once.exit_status, once.log_bytes) == (twice.exit_status, twice.log_bytes)


async def test_what_ended_by_itself_is_not_called_stopped(bench: Bench) -> None:
    record = await bench.start(bench.victim("--exit-status", "9", "--die-after-s", "0"))
    await bench.ended(record.launch_id)
    assert (await bench.stop(record.launch_id))[-1].clean
    found = await bench.launcher.observe(record.launch_id)
    assert found is not None
    assert (found.exit_status, found.stop) == (9, None)


async def test_children_of_a_dead_server_are_found_and_ended(bench: Bench) -> None:
    record = await bench.start_victim("--children", "2", "--daemons", "1", "--scrubbed", "1")
    assert record.process is not None
    os.kill(record.process.pid, signal.SIGKILL)
    await until(lambda: record.process is not None and not is_alive(record.process.pid))
    assert len(alive_of(record)) == 4
    assert (await bench.stop(record.launch_id, grace_s=0.5))[-1].clean
    assert alive_of(record) == {}


async def test_a_cancelled_stop_can_be_asked_for_again(bench: Bench) -> None:
    record = await bench.start_victim("--ignore-term")
    stopping = asyncio.create_task(bench.stop(record.launch_id, grace_s=300))
    await until(lambda: b'"signal": 15' in log_of(record), what="TERM arrived")
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert alive_of(record)
    assert (await bench.stop(record.launch_id, grace_s=0.2))[-1].clean
    assert alive_of(record) == {}


async def test_a_stranger_on_its_port_is_named_and_not_touched(bench: Bench) -> None:
    port = free_port()
    record = await bench.start_victim("--port", str(port), port=port)
    assert record.process is not None
    os.kill(record.process.pid, signal.SIGKILL)
    await until(lambda: record.process is not None and not is_alive(record.process.pid))
    with await until(lambda: take(port), what="the dead server's socket is closed"):
        last = (await bench.stop(record.launch_id))[-1]
    assert len(last.left_over) == 1
    assert str(port) in last.left_over[0].why
    if bench.host.as_root:
        assert last.left_over[0].pid == os.getpid()


async def test_one_launch_is_stopped_and_the_other_lives(bench: Bench) -> None:
    first, second = await bench.start_victim("--daemons", "1"), await bench.start_victim("--daemons", "1")
    assert (await bench.stop(first.launch_id))[-1].clean
    assert alive_of(first) == {}
    assert set(alive_of(second)) == set(pids_in(log_of(second)))


def take(port: int) -> socket.socket | None:
    """A listener of ours on that port; None while the kernel still closes the last one."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return None
