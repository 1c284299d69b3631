"""The history over live services: words for launches, what is watched just now, consoles that know different things."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from specconsole.core.records import StoredLaunch
from specconsole.core.views.history import HistoryQuery
from specconsole.core.views.launch import LaunchView
from specconsole.errors import NotFoundError, RefusedError
from specconsole.services.commands import LaunchOrder
from specconsole.wiring import open_supervisor
from tests.cli.console import write_profile
from tests.support.victims import victim_argv


def ended(view: LaunchView) -> bool:
    return view.state in ("stopped", "failed")


def stored(launch_id: str, profile: str, at_s: float) -> StoredLaunch:
    return StoredLaunch(launch_id, "gpu-a", f"/l/{launch_id}", profile, facts={"asked": {"requested_at_s": at_s}})


async def test_words_that_mean_a_launch(isolated_home: Path) -> None:
    async with open_supervisor(()) as console:
        history = console.history
        with pytest.raises(NotFoundError, match="nothing was launched yet"):
            await history.find("last")
        await history.store.put_launches(
            [stored("2026-a1", "chain", 1.0), stored("2026-a2", "tree", 2.0), stored("2027-b", "chain", 3.0)]
        )
        for word, found in (
            ("last", "2027-b"), ("2026-a1", "2026-a1"), ("2027", "2027-b"), ("chain", "2027-b"), ("tree", "2026-a2"),
        ):  # fmt: skip
            assert (await history.find(word)).launch_id == found, word
        with pytest.raises(
            NotFoundError, match=r"2 launches begin with 2026-a: 2026-a2 \(tree @ gpu-a, not seen to end\)"
        ):
            await history.find("2026-a")
        for word in ("", "nothing", "%", "2026-a1x"):
            with pytest.raises(NotFoundError, match="no launch"):
                await history.find(word)
        # A profile that is called like the beginning of ids is meant by its name.
        await history.store.put_launches([stored("2028-c", "20", 0.5)])
        assert (await history.find("20")).launch_id == "2028-c"
        with pytest.raises(RefusedError, match="gpu-a is not watched here"):
            await history.watched("2027")
        await history.note("2027-b", "waits here")
        assert [row.launch_id for row in (await history.page(HistoryQuery("waits"))).rows] == ["2027-b"]


async def test_what_is_watched_is_shown_as_it_is_now(tmp_path: Path) -> None:
    runs = write_profile(tmp_path, "runs", victim_argv())
    dies = write_profile(
        tmp_path, "dies", [sys.executable, "-c", "print('CUDA error: out of memory'); raise SystemExit(1)"]
    )
    async with open_supervisor(("local",)) as console:
        launch_id = await console.commands.launch(LaunchOrder(str(runs), "local"))
        other_id = await console.commands.launch(LaunchOrder(str(dies), "local"))
        await console.supervisor.wait(other_id, ended, timeout_s=60)
        rows = {row.launch_id: row for row in (await console.history.page(HistoryQuery())).rows}
        assert rows[launch_id].state in ("preparing", "starting", "loading")
        assert rows[other_id].state_text == "failed gpu-oom"
        await console.commands.stop(launch_id)
        row = await console.history.find(launch_id)
        assert row.state == "stopped"
    async with open_supervisor(()) as console:
        row = await console.history.find(launch_id)
        assert (row.state, row.outcome) == ("", "stopped")
        assert row.duration_s is not None
        assert (await console.history.look(other_id)).cause == "gpu-oom"
