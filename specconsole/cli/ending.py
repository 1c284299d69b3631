"""SIGTERM and SIGHUP end a verb that goes on and on as Ctrl-C does: what it started on hosts ends with it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any


async def until_ended(work: Coroutine[Any, Any, int]) -> int:
    """`work`'s exit status, or 128 + the signal that ended it; its cleaning up is waited for."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    came: list[int] = []

    def end(number: int) -> None:
        came.append(number)
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGHUP):
        # An ignored SIGHUP (nohup) stays ignored.
        if signal.getsignal(number) is signal.SIG_DFL:
            # Not in a main thread (a test): the default stays.
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, end, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not came:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            raise
        return 128 + came[0]
