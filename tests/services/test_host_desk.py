"""What the window may do with hosts, over a real supervisor, sshd and links."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from specconsole.errors import BadInputError, NotFoundError
from specconsole.wiring import hosts_files, open_supervisor
from tests.support.fault_proxy import FaultProxy
from tests.support.sshd_lab import SshdLab
from tests.support.waiting import until


def known_to_openssh(home: Path, port: int) -> str:
    """What ssh-keygen finds: the witness."""
    argv = ["ssh-keygen", "-F", f"[127.0.0.1]:{port}", "-f", str(home / ".ssh" / "known_hosts")]
    return subprocess.run(argv, capture_output=True).stdout.decode()


async def test_added_trusted_broken_reconnected_and_removed(
    sshd: SshdLab, ssh_proxy: FaultProxy, isolated_home: Path, ssh_account: str
) -> None:
    sshd.client_config(isolated_home, alias="new", user=ssh_account, port=ssh_proxy.port, trust=False)
    (isolated_home / ".ssh" / "known_hosts").unlink()
    async with open_supervisor((), window=True) as console:
        board, commands = console.board, console.commands
        assert list(await commands.known_hosts()) == ["local", "proxied", "new"]
        await commands.add_host("new")
        await until(lambda: board.hosts["new"].state == "key-unknown")
        offered = console.supervisor.host("new")
        tools = await offered
        key = tools.transport.offered_key  # type: ignore[attr-defined]  # a link, as every host over SSH
        await commands.trust_key("new", key.fingerprint)
        await until(lambda: board.hosts["new"].state == "up")
        assert "new" in await asyncio.to_thread(hosts_files().read)
        await ssh_proxy.refuse()
        ssh_proxy.cut()
        await until(lambda: board.hosts["new"].state == "refused" and board.hosts["new"].stale_since_s is not None)
        await ssh_proxy.listen_again()
        await commands.reconnect("new")
        await until(lambda: board.hosts["new"].state == "up" and board.hosts["new"].stale_since_s is None)
        await commands.remove_host("new")
        assert "new" not in board.hosts
        assert "new" not in await asyncio.to_thread(hosts_files().read)
        with pytest.raises(NotFoundError):
            await commands.trust_key("new", key.fingerprint)
        with pytest.raises(NotFoundError):
            await commands.answer("nobody#1", "x")
        with pytest.raises(BadInputError):
            await commands.add_host("-oProxyCommand=x")
    assert sshd.host_key_line in await asyncio.to_thread(known_to_openssh, isolated_home, ssh_proxy.port)
