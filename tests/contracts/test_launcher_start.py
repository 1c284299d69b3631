"""Launcher: starting, finding again, and what is recorded. Witness: /proc and the files, read by the test itself."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from specconsole.adapters.process_launcher import ProcessLauncher
from specconsole.errors import NotFoundError, RefusedError, SpecconsoleError
from tests.contracts.conftest import Host
from tests.contracts.launches import Bench, alive_of, bench_on, log_of, mark_of
from tests.support.leaks import command_of
from tests.support.waiting import all_pids, environ_of, free_port, is_alive, until

pytestmark = pytest.mark.parametrize("host", ["local", "ssh-user"], indirect=True)

SLEEP = ("sh", "-c", "echo up; exec sleep 300")


@pytest.fixture
async def bench(host: Host) -> AsyncIterator[Bench]:
    async with bench_on(host) as bench:
        yield bench


async def test_a_started_server_is_marked_detached_and_recorded(bench: Bench) -> None:
    spec = bench.spec(*SLEEP, model="/models/x", tags=("a", "b"), settings={"k": [1, "é"]})
    record = await bench.start(spec)
    assert record.process is not None
    pid = record.process.pid
    assert mark_of(pid) == spec.launch_id
    assert os.getsid(pid) == pid == os.getpgid(pid)
    assert record.alive is True
    assert record.exit_status is None
    assert record.spec == spec
    assert record.problem == ""
    assert record.process.start_ticks == int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    assert record.age_s is not None
    assert 0 <= record.age_s < 60
    assert abs((record.started_at_s or 0) - time.time()) < 60
    for stream in (0, 1, 2):
        assert os.readlink(f"/proc/{pid}/fd/{stream}") == ("/dev/null" if stream == 0 else record.log_path)
    await until(lambda: log_of(record) == b"up\n", what="its first line is in the log")


async def test_every_argument_and_variable_arrives_byte_for_byte(bench: Bench) -> None:
    words = [
        "",
        "a b",
        "'",
        '"',
        "$(id)",
        "`id`",
        "\n",
        "\\",
        "-n",
        "--",
        "*",
        "é",
        "日本",
        os.fsdecode(b"\xff\xfe"),
        "%s",
        "#",
    ]
    env = {"PLAIN": "1", "ODD": "a'b\"c\n$(id) \\ é", "EMPTY": ""}
    record = await bench.start(bench.spec("sh", "-c", 'printf "%s\\0" "$@"; exec sleep 300', "sh", *words, env=env))
    expected = b"".join(os.fsencode(word) + b"\0" for word in words)
    await until(lambda: log_of(record) == expected, what=f"the arguments are in the log: {log_of(record)!r}")
    assert record.process is not None
    seen = environ_of(record.process.pid)
    assert {name: seen[os.fsencode(name)] for name in env} == {name: os.fsencode(value) for name, value in env.items()}


async def test_secrets_are_in_the_environment_and_nowhere_else(bench: Bench) -> None:
    secret = "s3cret'\"$(id)\\ " + os.urandom(8).hex()
    seen: list[str] = []
    over = asyncio.Event()

    async def watch() -> None:
        """Every command line on this machine, as fast as we can look, while the launch starts."""
        while not over.is_set():
            seen.extend(command for pid in all_pids() if secret[-16:] in (command := command_of(pid)))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(watch())
        record = await bench.start(bench.spec(*SLEEP, secret_places={"HF_TOKEN": "env:HF_TOKEN"}), {"HF_TOKEN": secret})
        await until(lambda: b"up" in log_of(record))
        over.set()
    assert seen == []
    assert record.process is not None
    assert environ_of(record.process.pid)[b"HF_TOKEN"] == secret.encode()
    folder = Path(record.folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in folder.iterdir():
        assert secret[-16:].encode() not in path.read_bytes(), path
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize(
    ("end", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)]
)
async def test_the_exit_status_is_recorded(bench: Bench, end: str, status: int) -> None:
    record = await bench.start(bench.spec("sh", "-c", f"echo out; echo err >&2; ulimit -c 0; {end}"))

    record = await bench.ended(record.launch_id)
    assert record.exit_status == status
    assert record.alive is False
    assert log_of(record) == b"out\nerr\n"
    assert record.log_bytes == 8


async def test_without_its_wrapper_the_status_is_unknown(bench: Bench) -> None:
    record = await bench.start(bench.spec(*SLEEP))
    assert record.wrapper is not None
    assert record.process is not None
    os.kill(record.wrapper[0], 9)
    os.kill(record.process.pid, 9)
    await until(lambda: record.process is not None and not is_alive(record.process.pid))
    found = await bench.launcher.observe(record.launch_id)
    assert found is not None
    assert (found.alive, found.exit_status, found.exited) == (False, None, False)


async def test_another_console_finds_it_from_the_host_alone(bench: Bench, host: Host) -> None:
    first = await bench.start(bench.spec(*SLEEP))
    second = await bench.start(bench.spec("sh", "-c", "exit 3"))
    await until(lambda: second.process is not None and not is_alive(second.process.pid))
    found = {record.launch_id: record for record in await ProcessLauncher(host.transport).discover()}
    assert set(found) == {first.launch_id, second.launch_id}
    assert found[first.launch_id].process == first.process
    assert found[first.launch_id].alive is True
    assert found[second.launch_id].alive is False


async def test_broken_folders_hide_no_others_and_say_what_is_wrong(bench: Bench) -> None:
    whole = await bench.start(bench.spec(*SLEEP))
    root = Path(whole.folder).parent
    for name, files in (
        ("20250101-empty", {}),
        ("20250102-cut", {"requested.json": '{"schema": 1, "launch_id": "2025', "process": "pid=12"}),
        ("20250103-newer", {"requested.json": '{"schema": 99}'}),
        ("20250104-bytes", {"requested.json": "\xff\xfe\n", "exit": "zero\n", "stop": "{"}),
    ):
        (root / name).mkdir()
        for file, text in files.items():
            (root / name / file).write_bytes(text.encode("latin-1"))
    found = {record.launch_id: record for record in await bench.launcher.discover()}
    assert found[whole.launch_id].problem == ""
    broken = [record for name, record in found.items() if name != whole.launch_id]
    assert len(broken) == 4
    assert all(record.problem and record.spec is None and not record.alive for record in broken)
    assert "newer" in found["20250103-newer"].problem
    for record in broken:
        await bench.stop(record.launch_id)


async def test_one_id_is_started_once(bench: Bench) -> None:
    record = await bench.start(bench.spec(*SLEEP))
    with pytest.raises(SpecconsoleError):
        await bench.launcher.start(bench.spec(*SLEEP, launch_id=record.launch_id), {})
    found = await bench.launcher.observe(record.launch_id)
    assert found is not None
    assert found.process == record.process
    assert found.alive is True


async def test_two_starts_on_one_port_at_once_are_one_server(bench: Bench) -> None:
    port = free_port()
    specs = [bench.victim("--port", str(port), port=port) for _ in range(2)]
    results = await asyncio.gather(*(bench.start(spec) for spec in specs), return_exceptions=True)
    # Both may pass when the first had not opened its port yet; then its own bind decides, and one of them dies.
    refused = [result for result in results if isinstance(result, RefusedError)]
    started = [result for result in results if not isinstance(result, BaseException)]
    assert len(refused) + len(started) == 2
    assert started
    await until(lambda: any(b'"port"' in log_of(record) for record in started), what="one holds the port")
    await until(lambda: sum(bool(alive_of(record)) for record in started) == 1, what="exactly one lives")


async def test_a_held_port_is_refused_and_its_holder_named(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        with pytest.raises(RefusedError, match=str(port)) as refused:
            await bench.launcher.start(bench.spec(*SLEEP, port=port), {})
        findings = {finding.check: finding for finding in await bench.launcher.preflight(bench.spec(*SLEEP, port=port))}
    assert findings["port"].severity == "stop"
    if bench.host.as_root:
        assert f"pid {os.getpid()}" in findings["port"].text
    assert refused.value.try_
    assert await bench.launcher.discover() == ()


async def test_preflight_sees_what_is_missing_and_changes_nothing(bench: Bench) -> None:
    there = bench.host.folder / "model.gguf"
    there.write_bytes(b"x" * 1000)
    spec = bench.spec("no-such-server", model="/no/such/model", draft_model=str(there))
    before = sorted(os.listdir(bench.host.folder))
    findings = {finding.check: finding for finding in await bench.launcher.preflight(spec)}
    assert findings["binary"].severity == "stop"
    assert "no-such-server" in findings["binary"].text
    assert findings["model"].severity == "stop"
    assert "/no/such/model" in findings["model"].text
    assert findings["draft"].severity == "ok"
    assert findings["memory"].severity == "ok"
    assert sorted(os.listdir(bench.host.folder)) == before
    good = await bench.launcher.preflight(bench.spec(*SLEEP, port=free_port()))
    assert {finding.severity for finding in good} == {"ok"}


async def test_a_program_that_is_not_there_ends_at_once_and_says_so(bench: Bench) -> None:
    record = await bench.start(bench.spec("no-such-server-anywhere"))
    await until(lambda: b"no-such-server-anywhere" in log_of(record), what="the log names it")
    found = await bench.ended(record.launch_id)
    assert found.exit_status == 127


async def test_a_state_folder_that_cannot_be_written_is_one_clear_error(bench: Bench) -> None:
    home = (await bench.host.transport.run_sh('printf %s "$HOME"')).stdout.decode()
    # A file stands where the folder should be: not even root can write there.
    state = Path(home) / ".local" / "state" / "specconsole"
    if state.exists():
        state.rename(state.with_name("specconsole.aside"))
    state.parent.mkdir(parents=True, exist_ok=True)
    state.write_text("in the way")
    try:
        with pytest.raises(SpecconsoleError, match="state folder") as failed:
            await bench.launcher.start(bench.spec(*SLEEP), {})
        assert failed.value.where
        assert failed.value.try_
    finally:
        state.unlink()
        aside = state.with_name("specconsole.aside")
        if aside.exists():
            aside.rename(state)


async def test_who_listens_is_told_by_the_socket_not_by_the_port(
    bench: Bench, neighbour: subprocess.Popen[bytes]
) -> None:
    record = await bench.start_victim("--port", "0")
    mine = next(fact for fact in log_of(record).split(b"\n") if b'"port"' in fact)
    port = int(mine.rpartition(b": ")[2].rstrip(b"}"))
    assert await bench.launcher.owns_listener(record, port) is True
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert await bench.launcher.owns_listener(record, other.getsockname()[1]) is not True
    assert await bench.launcher.owns_listener(record, free_port()) is False


async def test_a_free_port_is_free(bench: Bench) -> None:
    port = await bench.launcher.free_port()
    with socket.create_server(("127.0.0.1", port)):
        pass


async def test_all_its_processes_are_known_whatever_they_did(bench: Bench, neighbour: subprocess.Popen[bytes]) -> None:
    record = await bench.start_victim("--children", "2", "--daemons", "2", "--scrubbed", "1", "--renamed", "1")
    known = {process.pid for process in await bench.launcher.processes(record.launch_id)}
    assert known == set(alive_of(record))
    assert neighbour.pid not in known


async def test_several_at_once(bench: Bench) -> None:
    records = await asyncio.gather(
        *(bench.start(bench.spec("sh", "-c", f"echo {n}; exec sleep 300")) for n in range(5))
    )
    for number, record in enumerate(records):
        await until(lambda r=record, n=number: log_of(r) == b"%d\n" % n)
    assert len(await bench.launcher.discover()) == 5


async def test_what_is_not_there_is_not_found(bench: Bench) -> None:
    assert await bench.launcher.observe("20200101-000000-none") is None
    with pytest.raises(NotFoundError):
        await bench.launcher.processes("20200101-000000-none")
    with pytest.raises(NotFoundError):
        await bench.stop("20200101-000000-none")
