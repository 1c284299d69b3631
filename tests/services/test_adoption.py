"""Servers started by hand: found in /proc, adopted, read, stopped; the witness is the process itself."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from specconsole.core.hosts.discovery import FoundEngine
from specconsole.demo.models import ModelFiles
from specconsole.errors import NotFoundError
from specconsole.ports import Transport
from specconsole.services.adoption import discover
from specconsole.services.commands import AttachOrder, FoundServer
from specconsole.wiring import Console, open_supervisor
from tests.support.waiting import free_port, is_alive, until, wait_until

SECRET = "topsecret-4711-do-not-show"
StartByHand = Callable[..., "ByHand"]


class ByHand:
    """A real llama.cpp server that a person started from a shell, log and all."""

    def __init__(self, folder: Path, models: ModelFiles, redirect: str) -> None:
        self.port = free_port()
        self.log = folder / "my server.log"
        program = folder / "llama-server"
        # A console script, as pip makes them: the kernel shows `python .../llama-server ...`.
        program.write_text(
            f"#!{sys.executable}\nfrom specconsole.demo.llama_server import main\nraise SystemExit(main())\n"
        )
        program.chmod(0o755)
        command = f'"{program}" --model "{models.target}" --draft "{models.draft}" --port {self.port} {redirect}'
        self.shell = subprocess.Popen(
            ["bash", "-c", f"sleep 300 & {command.format(log=self.log)} & wait"],
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        wait_until(lambda: self.log.exists() and b"listening" in self.log.read_bytes(), what="the server is up")
        self.pid = next(
            pid for pid in _group(self.shell.pid) if b"llama-server" in _cmdline(pid) and b"bash" not in _cmdline(pid)
        )
        self.neighbour = next(pid for pid in _group(self.shell.pid) if _cmdline(pid).startswith(b"sleep"))

    def stop(self) -> None:
        for pid in _group(self.shell.pid):
            os.kill(pid, signal.SIGKILL)
        self.shell.wait(10)


def _group(leader: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.getsid(int(name)) == leader:
                    found.append(int(name))
            except ProcessLookupError:
                continue
    return found


def _cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.fixture
def by_hand(tmp_path: Path, llama_models: ModelFiles) -> Iterator[StartByHand]:
    started: list[ByHand] = []

    def start(redirect: str = '> "{log}" 2>&1') -> ByHand:
        started.append(ByHand(tmp_path, llama_models, redirect))
        return started[-1]

    yield start
    for one in started:
        one.stop()


@asynccontextmanager
async def console(host: str = "local", *, read_only: bool = False) -> AsyncIterator[Console]:
    async with open_supervisor((), read_only=read_only) as it:
        await it.supervisor.add_host(host)
        await it.supervisor.discovered(host)
        yield it


def only(found: list[FoundEngine] | list[FoundServer], pid: int) -> FoundEngine | FoundServer:
    [one] = [one for one in found if one.pid == pid]
    return one


@pytest.mark.parametrize("redirect", ['> "{log}" 2>&1', '2>&1 | tee "{log}" >/dev/null'], ids=["file", "tee"])
async def test_it_is_found_with_port_log_and_owner(ssh_link: Transport, by_hand: StartByHand, redirect: str) -> None:
    server = by_hand(redirect)
    found = only(list(await discover(ssh_link)), server.pid)
    assert isinstance(found, FoundEngine)
    assert (found.engine, found.port, found.log_path) == ("llamacpp", server.port, str(server.log))
    assert (found.user, found.launch_id) == ("root", None)
    assert found.age_s is not None
    assert found.age_s < 60


async def test_offered_adopted_read_and_found_again_by_another_console(by_hand: StartByHand) -> None:
    server = by_hand()
    async with console() as one:
        offers = list(await one.commands.found_servers("local"))
        assert only(offers, server.pid)
        launch_id = await one.commands.attach(AttachOrder("local", "port", str(server.port)))
        view = one.board.launches[launch_id]
        assert (view.adopted, view.ours, view.engine, view.port) == (True, False, "llamacpp", server.port)
        await until(
            lambda: (r := one.board.launches[launch_id].reading) is not None and r.phase in ("ready", "serving")
        )
        spool = one.supervisor.watches[launch_id].intake.spool
        assert spool is not None
        await until(lambda: spool.size_bytes == server.log.stat().st_size)
        assert not [offer for offer in await one.commands.found_servers("local") if offer.pid == server.pid]
        # It is somebody else's server: it was asked nothing, so its log has no request.
        assert one.board.launches[launch_id].health == "not-asked"
        assert b"processing task" not in server.log.read_bytes()
    async with console() as other:
        assert other.board.launches[launch_id].adopted


async def test_a_window_is_told_unasked_and_once(by_hand: StartByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specconsole.services.offers._FIRST_S", 0.0)
    monkeypatch.setattr("specconsole.services.offers._EVERY_S", 0.5)
    server = by_hand()
    async with open_supervisor(("local",), window=True) as console:

        def notes() -> list[str]:
            return [fact.text for fact in console.board.facts if f"port {server.port}, pid {server.pid}," in fact.text]

        await until(notes)
        await asyncio.sleep(1.5)
        assert len(notes()) == 1
        assert "adopt it?" in notes()[0]


async def test_by_pid_and_by_log_it_is_the_same_launch(by_hand: StartByHand) -> None:
    server = by_hand()
    async with console() as it:
        by_pid = await it.commands.attach(AttachOrder("local", "pid", str(server.pid)))
        by_log = await it.commands.attach(AttachOrder("local", "log", str(server.log)))
        assert by_pid == by_log


async def test_stopping_ends_its_tree_and_nothing_of_the_shell_it_came_from(by_hand: StartByHand) -> None:
    server = by_hand()
    async with console() as it:
        launch_id = await it.commands.attach(AttachOrder("local", "pid", str(server.pid)))
        plan = await it.commands.stop_plan(launch_id)
        assert not plan.ours
        assert len(plan.processes) == 1
        await it.commands.stop(launch_id)
        assert not is_alive(server.pid)
        assert is_alive(server.neighbour)
        assert is_alive(server.shell.pid)
        await until(lambda: it.board.launches[launch_id].state in ("stopped", "failed"))


async def test_a_log_without_a_known_process_is_read_all_the_same(tmp_path: Path) -> None:
    log = tmp_path / "old.log"
    log.write_bytes(b"0.00.696.200 I srv  llama_server: model loaded\n")
    async with console() as it:
        launch_id = await it.commands.attach(AttachOrder("local", "log", str(log), name="old one"))
        view = it.board.launches[launch_id]
        assert (view.name, view.adopted) == ("old one", True)
        await until(lambda: (r := it.board.launches[launch_id].reading) is not None and r.lines == 1)


async def test_a_log_command_is_followed_across_a_cut_without_gap_or_repeat(
    tmp_path: Path, ssh_proxy: object, ssh_account: str, sshd: object
) -> None:
    from tests.support.fault_proxy import FaultProxy
    from tests.support.sshd_lab import SshdLab

    assert isinstance(ssh_proxy, FaultProxy)
    assert isinstance(sshd, SshdLab)
    # `tail -n +1 -f` stands for a container's log: it prints its past again whenever it is started.
    log = sshd.homes[ssh_account] / "command.log"
    log.write_bytes(b"".join(b"line %d\n" % number for number in range(2000)))
    log.chmod(0o644)
    async with console("proxied") as it:
        order = AttachOrder("proxied", "log-command", f"tail -n +1 -f {log}")
        launch_id = await it.commands.attach(order)
        spool = await until(lambda: it.supervisor.watches[launch_id].intake.spool)
        await until(lambda: spool.size_bytes == log.stat().st_size)
        ssh_proxy.cut()
        with log.open("ab") as file:
            file.write(b"".join(b"line %d\n" % number for number in range(2000, 4000)))
        await until(lambda: spool.size_bytes >= log.stat().st_size, timeout_s=60)
        await asyncio.sleep(0.3)
        assert spool.path.read_bytes() == log.read_bytes()
        assert not spool.marks


async def test_a_log_command_without_room_for_it_is_asked_again_and_again(tmp_path: Path, isolated_home: Path) -> None:
    from tests.support.sshd_lab import sshd_lab

    with sshd_lab(options={"MaxSessions": "2"}) as lab:
        lab.client_config(isolated_home, alias="few", user=lab.accounts[0])
        log = lab.homes[lab.accounts[0]] / "command.log"
        log.write_bytes(b"".join(b"line %d\n" % number for number in range(500)))
        async with console("few") as it:
            launch_id = await it.commands.attach(AttachOrder("few", "log-command", f"tail -n +1 -f {log}"))
            spool = await until(lambda: it.supervisor.watches[launch_id].intake.spool)
            for total in (1000, 1500):
                with log.open("ab") as file:
                    file.write(b"".join(b"line %d\n" % number for number in range(total - 500, total)))
                await until(lambda: spool.size_bytes >= log.stat().st_size)
            assert spool.path.read_bytes() == log.read_bytes()
            assert not spool.marks


async def test_nobody_there_is_said_with_what_to_try() -> None:
    async with console() as it:
        with pytest.raises(NotFoundError, match="no engine that we know"):
            await it.commands.attach(AttachOrder("local", "port", str(free_port())))
        with pytest.raises(NotFoundError, match="no such file"):
            await it.commands.attach(AttachOrder("local", "log", "/nonexistent/log"))
