"""SshLink against a real sshd: login shells, few sessions, jump hosts, what must never happen."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specconsole.adapters.ssh import SshLink
from specconsole.errors import (
    FileMissingError,
    HostKeyUnknownError,
    LinkLostError,
    NeedsPersonError,
    RefusedError,
    TransportError,
)
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.fixtures_ssh import ConnectSsh
from tests.support.leaks import own_listening_ports
from tests.support.sshd_lab import SshdLab, make_key, sshd_lab
from tests.support.waiting import is_alive, until

SHELLS = ["root", "tuner", "dasher", "fisher", "cshell", "caged", "chatty"]


@pytest.mark.parametrize("account", SHELLS)
async def test_every_login_shell(account: str, sshd: SshdLab, connect_ssh: ConnectSsh) -> None:
    if account not in sshd.accounts:
        pytest.skip(f"the shell of {account} is not installed here, or accounts can't be made")
    link = await connect_ssh(account)
    nasty = ["it's", "$HOME", "a  b", "\\", "!x", "*", "", "é\n"]
    done = await link.run(["printf", "%s|", *nasty])
    assert done.stdout == "".join(f"{word}|" for word in nasty).encode()
    assert (await link.run_sh('echo "$1"; exit 3', ["x y"])).exit_status == 3
    assert (await link.run(["id", "-un"])).stdout == f"{account}\n".encode()
    async with link.stream(["sh", "-c", "echo one; echo two >&2"]) as stream:
        seen = b""
        while block := await stream.read():
            seen += block
    assert seen == b"one\ntwo\n"
    path = str(sshd.homes[account] / "written")
    await link.write_file(path, b"\0\xff")
    assert await link.read_file(path) == b"\0\xff"
    assert link.abilities is not None
    assert (link.abilities.chatter_bytes > 0) is (account == "chatty")


async def test_a_shell_that_lets_nobody_in_says_so(sshd: SshdLab, connect_ssh: ConnectSsh) -> None:
    if "closed" not in sshd.accounts:
        pytest.skip("accounts can't be made here")
    with pytest.raises(TransportError, match=r"no shell for commands.*not available"):
        await connect_ssh("closed")


async def test_chatter_that_spoils_the_sftp_subsystem_is_got_around(isolated_home: Path) -> None:
    """Debian's default is a server program run by the login shell, whose chatter comes first."""
    with sshd_lab(options={"Subsystem": "sftp /usr/lib/openssh/sftp-server"}) as lab:
        if "chatty" not in lab.accounts:
            pytest.skip("accounts can't be made here")
        lab.client_config(isolated_home, alias="chatty", user="chatty")
        link = SshLink("chatty")
        await link.connect()
        try:
            assert link.abilities is not None
            assert link.abilities.sftp
            await link.write_file(str(lab.homes["chatty"] / "x"), b"data")
            assert (lab.homes["chatty"] / "x").read_bytes() == b"data"
        finally:
            await link.aclose()


@pytest.mark.parametrize("sessions", [1, 2, 3])
async def test_few_sessions_serialise_and_nothing_is_lost(sessions: int, isolated_home: Path) -> None:
    with sshd_lab(options={"MaxSessions": str(sessions)}) as lab:
        lab.client_config(isolated_home, alias="few", user=lab.accounts[0])
        link = SshLink("few")
        await link.connect()
        try:
            done = await asyncio.gather(*(link.run(["sh", "-c", f"sleep 0.05; echo {n}"]) for n in range(12)))
            assert [one.stdout for one in done] == [b"%d\n" % n for n in range(12)]
            path = str(lab.homes[lab.accounts[0]] / "file")
            await link.write_file(path, b"x" * 1000)
            file = await link.open_file(path)
            assert await file.read_at(990, 100) == b"x" * 10
            await file.aclose()
            with pytest.raises(TimeoutError):
                await link.run(["sleep", "300"], timeout_s=0.5)
            assert (await link.run(["echo", "again"], timeout_s=10)).stdout == b"again\n"
            if sessions < 3:
                with pytest.raises(RefusedError):
                    async with link.stream(["true"]):
                        pass
            assert (await link.run(["true"])).ok
        finally:
            await link.aclose()
        assert "no more sessions" in lab.log or sessions == 3


async def test_never_more_than_four_session_channels(sshd: SshdLab, connect_ssh: ConnectSsh) -> None:
    link = await connect_ssh()
    async with link.stream(["sleep", "300"]), link.stream(["sleep", "300"]):
        with pytest.raises(RefusedError):
            async with link.stream(["sleep", "300"]):
                pass
        done = await asyncio.gather(*(link.run(["echo", str(n)]) for n in range(20)))
        assert all(one.ok for one in done)
    assert link.abilities is not None
    assert link._up is not None
    assert link._up.sessions.most_in_use == 4


