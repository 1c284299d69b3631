"""What the window says by itself: cards, phase strip, notices, questions, what it remembers, hostile text."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Input

from specconsole.core.reading.model import EtaRange, Progress
from specconsole.core.views.host import GpuProcessView
from specconsole.core.views.launch import LaunchView
from specconsole.core.views.question import Question
from specconsole.ui.app import ConsoleApp
from specconsole.ui.formatters import bar, duration, safe, span
from specconsole.ui.text.card_text import card, card_kind, proposed_change
from specconsole.ui.text.launch_text import outlook, state_note, strip
from specconsole.ui.window_state import TabState, WindowState, read_state, write_state
from tests.ui.conftest import make_app, until
from tests.ui.fakes import (
    NOW_MONO_S,
    FakeCommands,
    answering,
    entry,
    failed,
    fake_world,
    gpu,
    loading,
    reading,
    results,
    stalled,
    stopped,
)


def plain(app: ConsoleApp) -> str:
    return app.export_screenshot().replace("&#160;", " ")


def text_of(view: LaunchView, width: int = 120) -> str:
    return "\n".join(line.plain for line in card(view, ["just before"], width, NOW_MONO_S))


def test_a_failure_card_says_cause_line_before_and_what_to_try() -> None:
    text = text_of(failed())
    for words in ("gpu-oom in graph-capture target TP3", "line 12", "CUDA out of memory", "just before",
                  "lower mem_fraction_static by 0.03", "relaunch with mem_fraction_static = 0.85"):  # fmt: skip
        assert words in text
    assert proposed_change(failed()) == {"mem_fraction_static": 0.85}
    assert all(line.cell_length == 120 for line in card(failed(), [], 120, NOW_MONO_S))


def test_a_stall_card_names_the_rank_that_is_behind() -> None:
    text = text_of(stalled())
    for words in ("nothing moves in graph-capture", "silent for 12:01", "TP3 last in weights", "collect evidence"):
        assert words in text


def test_a_stall_card_says_what_the_gpus_show() -> None:
    spinning = tuple(
        replace(gpu(n), processes=(GpuProcessView(71, 1, "ada", "x", 1.0, "L4", "hang-nccl"),),
                util_history_pct=(100.0,) * 120, memory_util_history_pct=(0.0,) * 120)
        for n in range(4)
    )  # fmt: skip
    board, _ = fake_world()
    board.publish_launch(stalled())
    board.publish_host(replace(board.hosts["gpu-a"], gpus=spinning))
    app = make_app(board=board)
    app.desk.select("L4")
    text = "\n".join(line.plain for line in app.screen_of_all.card.build(120, 0))
    assert "GPUs    100 % without memory traffic on every GPU" in text
    assert "nothing moves for 12:01" in outlook(stalled(), 120, NOW_MONO_S, told=True).plain


def test_where_the_weights_come_from_is_said_while_they_load() -> None:
    desk = make_app().desk
    desk.select("L1")
    assert desk.reads() == "reads 2.1 GB/s from nvme0n1 (cold)"
    assert desk.reads() in outlook(loading(), 140, NOW_MONO_S, reads=desk.reads()).plain
    desk.select("L2")
    assert desk.reads() == ""


def test_what_does_not_fit_is_left_out_whole() -> None:
    for width in range(40, 140):
        line = outlook(answering(), width, NOW_MONO_S).plain
        assert len(line) == width
        assert "…" not in line


async def test_how_a_launch_really_runs() -> None:
    app = make_app()
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        app.screen_of_all.refresh_facts()
        await pilot.press("i")
        await until(
            lambda: [note.message for note in app._notifications] == ["eagle3-topk1 has not said yet how it runs"]
        )
        app.desk.select("L2")
        await pilot.press("i")
        await until(lambda: app.screen is not app.screen_of_all)
        await until(lambda: "max_running_requests: asked 256, runs with 48" in plain(app))
        assert "513,024" in plain(app)
        assert "torch 2.9.1" in plain(app)


def test_gone_without_a_cause_claims_none() -> None:
    view = replace(stopped(), state="gone", exit_status=None)
    assert "exit status unknown · the log states no cause" in text_of(view).replace(" gone ·", " gone ·")
    assert "Traceback" not in text_of(view)


def test_what_is_left_over_and_what_is_only_suspect() -> None:
    left = replace(stopped(), left_over=("pid 71 (bob): python, holds 60 GiB of GPU 3",))
    assert card_kind(left) == "left-over"
    assert "holds 60 GiB of GPU 3" in text_of(left)
    failure = failed().reading
    assert failure is not None
    suspect = replace(loading(), reading=reading("weights", suspect=failure.failure))
    assert card_kind(suspect) == "suspect"
    assert "perhaps gpu-oom" in text_of(suspect)
    assert card_kind(loading()) == card_kind(answering()) == ""
    assert card_kind(replace(failed(), stale_since_s=1.0)) == ""


def test_the_strip_keeps_the_present_phase_when_there_is_no_room() -> None:
    wide = strip(loading(), 120).plain
    assert wide.startswith("starting 12 s ▸ distributed 9 s ▸ weights █")
    assert "22/64" in wide
    for width in range(20, 120):
        line = strip(loading(), width)
        assert line.cell_length == width
        assert "weights" in line.plain
    many = replace(loading(), reading=reading("warm-up", timeline=tuple(
        entry(phase, n, 3.0) for n, phase in enumerate(("starting", "weights", "kv-cache", "graph-capture", "warm-up"))
    )))  # fmt: skip
    assert strip(many, 40).plain.startswith("…")


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (loading(), "3.1 shards/s · this phase 12 to 17 s · answers in 7 to 9 min (bar, 7 starts) · last: 8:30"),
        (answering(), "answers after 8:32 · 1 setting not as asked · 773 tok/s · accept length 2.86 · "
                      "12 running, 3 wait · KV 41%"),
        (failed(), "gpu-oom in graph-capture · exit status 1"),
        (stopped(), "stopped · exit status 0"),
        (replace(loading(), stale_since_s=NOW_MONO_S - 40), "the host can't be reached; all of this is 40 s old"),
        (replace(answering(), state="not-answering", health="timeout"), "does not answer, health says timeout"),
        (replace(answering(), state="loading", health="503"), "its log says ready; not proven yet, health 503"),
        (replace(loading(), history_note="", reading=reading("starting")), "no estimate"),
        (replace(loading(), reading=reading("weights", basis="tail")), "read from the log's end only"),
        (
            replace(loading(), history_note="", reading=reading(
                "weights", progress=Progress(11, 49, "shard", 1 / 30, EtaRange(900, 1140, 1260, "stamps")))),
            "30.0 s/shard · this phase 15 to 21 min · by log stamps",
        ),
    ],
)  # fmt: skip
def test_the_outlook_says_what_is_known_and_on_what_basis(view: LaunchView, words: str) -> None:
    assert words in outlook(view, 140, NOW_MONO_S).plain


def test_notes_in_the_list() -> None:
    assert [state_note(view)[0] for view in (loading(), answering(), failed(), stopped())] == [
        "weights 34%", "773 tok/s", "gpu-oom", "stopped",
    ]  # fmt: skip


def test_numbers_as_people_say_them() -> None:
    assert [duration(s) for s in (None, 0.4, 59.4, 65, 3700, 90_000)] == [
        "–",
        "0 s",
        "59 s",
        "1:05",
        "1 h 01",
        "1 d 1 h",
    ]
    assert [span(14, 14.4), span(40, 55), span(420, 540), span(5400, 7200)] == [
        "14 s",
        "40 to 55 s",
        "7 to 9 min",
        "1.5 to 2 h",
    ]
    assert [bar(x, 4) for x in (None, 0, 0.5, 1.0, 2.0)] == ["····", "░░░░", "██░░", "████", "████"]
    assert len(bar(0.37, 10)) == 10


HOSTILE = "\x1b]52;c;aGk=\x07\x1b]0;owned\x07\x1b[2J[bold]x[/] [TP1]\r\n\t\x00\x9b31m\u202e\u2066\x7f"


def test_no_control_passes() -> None:
    clean = safe(HOSTILE)
    assert not [character for character in clean if ord(character) < 32 or 0x7F <= ord(character) < 0xA0]
    assert "\u202e" not in clean
    assert "[bold]x[/] [TP1]" in clean


async def test_hostile_text_from_everywhere_reaches_no_cell_as_a_control() -> None:
    app = make_app()
    board = app.desk.board
    failure = failed().reading
    assert failure is not None
    assert failure.failure is not None
    bad_failure = replace(failure.failure, line=HOSTILE, messenger=HOSTILE, rank=HOSTILE)
    board.publish_launch(replace(failed(), launch_id="X", name=HOSTILE, owner=HOSTILE, started_at_s=None,
                                 reading=replace(failure, failure=bad_failure)))  # fmt: skip
    host = board.hosts["gpu-b"]
    board.publish_host(replace(host, detail=HOSTILE, notes=(HOSTILE,)))
    async with app.run_test(size=(160, 48), notifications=True) as pilot:
        app.desk.select("X")
        board.tell("failed", "X", HOSTILE, 0.0)
        app.say(HOSTILE, title=HOSTILE)
        await until(lambda: len(app._notifications) >= 2)
        await pilot.press("question_mark")
        await pilot.pause()
        strips = [strip for screen in app.screen_stack for strip in screen._compositor.render_strips()]
        text = "".join(strip.text for strip in strips)
        assert "[bold]x[/] [TP1]" in text
        assert not [c for c in text if ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u2066"]


async def test_the_card_folds_and_unfolds() -> None:
    app = make_app()
    async with app.run_test(size=(160, 48)) as pilot:
        app.desk.select("L3")
        app.screen_of_all.refresh_facts()
        await until(lambda: app.screen_of_all.card.region.height > 8)
        await pilot.press("c")
        await until(lambda: not app.screen_of_all.card.display)
        await pilot.press("c")
        await until(lambda: app.screen_of_all.card.display)


async def test_facts_ring_and_are_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app()
    bells: list[int] = []
    monkeypatch.setattr(ConsoleApp, "bell", lambda self: bells.append(1))
    app.desk.board.tell("failed", "L3", "old news", 0.0)
    app = make_app(board=app.desk.board)
    app.desk.board.tell("answers", "L2", "answers after 8:32", 0.0)
    app.desk.board.tell("phase-changed", "L1", "graph-capture", 0.0)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await until(lambda: bells)
        app.tick()
        await pilot.pause()
        app.tick()
        assert [note.message for note in app._notifications] == ["answers after 8:32"]
        assert bells == [1]


async def test_a_question_is_asked_answered_and_declined() -> None:
    app = make_app()
    commands = app.desk.commands
    assert isinstance(commands, FakeCommands)
    async with app.run_test(size=(120, 40)) as pilot:
        app.desk.board.ask(Question("q1", "gpu-b", "passphrase for ~/.ssh/id_ed25519"))
        await until(lambda: app.screen is not app.screen_of_all)
        await until(lambda: isinstance(app.focused, Input))
        await pilot.press(*"geheim")
        assert "geheim" not in plain(app)
        await pilot.press("enter")
        await until(lambda: commands.calls == [("answer", ("q1", "geheim"))])
        app.desk.board.answered("q1")
        app.desk.board.ask(Question("q2", "gpu-b", "code", secret=False))
        await until(lambda: app.screen is not app.screen_of_all)
        await pilot.press("escape")
        await until(lambda: commands.calls[-1] == ("answer", ("q2", None)))


async def test_a_question_settled_elsewhere_leaves_the_screen() -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)):
        app.desk.board.ask(Question("q1", "gpu-b", "passphrase"))
        await until(lambda: app.screen is not app.screen_of_all)
        app.desk.board.answered("q1")
        await until(lambda: app.screen is app.screen_of_all)


async def test_results_say_how_to_measure_until_something_is() -> None:
    app = make_app()
    async with app.run_test(size=(160, 48)):
        await until(lambda: "nothing measured yet" in plain(app))
        app.desk.board.publish_results(results())
        await until(lambda: "773" in plain(app) and "C=32" in plain(app))
        assert "at C=1" in plain(app)


async def test_the_window_comes_back_as_it_was_left(tmp_path: Path) -> None:
    path = tmp_path / "state" / "window.json"
    app = make_app(theme="paper")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("2", "j", "enter", "g", "j", "j", "w")
    await asyncio.to_thread(write_state, path, app.state)
    again = make_app(state=await asyncio.to_thread(read_state, path))
    async with again.run_test(size=(120, 40)):
        await until(lambda: again.screen_of_all.log_pane.session is not None)
        assert again.theme == "paper"
        assert again.desk.launch_id == "L2"
        assert again.desk.tabs == ["L2"]
        session = again.screen_of_all.log_pane.session
        assert session is not None
        assert session.top_line == 2
        assert session.port.wrap


def test_a_broken_state_file_is_as_good_as_none(tmp_path: Path) -> None:
    path = tmp_path / "window.json"
    for text in ("", "[]", "{", '{"version": 99}', '{"version": 1, "tabs": [3]}'):
        path.write_text(text)
        assert read_state(path) == WindowState()
    state = WindowState(theme="ember", tabs=[TabState("L1", 12)])
    write_state(path, state)
    assert read_state(path) == state
    write_state(Path("/proc/nowhere/window.json"), state)


@pytest.mark.parametrize("size", [(80, 24), (60, 15), (40, 10), (200, 60), (20, 5), (110, 30)])
async def test_any_size_shows_the_phase_and_survives_resizing(size: tuple[int, int]) -> None:
    app = make_app()
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.resize_terminal(*size)
        await until(lambda: app.screen.size == size)
        await pilot.pause()
        if size[0] >= 40:
            assert "weights" in plain(app)
        await pilot.press("2", "3", "4", "1")
        await pilot.resize_terminal(160, 48)
        await until(lambda: " hosts " in plain(app))
