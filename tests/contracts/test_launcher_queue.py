"""Launches that wait for their turn on the host: real processes and sockets; the GPU tool is a simulated one.

Witness: /proc, the sockets themselves and the queue folder, read by the test.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.launching.observed import facts_of
from specconsole.core.launching.waiting import reason_text
from specconsole.errors import BadInputError
from tests.contracts.conftest import Host
from tests.contracts.launches import Bench, bench_on, log_of, mark_of
from tests.support.fixtures_gpus import FakeGpus
from tests.support.fixtures_processes import StartVictim
from tests.support.waiting import PATIENCE_S, all_pids, environ_of, free_port, is_alive, until

SLEEP = ("sh", "-c", "echo up; exec sleep 300")
SECRET = "topsecret-while-it-waits"
Condition = Callable[[LaunchRecord], object]
local = pytest.mark.parametrize("host", ["local"], indirect=True)


@pytest.fixture
async def bench(host: Host) -> AsyncIterator[Bench]:
    async with bench_on(host) as bench:
        yield bench


async def queued(bench: Bench, *argv: str, needs: tuple[str, ...], **more: object) -> LaunchRecord:
    spec = bench.spec(*(argv or SLEEP), needs=needs, when_free=True, look_every_s=0.2, **more)
    return await bench.start(spec, dict.fromkeys(spec.secret_names, SECRET))


async def seen(bench: Bench, launch_id: str) -> LaunchRecord:
    found = await bench.launcher.observe(launch_id)
    assert found is not None
    return found


async def once(bench: Bench, launch_id: str, what: str, condition: Condition) -> LaunchRecord:
    """The record when it fulfils the condition."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition(record := await seen(bench, launch_id)):
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {what}; {record}"
        await asyncio.sleep(0.05)
    return record


def waits_for(kind: str) -> Condition:
    return lambda record: record.waiting and any(reason.kind == kind for reason in record.waiting.reasons)


@pytest.mark.parametrize("host", ["local", "ssh-user"], indirect=True)
async def test_it_waits_for_a_port_says_for_whom_and_starts_when_it_is_free(
    bench: Bench, start_victim: StartVictim
) -> None:
    holder = start_victim("--port", "0")
    record = await queued(
        bench, "sh", "-c", 'echo "$TOKEN"; exec sleep 300', needs=(f"port={holder.port}",), port=holder.port,
        secret_places={"TOKEN": "env:X"},
    )  # fmt: skip
    assert (record.waits, record.alive, record.over) == (True, None, False)
    record = await once(bench, record.launch_id, "it says for whom it waits", waits_for("port"))
    assert record.waiting is not None
    [reason] = record.waiting.reasons
    if bench.host.as_root:
        assert [one.pid for one in reason.holders] == [holder.pid]
        assert str(holder.pid) in reason_text(reason)
        assert "victim.py" in reason_text(reason)
    # Nothing of the secret is on the disk while it waits, nor in any command line.
    files = [path for path in Path(record.folder).rglob("*") if path.is_file()]
    assert len(files) >= 6
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert is_alive(record.waiter.pid if record.waiter else 0)
    holder.destroy()
    record = await once(bench, record.launch_id, "it is started", lambda one: one.alive)
    assert record.process is not None
    await until(lambda: log_of(record) == f"{SECRET}\n".encode(), what="the server has its secret")
    assert mark_of(record.process.pid) == record.launch_id
    # Detached, with nothing of the waiter's in its environment but the mark.
    assert os.getsid(record.process.pid) == record.process.pid
    names = {name.decode() for name in environ_of(record.process.pid)}
    assert not names & {"needs", "keys", "ticket", "queue", "own", "specconsole_keys", "turn", "place", "port", "rows"}
    assert not (Path(record.folder) / "secrets.sh").exists()