async def test_through_a_jump_host_whose_key_is_checked_too(sshd: SshdLab, isolated_home: Path) -> None:
    with sshd_lab(like=sshd) as inner:
        sshd.client_config(isolated_home, alias="gateway", user=sshd.accounts[0], trust=False)
        inner.client_config(isolated_home, alias="inside", user=inner.accounts[0], more="  ProxyJump gateway\n")
        link = SshLink("inside")
        with pytest.raises(HostKeyUnknownError, match="jump host gateway"):
            await link.connect()
        await link.trust(link.offered_key.fingerprint if link.offered_key else "")
        await link.connect()
        try:
            assert link.abilities is not None
            assert link.abilities.via == "gateway"
            assert (await link.run(["echo", "inside"])).stdout == b"inside\n"
            before = sshd.session_pids()
            assert before
        finally:
            await link.aclose()
        await until(lambda: not sshd.session_pids(), what="nothing stays on the gateway")


async def test_through_a_proxy_command_with_pipes_and_noise(sshd: SshdLab, isolated_home: Path) -> None:
    relay = isolated_home / "relay.py"
    relay.write_text(
        "import socket, sys, threading, os\n"
        "print('connecting as told', file=sys.stderr, flush=True)\n"
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "def up():\n"
        "    while data := os.read(0, 65536): s.sendall(data)\n"
        "    s.shutdown(socket.SHUT_WR)\n"
        "threading.Thread(target=up, daemon=True).start()\n"
        "while data := s.recv(65536): os.write(1, data)\n"
    )
    command = f"sh -c 'exec {sys.executable} \"{relay}\" %h %p'"
    sshd.client_config(isolated_home, alias="proxy", user=sshd.accounts[0], more=f"  ProxyCommand {command}\n")
    link = SshLink("proxy")
    await link.connect()
    try:
        assert (await link.run(["echo", "through"])).stdout == b"through\n"
    finally:
        await link.aclose()
    (isolated_home / ".ssh" / "config").write_text("Host proxy\n  ProxyCommand echo no route for you >&2; exit 1\n")
    with pytest.raises(TransportError, match="no route for you"):
        await SshLink("proxy").connect()


