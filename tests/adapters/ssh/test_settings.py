"""What ssh_config says, beside what OpenSSH's own `ssh -G` says of the same file."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from specconsole.adapters.ssh.settings import resolve
from specconsole.errors import BadInputError

HARD = [
    'Match host box exec "test 1 = 1"\n    HostName 10.1.2.3\n    Port 2200\n    User tuner\n',
    'Match host box exec "test 1 = 2"\n    Port 9\nHost box\n    HostName 10.1.2.3\n    Port 2200\n    User tuner\n',
    "# gr\xfc\xdfe\nHost box\n    HostName 10.1.2.3\n    Port 2200\n    User tuner\n    ProxyJump one,two\n",
]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    return home / ".ssh" / "config"


@pytest.mark.parametrize("text", HARD)
async def test_files_that_only_openssh_takes(config: Path, text: str) -> None:
    config.write_bytes(text.encode("latin-1"))
    told = await asyncio.to_thread(_printed, ["ssh", "-G", "-F", str(config), "box"])
    lines = told.decode("latin-1").splitlines()
    found = await resolve("box")
    assert f"hostname {found.hostname}" in lines
    assert f"port {found.port}" in lines
    assert f"user {found.user}" in lines
    assert found.port == 2200
    assert list(found.jumps) == [one for line in lines if line.startswith("proxyjump ") for one in line[10:].split(",")]
    assert not found.names_key_algorithms


async def test_the_name_itself_goes_before_the_file(config: Path) -> None:
    config.write_text(HARD[0])
    found = await resolve("me@box:77")
    assert (found.hostname, found.user, found.port) == ("10.1.2.3", "me", 77)


async def test_a_file_that_nobody_takes_is_said(config: Path) -> None:
    config.write_text("Host box\n    Port many\n")
    with pytest.raises(BadInputError, match=r"Port|port"):
        await resolve("box")


def _printed(argv: list[str]) -> bytes:
    return subprocess.run(argv, capture_output=True, check=True, timeout=20).stdout
