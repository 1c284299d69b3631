"""Guards around every test: nothing left behind, no task left running, nothing blocking in the event loop."""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster

import specconsole
from tests.support.leaks import Surroundings, left_behind, mark_this_run, watched_files

SUITE_LIMIT_S = float(os.environ.get("SPECCONSOLE_TEST_LIMIT_S", 8 * 60))
"""The whole default run on two cores, when nothing else runs there."""
TASK_GRACE_S = 2.0

MAY_BLOCK = (
    # (file that the call comes from, functions in it), for every blocking call:
    # verbs import what they need when they are asked for it; that happens once, before anything is watched.
    ("<frozen importlib._bootstrap>", {"_find_and_load"}),
)


def pytest_configure(config: pytest.Config) -> None:
    mark_this_run()
    config.addinivalue_line("markers", "may_block(reason): this async test's product code may block the loop")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(inspect.unwrap(item.obj)):
            # First in, last out: every other fixture of the test is torn down when they look.
            item.fixturenames[:0] = ["no_task_left", "nothing_blocks"]


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[BEGAN] = time.monotonic()
    if not hasattr(session.config, "workerinput"):
        session.config.stash[FILES] = set(watched_files())


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails the run that leaves a file outside the tests' folders (looked at where we are alone)."""
    left = sorted(set(watched_files()) - session.config.stash.get(FILES, set(watched_files())))
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line("left behind:", red=True)
            for path in left[:50]:
                reporter.write_line(f"  file {path}", red=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    elapsed_s = time.monotonic() - item.config.stash[BEGAN]
    long_run = item.config.option.markexpr not in ("", "not faults and not engines")
    if elapsed_s > SUITE_LIMIT_S and not long_run:
        item.session.shouldfail = (
            f"the suite runs for over {SUITE_LIMIT_S:g} s: find what is slow with --durations=20 "
            "(SPECCONSOLE_TEST_LIMIT_S sets the limit on a machine that does other work)"
        )
        pytest.fail(str(item.session.shouldfail), pytrace=False)


BEGAN = pytest.StashKey[float]()
FILES = pytest.StashKey[set[str]]()


@pytest.fixture(autouse=True)
def nothing_left_behind(isolated_home: Path) -> Iterator[None]:
    """Fails the test that leaves a process or a listening port."""
    before = Surroundings()
    yield
    leaks = left_behind(before)
    if leaks:
        pytest.fail("left behind:\n  " + "\n  ".join(leaks), pytrace=False)


@pytest.fixture
async def no_task_left() -> AsyncIterator[None]:
    """Fails the async test whose tasks outlive it (and every other fixture of it)."""
    before = asyncio.all_tasks()
    yield
    deadline = time.monotonic() + TASK_GRACE_S
    while left := {task for task in asyncio.all_tasks() - before if task is not asyncio.current_task()}:
        if time.monotonic() > deadline:
            pytest.fail("tasks left running:\n  " + "\n  ".join(sorted(map(repr, left))), pytrace=False)
        await asyncio.sleep(0.01)


@pytest.fixture
def nothing_blocks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Raises BlockingError where code of specconsole blocks the event loop (a file, a socket, a sleep)."""
    if request.node.get_closest_marker("may_block"):
        yield
        return
    blockbuster = BlockBuster(specconsole)
    for function in blockbuster.functions.values():
        for file, names in MAY_BLOCK:
            function.can_block_in(file, names)
    blockbuster.activate()
    try:
        yield
    finally:
        blockbuster.deactivate()
