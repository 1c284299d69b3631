"""Every implementation of a port runs through the same suite; a new one is one more entry here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from specconsole.adapters.local import LocalTransport
from specconsole.ports import Transport
from tests.support.fixtures_ssh import ssh_host


@dataclass(frozen=True, slots=True)
class Host:
    """A transport under test, with what a test needs to look at the host behind its back.

    All hosts of the suite are this machine, so the witness is the test's own view of files and /proc.
    """

    transport: Transport
    folder: Path
    """An empty folder on the host that the account may write in."""
    as_root: bool
    holds_deleted: bool = True
    """Whether an open handle keeps a deleted file readable; commands instead of SFTP can't."""


TRANSPORTS = ("local", "ssh-root", "ssh-user", "ssh-no-sftp")
"""The SSH ones are explained in fixtures_ssh.ssh_host."""


@pytest.fixture(params=TRANSPORTS)
async def host(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Host]:
    """One host per implementation, closed after the test."""
    if request.param == "local":
        folder = tmp_path / "on the host"
        folder.mkdir()
        yield Host(LocalTransport(), folder, as_root=True)
        return
    async with ssh_host(request, request.param.removeprefix("ssh-")) as (link, folder, account):
        yield Host(link, folder, as_root=account == "root", holds_deleted=request.param != "ssh-no-sftp")


@pytest.fixture
def transport(host: Host) -> Transport:
    return host.transport


@pytest.fixture
def folder(host: Host) -> Path:
    return host.folder
