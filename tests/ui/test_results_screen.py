"""The results in full over the real store: grouped, hidden and pinned for good, taken apart down to the log."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from specconsole.core.measuring.result import MeasuredPoint, Result
from specconsole.ui.app import ConsoleApp
from specconsole.ui.desk import Desk
from specconsole.ui.screens.results import ResultsScreen
from specconsole.wiring import Console, open_supervisor
from tests.core.measuring.build import point, result
from tests.support.waiting import until
from tests.ui.conftest import THEMES
from tests.ui.fakes import answering

pytestmark = [pytest.mark.may_block("Textual reads its own files")]
PLAIN = result("plain", [point(c, 100.0 * c, n) for c in (1, 4) for n in range(3)], model="big")
DRAFT = result(
    "draft", [replace(point(c, 140.0 * c, n, accept=2.5), launch_id="L2") for c in (1, 4) for n in range(3)],
    at_s=2000.0, speculative=True, draft_model="little", model="big", num_steps=4,
)  # fmt: skip
LOG = "".join(f"[2026-11-29 14:00:{n:02}] Decode batch, #running-req: {n}\n" for n in range(20)).encode()


def request(number: int, seconds: float, start: int, stop: int) -> dict[str, Any]:
    return {
        "kind": "request", "point": 0, "body": number, "warmup": False, "started_s": number / 10, "sent_s": number / 10,
        "end_s": number / 10 + seconds, "error": None, "completion_tokens": 31, "tokens_from": "timings",
        "events": [50_000 + number, 1, round(seconds * 1e6), 30], "spec": {}, "log_from": start, "log_to": stop,
    }  # fmt: skip


def with_launch_ids(one: Result, launch_id: str) -> Result:
    return replace(one, points=tuple(replace(p, launch_id=launch_id) for p in one.points))


async def put(console: Console, one: Result, slow: tuple[MeasuredPoint, dict[str, Any]] | None = None) -> None:
    store = console.benches.store
    assert store is not None
    for index, p in enumerate(one.points):
        lines = [request(n, 0.5, 0, 10) for n in range(10)]
        if slow is not None and p is slow[0]:
            lines.append(slow[1])
        await store.put_point(one, index, p, lines)
    await store.put_result(one)


@asynccontextmanager
async def window(size: tuple[int, int] = (140, 44)) -> AsyncIterator[tuple[Console, ResultsScreen, Pilot[None]]]:
    async with open_supervisor(("local",)) as console:
        await console.benches.publish(changed=True)
        desk = Desk(console.board, console.commands, monotonic_s=time.monotonic, wall_s=time.time)
        app = ConsoleApp(desk, THEMES)
        async with app.run_test(size=size) as pilot:
            screen = ResultsScreen(desk)
            await app.push_screen(screen)
            await pilot.pause()
            yield console, screen, pilot


def text_of(screen: ResultsScreen) -> str:
    return "\n".join(line.plain for line in screen._lines._lines)


async def test_what_is_pinned_and_hidden_is_so_in_the_next_window_too() -> None:
    async with open_supervisor(()) as console:
        await put(console, PLAIN)
        await put(console, DRAFT)
    async with window() as (console, screen, pilot):
        assert "plain ◂ baseline" in text_of(screen)
        await pilot.press("down", "p")
        await until(lambda: "draft ◂ baseline" in text_of(screen), what="the draft is the baseline")
        await pilot.press("up", "x")
        await until(lambda: "3 hidden" not in text_of(screen) and "plain" not in text_of(screen), what="it is hidden")
    async with window() as (console, screen, pilot):
        assert "draft ◂ baseline" in text_of(screen)
        assert "plain" not in text_of(screen)
        assert console.board.results.rows[0].name == "draft"
        assert len(console.board.results.rows) == 1
        # Another run of the profile that is the baseline: one row with it, and the baseline still.
        await put(console, replace(with_launch_ids(DRAFT, "L3"), result_id="draft-again", started_at_s=3000.0))
        await console.benches.publish(changed=True)
        await until(lambda: "repeats span 2 start(s)" in text_of(screen), what="both runs are one row")
        assert "draft ◂ baseline" in text_of(screen)
        assert "its 2 starts" in text_of(screen)
        await pilot.press("u")
        await until(lambda: "plain" in text_of(screen), what="all are shown again")


async def test_rows_are_grouped_and_filtered_by_what_they_ran() -> None:
    async with open_supervisor(()) as console:
        await put(console, PLAIN)
        await put(console, DRAFT)
    async with window() as (_, screen, pilot):
        for _ in range(4):
            await pilot.press("g")
        await until(lambda: "draft little" in text_of(screen), what="grouped by the draft model")
        lines = text_of(screen).splitlines()
        assert [line.strip().split("  ")[0] for line in lines[1:5]] == ["draft little", "▸ draft", "draft none",
                                                                        "plain ◂ baseline"]  # fmt: skip
        await pilot.press("slash", *"little", "enter")
        await until(lambda: "'little'" in str(screen.query_one("#results-box").border_title), what="filtered")
        assert "draft little" in text_of(screen)


async def test_an_outlier_leads_to_the_lines_of_its_moment(tmp_path: Path) -> None:
    """The witness is the log file itself: lines 8 to 11 were written while the slow request was out."""
    log = tmp_path / "server.log"
    log.write_bytes(LOG)
    offsets = [LOG.index(b"req: %d\n" % n) for n in range(20)]
    starts = [LOG.rfind(b"[", 0, offset) for offset in offsets]
    slow = DRAFT.points[4]
    async with open_supervisor(()) as console:
        await put(console, DRAFT, (slow, request(99, 9.0, starts[8], starts[12])))
    async with window() as (console, screen, pilot):
        console.board.publish_launch(replace(answering(), launch_id="L2", host="local", log_path=str(log)))
        left: list[object] = []
        screen.dismiss = left.append  # type: ignore[assignment,method-assign]  # what it would give
        await pilot.press("right", "enter")
        await until(lambda: "repeat 1 of 3" in text_of(screen), what="the slowest repeat is open")
        assert "nothing: no failure" in text_of(screen)
        await pilot.press("right")
        await until(lambda: "request 99" in text_of(screen), what="another repeat, with an outlier")
        assert "ITL of" in text_of(screen)
        await pilot.press("enter")
        await until(lambda: "#running-req: 11" in text_of(screen), what="the log of that moment")
        shown = [line for line in text_of(screen).splitlines() if "#running-req" in line]
        assert [line.split("[")[0].strip() for line in shown] == ["9", "10", "11", "12"]
        assert [line.split("req: ")[1].strip() for line in shown] == ["8", "9", "10", "11"]
        await pilot.press("o")
        assert left == [("L2", 8)]