async def test_the_agent_is_used_and_never_forwarded(
    sshd: SshdLab, isolated_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = Path("/tmp") / f"specconsole-agent-{os.getpid()}"
    agent = await asyncio.create_subprocess_exec(
        "ssh-agent", "-D", "-a", str(socket), stdout=asyncio.subprocess.DEVNULL
    )
    try:
        await until(socket.exists)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        add = await asyncio.create_subprocess_exec(
            "ssh-add", "-q", str(sshd.client_key), stderr=asyncio.subprocess.DEVNULL
        )
        assert await add.wait() == 0
        sshd.client_config(isolated_home, alias="by-agent", user=sshd.accounts[0], key=tmp_path / "absent")
        config = isolated_home / ".ssh" / "config"
        config.write_text(config.read_text().replace("IdentitiesOnly yes", "ForwardAgent yes"))
        link = SshLink("by-agent")
        await link.connect()
        try:
            assert (await link.run(["sh", "-c", "echo [$SSH_AUTH_SOCK]"])).stdout == b"[]\n"
        finally:
            await link.aclose()
    finally:
        agent.terminate()
        await agent.wait()
        socket.unlink(missing_ok=True)


async def test_unchecked_host_keys_can_not_be_configured(sshd: SshdLab, isolated_home: Path) -> None:
    for setting in ("StrictHostKeyChecking no", "UserKnownHostsFile none", "UserKnownHostsFile /dev/null"):
        (isolated_home / ".ssh").mkdir(exist_ok=True)
        (isolated_home / ".ssh" / "config").unlink(missing_ok=True)
        sshd.client_config(isolated_home, alias="lax", user=sshd.accounts[0], trust=False, more=f"  {setting}\n")
        with pytest.raises(HostKeyUnknownError):
            await SshLink("lax").connect()


async def test_a_missing_identity_file_is_no_trouble_and_nothing_is_asked_without_a_person(
    sshd: SshdLab, isolated_home: Path, tmp_path: Path
) -> None:
    sshd.client_config(isolated_home, alias="locked", user=sshd.accounts[0], key=make_key(tmp_path / "k", "secret"))
    with pytest.raises(NeedsPersonError, match="passphrase for"):
        await SshLink("locked").connect()


async def test_a_cut_link_fails_everything_at_once_and_comes_back(proxied_link: SshLink, ssh_proxy: FaultProxy) -> None:
    loop = asyncio.get_running_loop()
    # What runs on the host goes on to its end or its own time limit: half a stop or start would be worse.
    running = asyncio.create_task(proxied_link.run(["sleep", "300"], timeout_s=2))
    reading = asyncio.create_task(_read_stream(proxied_link))
    file = await proxied_link.open_file("/proc/self/status")
    await asyncio.sleep(0.3)
    began_s = loop.time()
    ssh_proxy.cut()
    for task in (running, reading):
        with pytest.raises(LinkLostError):
            await task
    with pytest.raises(LinkLostError):
        await file.read_at(0, 10)
    with pytest.raises(LinkLostError):
        await proxied_link.run(["true"])
    assert loop.time() - began_s < 5
    assert not proxied_link.connected
    await proxied_link.connect()
    assert (await proxied_link.run(["echo", "back"])).stdout == b"back\n"
    with pytest.raises(FileMissingError):
        await proxied_link.open_file("/nowhere")


async def _read_stream(link: SshLink) -> bytes:
    async with link.stream(["sleep", "300"]) as stream:
        return await stream.read()


async def test_a_console_that_dies_leaves_no_stream_and_no_port_behind(sshd: SshdLab, ssh_config: Path) -> None:
    """kill -9 of a whole process that holds a link with a stream and a command."""
    script = (
        "import asyncio\nfrom specconsole.adapters.ssh import SshLink\n"
        "async def main():\n"
        f"    link = SshLink({sshd.accounts[0]!r})\n    await link.connect()\n"
        "    async with link.stream(['sh', '-c', 'echo $$; exec sleep 4711']) as stream:\n"
        "        print((await stream.read()).decode(), flush=True)\n        await asyncio.sleep(1000)\n"
        "asyncio.run(main())\n"
    )
    console = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
    assert console.stdout is not None
    pid = int(await console.stdout.readline())
    assert is_alive(pid)
    console.kill()
    await console.wait()
    await until(lambda: not is_alive(pid), what="the stream's command ends when its console is gone")


async def test_sixteen_files_a_tick(ssh_link: SshLink, sshd: SshdLab) -> None:
    folder = sshd.homes[sshd.accounts[0]]
    for number in range(16):
        (folder / f"tick{number}").write_bytes(b"x" * 100_000)
    files = await asyncio.gather(*(ssh_link.open_file(str(folder / f"tick{number}")) for number in range(16)))
    before = own_listening_ports()
    times = []
    for offset in range(0, 90_000, 1000):
        began = time.perf_counter()
        blocks = await asyncio.gather(*(file.read_at(offset, 1000) for file in files))
        times.append(time.perf_counter() - began)
        assert all(len(block) == 1000 for block in blocks)
    times.sort()
    # A few ms on an idle machine; the bound only catches one round trip a file (16 times a shell's 7 ms).
    assert times[len(times) // 2] < 0.05, times
    assert own_listening_ports() == before
    await asyncio.gather(*(file.aclose() for file in files))


async def test_large_reads_of_a_growing_file_have_no_holes(ssh_link: SshLink, sshd: SshdLab) -> None:
    """asyncssh's own large read fills with zeros what the end of the file left open when it grew in between."""
    path = sshd.homes[sshd.accounts[0]] / "growing"
    path.touch()
    grow = (
        "import sys\nwith open(sys.argv[1], 'ab', buffering=0) as f:\n"
        "    for n in range(4000): f.write(b'%08d\\n' % n * 400)\n"
    )
    writer = await asyncio.create_subprocess_exec(sys.executable, "-c", grow, str(path))
    file = await ssh_link.open_file(str(path))
    seen = bytearray()
    while writer.returncode is None or len(seen) < path.stat().st_size:
        seen += await file.read_at(len(seen), 4 << 20)
        await asyncio.sleep(0)
    await file.aclose()
    assert bytes(seen) == path.read_bytes()
    path.unlink()


async def test_delay_does_not_multiply(sshd: SshdLab, isolated_home: Path) -> None:
    """On a slow link a command is one round trip, whatever it prints."""
    async with fault_proxy(sshd.port, delay_s=0.05) as proxy:
        sshd.client_config(isolated_home, alias="slow", user=sshd.accounts[0], port=proxy.port)
        link = SshLink("slow")
        await link.connect()
        try:
            began = time.perf_counter()
            assert (await link.run(["sh", "-c", "echo a; echo b >&2; exit 3"])).exit_status == 3
            assert time.perf_counter() - began < 1.0
        finally:
            await link.aclose()


def test_ssh_itself_agrees_about_the_lab(sshd: SshdLab, ssh_config: Path) -> None:
    """The lab is what it says it is: OpenSSH's own client gets in with the same configuration."""
    done = subprocess.run(
        ["ssh", "-F", str(ssh_config / ".ssh" / "config"), "-o", f"UserKnownHostsFile={ssh_config}/.ssh/known_hosts",
         sshd.accounts[0], "echo in"], capture_output=True, timeout=30,
    )  # fmt: skip
    assert done.stdout == b"in\n"
