"""Fixtures for tests on real engines, and the table that they write into docs/real-engines.md."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from specconsole.core.launching.lifecycle import ENDED
from specconsole.wiring import Console, open_supervisor
from tests.engines.engines import REPOSITORY, installed
from tests.engines.support.checkpoints import Checkpoints, write_checkpoints
from tests.support.sshd_lab import SshdLab

DOCUMENT = REPOSITORY / "docs/real-engines.md"
BEGIN, END = "<!-- table: written by `make real` -->", "<!-- end of table -->"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "support" not in item.path.parts:
            item.add_marker(pytest.mark.engines)
            item.add_marker(pytest.mark.timeout(1500))


@dataclass
class Row:
    """One line of the table; None is "not measured"."""

    engine: str
    speculation: str
    answered_s: float | None = None
    eta_error: str = ""
    accept_ours: float | None = None
    accept_counters: float | None = None
    stops: dict[str, float] = field(default_factory=dict)
    left_over: int = 0

    def cells(self) -> list[str]:
        stops = ", ".join(f"{state} {seconds:.1f} s" for state, seconds in self.stops.items())
        return [
            self.engine,
            self.speculation,
            "" if self.answered_s is None else f"{self.answered_s:.1f} s",
            self.eta_error,
            "" if self.accept_ours is None else f"{self.accept_ours:.2f}",
            "" if self.accept_counters is None else f"{self.accept_counters:.2f}",
            stops,
            "nothing" if not self.left_over else str(self.left_over),
        ]


HEAD = ["engine", "speculation", "time to answer", "ETA error", "accept length, ours", "by its counters", "stop took",
        "left over"]  # fmt: skip
"""Filled by the tests through `table_row`."""
ROWS: dict[tuple[str, str], Row] = {}


def table_row(engine: str, speculation: str) -> Row:
    return ROWS.setdefault((engine, speculation), Row(engine, speculation))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not ROWS:
        return
    lines = ["| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD)]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in ROWS.values()]
    terminalreporter.section("real engines")
    for line in lines:
        terminalreporter.write_line(line)
    if DOCUMENT.exists() and terminalreporter.stats.get("failed") is None:
        write_table(lines)


def write_table(lines: list[str]) -> None:
    """Rows that were measured now replace theirs in the document; others stay."""
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    kept = {tuple(line.split(" | ")[:2]): line for line in old.strip().splitlines()[2:]}
    kept |= {tuple(line.split(" | ")[:2]): line for line in lines[2:]}
    table = "\n".join([*lines[:2], *kept.values()])
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}")


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Checkpoints:
    """Target in 32 shards, draft, EAGLE-3 head."""
    return write_checkpoints(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture(scope="session")
def checkpoints_64(tmp_path_factory: pytest.TempPathFactory) -> Checkpoints:
    """The same with the target in 64 shards."""
    return write_checkpoints(tmp_path_factory.mktemp("checkpoints-64"), shards=64)


@pytest.fixture
async def console(ssh_config: Path, sshd: SshdLab) -> AsyncIterator[Console]:
    """A console without a window that watches a host over a real sshd; its launches are stopped afterwards."""
    async with watching(sshd.accounts[0]) as found:
        yield found


@asynccontextmanager
async def watching(host: str) -> AsyncIterator[Console]:
    async with open_supervisor((host,)) as found:
        try:
            yield found
        finally:
            for view in list(found.board.launches.values()):
                if view.state not in ENDED:
                    await found.commands.stop(view.launch_id)


def need(engine: str) -> None:
    """Skips where `make real` has not installed the engine."""
    if not installed(engine):
        pytest.skip(f"{engine} is not installed: `make real` does it")
