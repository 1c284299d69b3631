"""Fixtures: processes that resist, neighbours that must not be touched, terminals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.tmux import Tmux
from tests.support.victims import Victim, victim_argv
from tests.support.waiting import is_alive, wait_until

StartVictim = Callable[..., Victim]
StartTmux = Callable[..., Tmux]


@pytest.fixture
def start_victim(tmp_path: Path) -> Iterator[StartVictim]:
    """Runs victims ourselves: `start_victim("--daemons", "1", environment={...})`; destroyed after the test."""
    victims: list[Victim] = []

    def start(*flags: str, environment: dict[str, str] | None = None) -> Victim:
        victims.append(Victim(tmp_path, *flags, environment=environment))
        return victims[-1]

    yield start
    for victim in victims:
        victim.destroy()


@pytest.fixture
def neighbour(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like a victim and is not ours to touch; the test fails when it is dead at the end."""
    log = tmp_path / "neighbour.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(victim_argv("--port", "0"), stdout=sink, stderr=sink, start_new_session=True)
    wait_until(lambda: b"running" in log.read_bytes(), what="the neighbour runs")
    yield process
    unharmed = is_alive(process.pid) and b'"signal"' not in log.read_bytes()
    process.kill()
    process.wait(10)
    if not unharmed:
        pytest.fail("the innocent neighbour was signalled", pytrace=False)


@pytest.fixture
def start_tmux(tmp_path: Path) -> Iterator[StartTmux]:
    """A terminal that runs a program: `start_tmux([argv], columns=80, rows=24)`; closed after the test."""
    terminals: list[Tmux] = []

    def start(argv: list[str], **size: int) -> Tmux:
        folder = tmp_path / f"tmux{len(terminals)}"
        folder.mkdir()
        terminals.append(Tmux(folder, argv, **size))  # type: ignore[arg-type]  # sizes only: columns, rows
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


@pytest.fixture
def specconsole_argv() -> list[str]:
    """The command line of this checkout's console."""
    return [sys.executable, "-m", "specconsole"]
