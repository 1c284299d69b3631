"""What the contract suite for transports can't see of the local one: what asyncio says behind our back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from specconsole.adapters.local import LocalTransport


@pytest.mark.parametrize("size", [10, 100_000, 1_000_000])
async def test_a_command_given_up_while_it_is_fed_leaves_nothing_for_the_loop_to_print(size: int) -> None:
    """100,000 bytes: more than the pipe takes, less than a drain waits for; its end is still to come then."""
    said: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    with pytest.raises(TimeoutError):
        await LocalTransport().run(["/bin/sleep", "30"], stdin=b"x" * size, timeout_s=0.2)
    for _ in range(20):
        await asyncio.sleep(0)
    assert said == []
