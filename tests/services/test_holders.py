"""Who holds a port or a GPU, and ending one: real processes and sockets, the GPU tool is a simulated one.

Witness: /proc and the sockets, read by the test itself.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from specconsole.adapters.hardware_tools import HostHardware
from specconsole.adapters.local import LocalTransport
from specconsole.core.hardware.holders import LOOK, Holder, container_hint, parse_look, whose, why_not
from specconsole.errors import BadInputError, RefusedError
from specconsole.ports import Transport
from specconsole.services.holders import HostHolders
from tests.support.fixtures_gpus import FakeGpus
from tests.support.fixtures_processes import StartVictim
from tests.support.fixtures_ssh import ssh_host
from tests.support.sshd_lab import SshdLab
from tests.support.victims import victim_argv
from tests.support.waiting import is_alive, wait_until

LAUNCH = "20260101-000000-abcdef"


async def owners(ids: object) -> dict[str, tuple[str, str, bool]]:
    return {LAUNCH: ("eagle3", "bob@desk", False)}


@pytest.fixture
async def way() -> AsyncIterator[Transport]:
    transport = LocalTransport()
    yield transport
    await transport.aclose()


def of(way: Transport) -> HostHolders:
    return HostHolders(way, HostHardware(), owners)


async def the_one(way: Transport, pid: int) -> Holder:
    return await of(way).one(pid)


async def test_a_holder_is_told_in_full(
    way: Transport, start_victim: StartVictim, fake_gpus: FakeGpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    victim = start_victim("--port", "0", "--children", "1", "--child-holds-port",
                          environment={"SPECCONSOLE_LAUNCH": LAUNCH})  # fmt: skip
    fake_gpus.set(gpus=[{"index": 0}, {"index": 1, "memory.used": 9000}], apps=[["GPU-fake-1", victim.pid, 8192]])
    picture = await of(way).look(port=victim.port)
    assert {one.pid for one in picture.holders} == set(victim.alive())
    main = next(one for one in picture.holders if one.pid == victim.pid)
    assert main.ports == (victim.port,)
    assert main.gpus == ()  # only the port was looked at
    main = await the_one(way, victim.pid)
    assert main.gpus == ((1, 8192 * 2**20),)
    stat = Path(f"/proc/{victim.pid}/stat").read_text()
    assert (main.start_ticks, main.ppid) == (int(stat.rpartition(")")[2].split()[19]), os.getpid())
    assert main.command == " ".join(victim_argv("--port", "0", "--children", "1", "--child-holds-port"))
    assert main.cwd == str(tmp_path)
    assert main.parent == Path("/proc/self/cmdline").read_text().replace("\0", " ").strip()[:400]
    assert main.age_s is not None
    assert main.age_s < 60
    assert (main.launch_id, main.launch_name, main.launch_owner, main.ours) == (LAUNCH, "eagle3", "bob@desk", False)
    assert whose(main) == f"launch {LAUNCH} (eagle3, started by bob@desk)"
    on_gpu = await of(way).look(gpu=1)
    assert [one.pid for one in on_gpu.holders] == [victim.pid]
    with pytest.raises(BadInputError, match="no GPU 7"):
        await of(way).look(gpu=7)


@pytest.mark.parametrize("stubborn", [False, True])
async def test_the_picked_one_ends_and_nobody_else(
    way: Transport, start_victim: StartVictim, neighbour: subprocess.Popen[bytes], stubborn: bool
) -> None:
    victim = start_victim("--port", "0", *(["--ignore-term"] if stubborn else []))
    picked = await the_one(way, victim.pid)
    said: list[str] = []
    done = await of(way).evict(picked, str(victim.pid), said.append, grace_s=0.5 if stubborn else 20.0)
    assert (done.gone, done.killed, done.left) == (True, stubborn, ())
    assert not is_alive(victim.pid)
    assert is_alive(neighbour.pid)
    assert b'"signal": 15' in victim.log.read_bytes()  # it was asked first
    assert f"nobody holds port {picked.ports[0]}" in done.text
    assert said[0] == f"TERM sent to pid {victim.pid}"


async def test_only_this_process_is_signalled_and_who_holds_it_still_is_named(
    way: Transport, start_victim: StartVictim
) -> None:
    victim = start_victim("--port", "0", "--children", "1", "--child-holds-port", "--children-ignore-term")
    child = next(pid for pid, role in victim.pids.items() if role == "child")
    picked = await the_one(way, victim.pid)
    done = await of(way).evict(picked, picked.name, lambda _: None)
    assert (done.gone, [one.pid for one in done.left]) == (True, [child])
    assert is_alive(child)
    assert f"pid {child}" in done.text


async def test_nothing_is_sent_without_the_right_word(way: Transport, start_victim: StartVictim) -> None:
    victim = start_victim("--port", "0")
    picked = await the_one(way, victim.pid)
    for typed in ("", "y", str(victim.pid + 1), f"{victim.pid} {victim.pid}"):
        with pytest.raises(RefusedError, match="nothing was sent"):
            await of(way).evict(picked, typed, lambda _: None)
    # The number was given to another process since the look.
    with pytest.raises(RefusedError, match="another process by now"):
        await of(way).evict(replace(picked, start_ticks=picked.start_ticks - 1), str(victim.pid), lambda _: None)
    assert is_alive(victim.pid)
    assert b'"signal"' not in victim.log.read_bytes()


async def test_ourselves_and_those_above_us_are_never_ended(way: Transport) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mine:
        me = await the_one(way, os.getpid())
        assert mine.getsockname()[1] in me.ports
        assert "this console is there through it" in me.why_not
        with pytest.raises(RefusedError, match="this console"):
            await of(way).evict(me, str(os.getpid()), lambda _: None)


async def test_over_ssh_the_links_own_server_is_never_ended(
    request: pytest.FixtureRequest, start_victim: StartVictim, sshd: SshdLab
) -> None:
    victim = start_victim("--port", "0")
    async with ssh_host(request, "root") as (link, _, account):
        picture = await of(link).look()
        servers = [one for one in picture.holders if sshd.port in one.ports]
        assert servers
        assert all("this console is there through it" in one.why_not for one in servers)
        with pytest.raises(RefusedError, match="this console"):
            await of(link).evict(servers[0], str(servers[0].pid), lambda _: None)
        done = await of(link).evict(await the_one(link, victim.pid), str(victim.pid), lambda _: None)
    assert done.gone
    assert not is_alive(victim.pid)
    assert account == "root"


async def test_what_another_user_holds_is_said_and_left_alone(
    request: pytest.FixtureRequest, start_victim: StartVictim
) -> None:
    victim = start_victim("--port", "0")
    async with ssh_host(request, "user") as (link, _, _):
        picture = await of(link).look(port=victim.port)
        assert picture.holders == ()
        assert picture.notes == (f"port {victim.port} is held by a process of uid 0, which this account can't see",)
        with pytest.raises(RefusedError, match="holds no port"):
            await the_one(link, victim.pid)
    assert is_alive(victim.pid)


@pytest.mark.parametrize(
    ("cgroup", "hint"),
    [
        ("0::/user.slice/user-0.slice/session-1.scope ", ""),
        ("0::/ ", ""),
        (f"0::/system.slice/docker-{'ab' * 32}.scope ", "docker abababababab"),
        (f"12:pids:/docker/{'cd' * 32} 11:cpu:/docker/{'cd' * 32} ", "docker cdcdcdcdcdcd"),
        (f"0::/kubepods.slice/kubepods-pod12.slice/cri-containerd-{'ef' * 32}.scope ", "containerd efefefefefef"),
        ("0::/lxc/build/x ", "lxc build"),
        (f"0::/machine.slice/libpod-{'01' * 32}.scope ", "libpod 010101010101"),
    ],
)
def test_the_container_is_hinted_by_the_control_group(cgroup: str, hint: str) -> None:
    assert container_hint(cgroup) == hint


def test_the_first_process_and_the_kernels_threads_are_out_of_reach() -> None:
    def holder(pid: int, *, kernel: bool = False, state: str = "S") -> Holder:
        return Holder(pid, 1, "boot", "x", state, 0, kernel=kernel)

    assert "first process" in why_not(holder(1), (), ours=False)
    assert "kernel" in why_not(holder(2), (), ours=False)
    assert "kernel" in why_not(holder(9, kernel=True), (), ours=False)
    assert "specconsole stop" in why_not(holder(9), (), ours=True)
    assert "dead already" in why_not(holder(9, state="Z"), (), ours=False)
    assert why_not(holder(9), (), ours=False) == ""


async def test_a_kernel_thread_is_told_by_the_kernels_own_flag(way: Transport) -> None:
    found = [
        path.parent.name for path in Path("/proc").glob("[0-9]*/comm") if re.match(r"kthreadd|kworker", _text(path))
    ]
    if not found:
        pytest.skip("this machine shows no kernel threads (a container)")
    looked = parse_look((await way.run_sh(LOOK, found[:3])).stdout)
    assert looked.holders
    assert all(one.kernel for one in looked.holders)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


@pytest.fixture
def liar(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Listens, and has a command line that looks like the answer of a look."""
    lie = "x\n#pid=1\nuser=root\rlaunch=forged\x1b[2J\u2028user=nobody"
    program = "import socket,time; s=socket.create_server(('127.0.0.1',0)); print(1,flush=True); time.sleep(600)"
    log = tmp_path / "log"
    with log.open("wb") as sink:
        process = subprocess.Popen([sys.executable, "-S", "-E", "-c", program, lie], stdout=sink)
    wait_until(log.read_bytes, what="it listens")
    yield process
    process.kill()
    process.wait(10)


async def test_a_command_line_can_make_no_other_process_up(way: Transport, liar: subprocess.Popen[bytes]) -> None:
    picture = await of(way).look()
    [found] = [one for one in picture.holders if one.pid == liar.pid]
    assert found.launch_id == ""
    assert found.command.isprintable()
    assert found.user == Path(f"/proc/{liar.pid}").owner()
    assert 1 not in {one.pid for one in picture.holders}