@local
async def test_two_that_wait_for_one_port_start_in_order(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        server = f"import socket,time; s=socket.create_server(('127.0.0.1',{port})); time.sleep(300)"
        argv = ("/usr/bin/python3", "-S", "-E", "-c", server)
        first = await queued(bench, *argv, needs=(f"port={port}",), port=port)
        second = await queued(bench, *argv, needs=(f"port={port}",), port=port)
        other = await queued(bench, needs=(f"port={free_port()}",))
        await once(bench, other.launch_id, "who wants something else does not wait", lambda one: one.alive)
        record = await once(bench, second.launch_id, "the second is behind the first", waits_for("ahead"))
        assert record.waiting is not None
        assert record.waiting.reasons[0].launch_id == first.launch_id
    await once(bench, first.launch_id, "the first is started", lambda one: one.alive)
    behind = await seen(bench, second.launch_id)
    assert (behind.waits, behind.alive) == (True, None)
    await once(bench, second.launch_id, "the second waits for the first's server",
               lambda one: waits_for("port")(one) or waits_for("promised")(one))  # fmt: skip
    await bench.stop(first.launch_id)
    await once(bench, second.launch_id, "the second is started", lambda one: one.alive)


@local
async def test_gpus_by_a_simulated_tool_and_a_start_that_has_not_taken_its_memory_yet(
    bench: Bench, fake_gpus: FakeGpus, start_victim: StartVictim
) -> None:
    holder = start_victim()
    uuid = "GPU-fake-1"
    full = [{"index": 0}, {"index": 1, "memory.used": 140000}]
    fake_gpus.set(gpus=full, apps=[[uuid, holder.pid, 139000]])
    first = await queued(bench, needs=("gpu=1/100000",))
    second = await queued(bench, needs=("gpu=1/20000",))
    record = await once(bench, first.launch_id, "it says who holds the GPU", waits_for("gpu"))
    assert record.waiting is not None
    [reason] = record.waiting.reasons
    assert (reason.what, reason.free_bytes, reason.needed_bytes) == ("GPU 1", 3771 * 2**20, 100000 * 2**20)
    assert [(one.pid, one.memory_bytes) for one in reason.holders] == [(holder.pid, 139000 * 2**20)]
    fake_gpus.set(says="Failed to initialize NVML: Driver/library version mismatch", exit=18, gpus=full)
    record = await once(bench, first.launch_id, "a broken tool is said, and is not free", waits_for("tool"))
    fake_gpus.set(gpus=[{"index": 0}, {"index": 1}])
    await once(bench, first.launch_id, "it is started", lambda one: one.alive)
    # The tool shows the GPU empty still: what was promised to the first is not the second's.
    record = await once(bench, second.launch_id, "the second leaves it to the first", waits_for("promised"))
    assert record.waiting is not None
    assert record.waiting.reasons[0].launch_id == first.launch_id
    await bench.launcher.mark_answered(first.launch_id, 1.0)
    await once(bench, second.launch_id, "once it answers, memory that is free is free", lambda one: one.alive)


@local
async def test_a_stop_ends_the_waiting_provably(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        record = await queued(bench, needs=(f"port={port}",), port=port)
        mine = [pid for pid in all_pids() if mark_of(pid) == record.launch_id]
        assert record.waiter is not None
        assert record.waiter.pid in mine
        [last] = [event for event in await bench.stop(record.launch_id) if event.phase == "finished"]
        assert not last.alive
        assert [pid for pid in all_pids() if mark_of(pid) == record.launch_id] == []
        record = await seen(bench, record.launch_id)
        assert facts_of(record) == ("stop-verified",)
        assert (record.over, record.exit_status, record.process) == (True, None, None)
        assert not list(Path(record.folder).parents[2].glob("queue/*/*"))


@local
async def test_a_queue_that_cannot_be_kept_is_said_and_leaves_nothing(bench: Bench, isolated_home: Path) -> None:
    state = isolated_home / ".local/state/specconsole"
    state.mkdir(parents=True)
    (state / "queue").write_text("no folder")
    with pytest.raises(BadInputError, match=r"can't be put into the host's queue: .*[Nn]ot a directory"):
        await queued(bench, needs=("port=1",))
    assert await bench.launcher.discover() == ()


@local
async def test_a_waiter_that_was_killed_is_noticed_and_holds_nobody_up(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        first = await queued(bench, needs=(f"port={port}",), port=port)
        second = await queued(bench, needs=(f"port={port}",), port=port)
        await once(bench, second.launch_id, "the second is behind the first", waits_for("ahead"))
        assert first.waiter is not None
        os.kill(first.waiter.pid, signal.SIGKILL)
        record = await once(bench, first.launch_id, "the console sees it", lambda one: one.waits is False)
        assert facts_of(record) == ("start-failed",)
        assert "never started" in record.problem
    await once(bench, second.launch_id, "the second is started", lambda one: one.alive)
    # What was left of the dead waiter went with it.
    await until(
        lambda: not [pid for pid in all_pids() if mark_of(pid) == first.launch_id], what="nothing of it is left"
    )


@local
@pytest.mark.faults
@pytest.mark.timeout(300)
async def test_many_that_want_one_port_run_one_after_the_other_as_they_came(bench: Bench) -> None:
    diary = bench.host.folder / "diary"
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        server = (
            f"import os,socket,time,sys; s=socket.create_server(('127.0.0.1',{port})); "
            "d=lambda w: open(sys.argv[1],'a').write(f'{w} {sys.argv[2]}\\n'); d('begin'); time.sleep(0.5); d('end')"
        )
        ids = [
            (await queued(bench, "/usr/bin/python3", "-S", "-E", "-c", server, str(diary), str(number),
                          needs=(f"port={port}",), port=port)).launch_id
            for number in range(8)
        ]  # fmt: skip
    await until(lambda: diary.exists() and diary.read_text().count("end") == 8, timeout_s=200, what="all have run")
    assert diary.read_text().split("\n")[:-1] == [f"{word} {n}" for n in range(8) for word in ("begin", "end")]
    for launch_id in ids:
        assert (await bench.ended(launch_id)).exit_status == 0


@pytest.mark.parametrize("shell", [name for name in ("dash", "bash", "busybox") if shutil.which(name)])
def test_the_waiter_runs_under_every_shell(shell: str, isolated_home: Path) -> None:
    from specconsole.core.launching.queue_script import needs_file, queue_script
    from specconsole.core.launching.script import server_script, wrapper_script
    from specconsole.core.launching.spec import LaunchSpec

    port = free_port()
    spec = LaunchSpec(
        "20261129-140211-3f9a2c", "it's", "other", ("sh", "-c", 'echo "$KEY $(umask)"'), owner="a'b@c", when_free=True,
        needs=(f"port={port}", "memory/1"), look_every_s=0.1, port=port, secret_places={"KEY": "env:X"},
    )  # fmt: skip
    folder = isolated_home / ".local/state/specconsole/launches/m" / spec.launch_id
    folder.mkdir(parents=True)
    for name, text in (
        ("server.sh", server_script(spec)), ("run.sh", wrapper_script(spec)), ("queue.sh", queue_script(spec)),
        ("needs", needs_file(spec)), ("requested.json", spec.to_json_line()), ("secrets.sh", "export KEY='it''s'\n"),
        ("exit.tmp", f"{'none':<46}\n"),
    ):  # fmt: skip
        (folder / name).write_text(text)
    words = [shell, "sh"] if shell == "busybox" else [shell]
    done = subprocess.run(
        [*words, str(folder / "queue.sh"), str(folder), "022"], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (folder / "server.log").read_text() == "its 0022\n"
    assert (folder / "exit").read_text().split()[0] == "0"
    assert not (folder / "waiting").exists()
    assert not (folder / "secrets.sh").exists()


@pytest.mark.parametrize("shell", [name for name in ("dash", "bash", "busybox") if shutil.which(name)])
def test_every_shell_reads_the_script(shell: str) -> None:
    from specconsole.core.launching.queue_script import queue_script
    from specconsole.core.launching.spec import LaunchSpec

    spec = LaunchSpec("20261129-140211-3f9a2c", "it's", "other", ("x",), owner="a'b@c", when_free=True)
    words = [shell, "sh"] if shell == "busybox" else [shell]
    done = subprocess.run([*words, "-n"], input=queue_script(spec), text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
