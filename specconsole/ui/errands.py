"""What the person set going and what takes its time: runs beside the window, says how far it is, can be called off."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from specconsole.errors import ConsentNeededError, SpecconsoleError

T = TypeVar("T")
Say = Callable[[str, str, str], None]
"""(text, title, severity)"""
Ask = Callable[[ConsentNeededError, Callable[[], None]], None]
"""What a person must agree to, and what runs it again once they have."""


class Errands:
    """Tasks with a name. They outlive no loop: whoever runs the window waits for `finish` before leaving it."""

    def __init__(self, say: Say, ask: Ask | None = None) -> None:
        self._say = say
        self._ask = ask
        self._tasks: dict[asyncio.Task[None], str] = {}
        self.progress: dict[str, str] = {}
        """Name -> the last line of each that runs."""

    def start(
        self, name: str, work: Callable[[Callable[[str], None]], Awaitable[T]], done: Callable[[T], None] | None = None
    ) -> None:
        """Runs `work(progress)`; `done` gets its value, an error is said. The same name runs once at a time."""
        if name in self.progress:
            self._say(f"{name} is under way: {self.progress[name]}", name, "warning")
            return
        self.progress[name] = "begun"
        task = asyncio.get_running_loop().create_task(self._run(name, work, done), name=name)
        self._tasks[task] = name
        task.add_done_callback(self._ended)

    async def _run(
        self, name: str, work: Callable[[Callable[[str], None]], Awaitable[T]], done: Callable[[T], None] | None
    ) -> None:
        def progress(line: str) -> None:
            self.progress[name] = line

        try:
            value = await work(progress)
        except ConsentNeededError as error:
            if self._ask is None:
                self._say(f"{error.what}\ntry: {error.try_}", name, "error")
            else:
                self._ask(error, lambda: self.start(name, work, done))
        except SpecconsoleError as error:
            text = f"{error.what}\ntry: {error.try_}" if error.try_ else error.what
            self._say(text, f"{name}: {error.where}" if error.where else name, "error")
        else:
            if done is not None:
                done(value)
        finally:
            self.progress.pop(name, None)

    def _ended(self, task: asyncio.Task[None]) -> None:
        name = self._tasks.pop(task, "")
        if not task.cancelled() and (error := task.exception()) is not None:
            # A fault of ours: said like any other, and not the end of the window.
            self._say(f"{type(error).__name__}: {error}", name, "error")

    def cancel(self, name: str) -> None:
        """Calls it off."""
        for task, task_name in list(self._tasks.items()):
            if task_name == name:
                task.cancel()

    async def finish(self, timeout_s: float) -> list[str]:
        """Waits for what runs; names what was called off because it took longer."""
        if not self._tasks:
            return []
        _, late = await asyncio.wait(list(self._tasks), timeout=timeout_s)
        names = [self._tasks[task] for task in late if task in self._tasks]
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=2.0)
        return names
