"""Every implementation of a port runs through the same suite; a new one is one more entry here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from specconsole.adapters.local import LocalTransport
from specconsole.ports import Transport


@dataclass(frozen=True, slots=True)
class Host:
    """A transport under test, with what a test needs to look at the host behind its back.

    All hosts of the suite are this machine, so the witness is the test's own view of files and /proc.
    """

    transport: Transport
    folder: Path
    """An empty folder on the host that the account may write in."""
    as_root: bool


TRANSPORTS = ("local",)


@pytest.fixture(params=TRANSPORTS)
async def host(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Host]:
    """One host per implementation, closed after the test."""
    folder = tmp_path / "on the host"
    folder.mkdir()
    transport = LocalTransport()
    try:
        yield Host(transport, folder, as_root=True)
    finally:
        await transport.aclose()


@pytest.fixture
def transport(host: Host) -> Transport:
    return host.transport


@pytest.fixture
def folder(host: Host) -> Path:
    return host.folder
