"""Fixtures for tests on real engines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from specconsole.core.launching.lifecycle import ENDED
from specconsole.wiring import Console, open_supervisor
from tests.engines import tables
from tests.engines.engines import installed
from tests.engines.support.checkpoints import Checkpoints, write_checkpoints
from tests.support.sshd_lab import SshdLab


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "support" not in item.path.parts:
            item.add_marker(pytest.mark.engines)
            item.add_marker(pytest.mark.timeout(1500))


@pytest.fixture(autouse=True)
def rows_travel(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    request.node.user_properties += tables.measured_rows()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # `make real` loads the tables as a plugin: with several workers the process that sums up reads no test.
    if not terminalreporter.config.pluginmanager.has_plugin("tests.engines.tables"):
        tables.pytest_terminal_summary(terminalreporter)


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
