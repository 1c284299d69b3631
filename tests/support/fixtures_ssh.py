"""Fixtures: a real sshd, links to it, directly and through a proxy that breaks them."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from specconsole.adapters.ssh import SshLink
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.leaks import keep_for_session
from tests.support.sshd_lab import SSHD, SshdLab, sshd_lab

ConnectSsh = Callable[..., Awaitable[SshLink]]


@pytest.fixture(scope="session")
def sshd() -> Iterator[SshdLab]:
    """One OpenSSH server for the whole run: `sshd.port`, `sshd.accounts`, `sshd.homes`."""
    if SSHD is None:
        pytest.skip("sshd is not installed (Debian: openssh-server)")
    with sshd_lab() as lab:
        keep_for_session(lab.process.pid)
        yield lab


@pytest.fixture(scope="session")
def sshd_without_sftp() -> Iterator[SshdLab]:
    """One whose clients find no SFTP subsystem and no server program either."""
    if SSHD is None:
        pytest.skip("sshd is not installed (Debian: openssh-server)")
    with sshd_lab(options={"Subsystem": ""}, hide_sftp_server=True) as lab:
        keep_for_session(lab.process.pid)
        yield lab


@asynccontextmanager
async def ssh_host(request: pytest.FixtureRequest, kind: str) -> AsyncIterator[tuple[SshLink, Path, str]]:
    """(connected link, empty folder that the account may write in, account) for the contract suites.

    `root`: directly. `user`: an ordinary account with a login shell that prints, through the fault proxy. `no-sftp`:
    root on a host without SFTP, where files go by commands.
    """
    lab: SshdLab = request.getfixturevalue("sshd_without_sftp" if kind == "no-sftp" else "sshd")
    account = "chatty" if kind == "user" else lab.accounts[0]
    if account not in lab.accounts:
        pytest.skip(f"the lab could not make the account {account} here")
    async with AsyncExitStack() as stack:
        port = None
        if kind == "user":
            port = (await stack.enter_async_context(fault_proxy(lab.port))).port
        lab.client_config(Path.home(), alias=kind, user=account, port=port)
        with tempfile.TemporaryDirectory(prefix="on the host ", dir=lab.homes[account]) as name:
            folder = Path(name)
            folder.chmod(0o700)
            lab.give(folder, account)
            link = SshLink(kind)
            await link.connect()
            try:
                yield link, folder, account
            finally:
                await link.aclose()


@pytest.fixture
def ssh_account(sshd: SshdLab) -> str:
    """An ordinary account where the lab could make one, else the one that exists."""
    return "tuner" if "tuner" in sshd.accounts else sshd.accounts[0]


@pytest.fixture
def ssh_config(sshd: SshdLab, isolated_home: Path) -> Path:
    """~/.ssh/config and known_hosts in which each account of the lab is a host of that name; returns the home."""
    for account in sshd.accounts:
        sshd.client_config(isolated_home, alias=account, user=account, trust=account == sshd.accounts[0])
    return isolated_home


@pytest.fixture
async def connect_ssh(ssh_config: Path, sshd: SshdLab) -> AsyncIterator[ConnectSsh]:
    """`await connect_ssh("tuner")`: a connected link; closed after the test."""
    links: list[SshLink] = []

    async def connect(account: str | None = None) -> SshLink:
        link = SshLink(account or sshd.accounts[0])
        links.append(link)
        await link.connect()
        return link

    yield connect
    for link in links:
        await link.aclose()


@pytest.fixture
async def ssh_proxy(sshd: SshdLab, isolated_home: Path) -> AsyncIterator[FaultProxy]:
    """A fault proxy in front of the sshd; the host `proxied` (account of `ssh_account`, else root) goes through it."""
    async with fault_proxy(sshd.port) as proxy:
        account = "tuner" if "tuner" in sshd.accounts else sshd.accounts[0]
        sshd.client_config(isolated_home, alias="proxied", user=account, port=proxy.port)
        yield proxy


@pytest.fixture
async def ssh_link(connect_ssh: ConnectSsh) -> SshLink:
    """A connected link as root (or as whoever runs the tests)."""
    return await connect_ssh()


@pytest.fixture
async def proxied_link(ssh_proxy: FaultProxy) -> AsyncIterator[SshLink]:
    """A connected link through the fault proxy."""
    link = SshLink("proxied")
    await link.connect()
    yield link
    await link.aclose()
