"""A launch that waits for its turn, and one whose profile has probes, as the window shows them."""

from __future__ import annotations

from dataclasses import replace

from specconsole.core.launching.waiting import Holder, Reason, Waiting
from specconsole.core.views.launch import ProbeView
from specconsole.ui.app import ConsoleApp
from specconsole.ui.screens.probes import ProbesScreen, probe_lines
from specconsole.ui.text.launch_text import outlook, queue_text, strip
from tests.ui.conftest import make_app, until

WAITING = Waiting(
    745.0, 3.0, 70, False,
    (
        Reason("ahead", "baseline", "20261129-140211-3f9a2c"),
        Reason("gpu", "GPU 0", "", 12 * 2**30, 72 * 2**30, (Holder(71, "bob", "", "python train.py", 60 * 2**30),)),
    ),
    ("GPU 0", "port 30000"),
)  # fmt: skip


async def chosen(app: ConsoleApp, launch_id: str) -> None:
    app.desk.select(launch_id)
    app.screen_of_all.refresh_facts()


def test_a_queued_launch_says_for_whom_it_waits() -> None:
    app = make_app()
    view = replace(app.desk.board.launches["L2"], state="queued", waiting=WAITING, reading=None)
    assert strip(view, 100).plain.rstrip() == "queued 12:25 ▸ needs GPU 0, port 30000"
    said = outlook(view, 200, 0.0).plain.rstrip()
    assert said == (
        "behind baseline (20261129-140211-3f9a2c) · GPU 0: needs 72.0 GiB, 12.0 free, held by pid 71 (bob): "
        "python train.py, 60.0 GiB"
    )
    assert outlook(view, 60, 0.0).plain.rstrip() == "behind baseline (20261129-140211-3f9a2c)"
    hangs = replace(view, waiting=replace(WAITING, looked_ago_s=400.0))
    assert "has not looked for" in outlook(hangs, 100, 0.0).plain
    assert "held by pid 71 (bob)" in queue_text(WAITING, "gpu-a").replace("\n", " ")
    assert max(map(len, queue_text(WAITING, "gpu-a").splitlines())) <= 72
    nearly = replace(view, waiting=replace(WAITING, reasons=(), free_once=True))
    assert "everything is free" in outlook(nearly, 100, 0.0).plain


async def test_a_queued_launch_can_be_stopped_by_its_key() -> None:
    app = make_app()
    view = app.desk.board.launches["L2"]
    app.desk.board.publish_launch(replace(view, state="queued", waiting=WAITING, reading=None))
    async with app.run_test(size=(120, 40)) as pilot:
        await chosen(app, "L2")
        reasons = {action.action_id: why for action, why in app.screen_of_all.offered()}
        assert reasons["stop"] == ""
        assert reasons["bench"]
        await pilot.press("K")
        await until(lambda: len(app.screen_stack) == 2)


async def test_probes_are_plotted_and_grow() -> None:
    app = make_app()
    view = app.desk.board.launches["L2"]
    probes = (
        ProbeView("draft_ms", 3, 12.5, 11.0, 0, (10.0, 10.5, 12.5)), ProbeView("never", 0, unreadable=2),
        ProbeView("flat", 2, 4.0, 4.0, 0, (4.0, 4.0)),
    )  # fmt: skip
    text = "\n".join(line.plain for line in probe_lines(probes, 60, 30))
    assert "12.5  mean 11 of 3" in text
    assert "2 lines without a number" in text
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await chosen(app, "L2")
        await pilot.press("a")
        await until(lambda: any("has no [probes]" in note.message for note in app._notifications))
        app.desk.board.publish_launch(replace(view, probes=probes))
        app.screen_of_all.refresh_facts()
        await pilot.press("a")
        await until(lambda: isinstance(app.screen, ProbesScreen))
        plots = app.screen.query_one("#probe-plots")
        await until(lambda: any("12.5  mean 11 of 3" in line.plain for line in plots._lines))  # type: ignore[attr-defined]
        more = replace(probes[0], count=4, last=99.0, shown=(10.0, 10.5, 12.5, 99.0))
        app.desk.board.publish_launch(replace(view, probes=(more, *probes[1:])))
        await until(lambda: any("99  mean 11 of 4" in line.plain for line in plots._lines))  # type: ignore[attr-defined]
        await pilot.press("escape")
        assert not isinstance(app.screen, ProbesScreen)
