"""The hand-turned clock wakes sleepers in the order of their time."""

from __future__ import annotations

import asyncio

from specconsole.ports import Clock
from tests.support.fake_clock import FakeClock


async def test_sleepers_wake_at_their_own_time_and_may_sleep_again(fake_clock: FakeClock) -> None:
    seen: list[tuple[str, float]] = []

    async def every(name: str, seconds: float, times: int, clock: Clock) -> None:
        for _ in range(times):
            await clock.sleep(seconds)
            seen.append((name, clock.monotonic_s()))

    async with asyncio.TaskGroup() as group:
        group.create_task(every("a", 2, 3, fake_clock))
        group.create_task(every("b", 3, 2, fake_clock))
        await fake_clock.advance(5)
        assert seen == [("a", 1002.0), ("b", 1003.0), ("a", 1004.0)]
        await fake_clock.advance(1)
    assert seen[3:] == [("b", 1006.0), ("a", 1006.0)] or seen[3:] == [("a", 1006.0), ("b", 1006.0)]


async def test_a_cancelled_sleeper_is_forgotten_and_the_wall_can_jump(fake_clock: FakeClock) -> None:
    task = asyncio.ensure_future(fake_clock.sleep(1))
    await asyncio.sleep(0)
    assert fake_clock.sleeping == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    wall = fake_clock.wall_s()
    fake_clock.step_wall(-3600)
    await fake_clock.advance(2)
    assert fake_clock.wall_s() == wall - 3598
    assert fake_clock.monotonic_s() == 1002.0
