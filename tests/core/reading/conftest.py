"""Hundreds of small tests of pure code: what they may leave behind is looked for once a module, not once a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.leaks import Surroundings, left_behind


@pytest.fixture(autouse=True, scope="module")
def nothing_left_behind() -> Iterator[None]:
    """Fails the module that leaves a process or a listening port."""
    before = Surroundings()
    yield
    leaks = left_behind(before)
    if leaks:
        pytest.fail("left behind:\n  " + "\n  ".join(leaks), pytrace=False)
