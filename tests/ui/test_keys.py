"""Every key does what the table says, and says why when it can't."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual import events

from specconsole.errors import BadInputError, ConsentNeededError, RefusedError
from specconsole.services.commands import AttachOrder, FoundServer, LaunchOrder, StopPlan
from specconsole.ui.app import ConsoleApp
from specconsole.ui.deeds import find_deed
from specconsole.ui.forms.confirm import Confirm
from specconsole.ui.keymap import ACTIONS, read_keymap
from tests.ui.conftest import make_app, until
from tests.ui.fakes import FakeCommands


def commands_of(app: ConsoleApp) -> FakeCommands:
    assert isinstance(app.desk.commands, FakeCommands)
    return app.desk.commands


def choose(app: ConsoleApp, launch_id: str) -> None:
    app.desk.select(launch_id)
    app.screen_of_all.refresh_facts()


def toasts(app: ConsoleApp) -> list[str]:
    return [note.message for note in app._notifications]


def test_every_action_has_a_deed_and_upper_case_changes_things() -> None:
    for action in ACTIONS:
        assert callable(find_deed(action.action_id))
        for key in action.keys.split(","):
            if len(key) == 1 and key.isalpha():
                assert key.isupper() == action.changes, f"{key} {action.action_id}"


async def test_moving_in_the_log_and_following() -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await until(lambda: app.screen_of_all.log_pane.session is not None)
        session = app.screen_of_all.log_pane.session
        assert session is not None
        port = session.port
        end = port.shown()[-1][0]
        assert port.follow
        assert end == session.source.line_count - 1
        await pilot.press("k", "k")
        assert not port.follow
        assert port.shown()[-1][0] == end - 2
        await pilot.press("j", "j")
        assert port.follow
        await pilot.press("g")
        assert session.top_line == 0
        await pilot.press("space")
        assert session.top_line == app.screen_of_all.log_pane.view.page_rows - 2
        await pilot.press("pageup")
        assert session.top_line == 0
        await pilot.press("end")
        assert port.follow
        await pilot.press("f")
        assert not port.follow
        await pilot.press("f", "w", "right")
        assert port.wrap
        assert session.left == 0
        await pilot.press("w", "right")
        assert session.left == 8
        await pilot.press("left", "left")
        assert session.left == 0


async def test_search_as_you_type_and_step_through() -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("g", "slash", *"bs=7")
        pane = app.screen_of_all.log_pane
        session = pane.session
        assert session is not None
        await until(lambda: session.search is not None and session.search.done and session.marked_line is not None)
        assert session.search is not None
        assert session.search.text == "bs=7"
        first = session.marked_line
        assert first is not None
        assert "bs=7" in session.port.pages.text(first)
        await pilot.press("enter")
        assert session.marked_line == first
        assert app.focused is pane.view
        await pilot.press("n")
        second = session.marked_line
        assert second is not None
        assert second > first
        await pilot.press("m")
        assert session.marked_line == first
        await pilot.press("m")
        assert session.marked_line is not None
        assert session.marked_line > second
        await pilot.press("slash", "ctrl+r", "ctrl+u", *"bs=(", "enter")
        await until(lambda: pane.search_line.problem)
        await pilot.press("slash", "escape")
        assert session.search is None


async def test_filters_by_level_rank_and_fold() -> None:
    app = make_app()
    async with app.run_test(size=(160, 48)) as pilot:
        pane = app.screen_of_all.log_pane
        await until(lambda: pane.session is not None)
        session = pane.session
        assert session is not None
        await pilot.press("v", "v", "v")
        await until(lambda: session.least == "error" and not session.rows.scanning)
        assert 0 < len(session.rows) < 6
        await pilot.press("v")
        assert not session.filtered
        await pilot.press("r", "j", "j", "enter")
        await until(lambda: session.ranks == frozenset({"TP1"}) and not session.rows.scanning)
        assert len(session.rows) == 30
        await pilot.press("r", "home", "enter", "z")
        await until(lambda: session.fold and not session.rows.scanning)
        assert session.rows.copies(3) == 2


async def test_jumping_to_cause_phase_and_time() -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        choose(app, "L3")
        await pilot.press("exclamation_mark")
        session = app.screen_of_all.log_pane.session
        assert session is not None
        assert session.marked_line == 11
        await pilot.press("g", "escape", "p")
        assert session.marked_line == 3
        await pilot.press("p", "p", "u")
        assert session.marked_line == 7
        await pilot.press("t", *"14:05:30", "enter")
        await until(lambda: session.marked_line == 12 + 150)


async def test_select_and_copy_on_request_only(monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app()
    written: list[str] = []
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        monkeypatch.setattr(app, "_write_terminal", written.append)
        await pilot.press("g", "s", "j", "y")
        assert "2 lines" in toasts(app)[-1]
        import base64

        # What else goes to the terminal meanwhile (its title) goes in writes of its own.
        [sequence] = [part for part in written if part.startswith("\x1b]52;c;")]
        text = base64.b64decode(sequence.removeprefix("\x1b]52;c;").removesuffix("\x1b\\")).decode()
        assert text.splitlines()[1].startswith("'--cuda-graph-max-bs' is deprecated")
        session = app.screen_of_all.log_pane.session
        assert session is not None
        assert session.range.ends is None


async def test_mouse_selects_scrolls_and_picks() -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        pane = app.screen_of_all.log_pane
        await until(lambda: pane.session is not None and pane.view.size.height > 3)
        session = pane.session
        assert session is not None
        await pilot.mouse_down(pane.view, offset=(1, 0))
        await pilot.hover(pane.view, offset=(20, 1))
        await pilot.mouse_up(pane.view, offset=(20, 1))
        assert session.range.ends is not None
        assert session.selected_text().count("\n") == 1
        await pilot.click(app.screen_of_all.launches, offset=(5, 2))
        assert app.desk.launch_id == "L2"
        # The footer offers the list's own keys first now: enter keeps the log open.
        await pilot.click(app.screen_of_all.footer, offset=(2, 0))
        await until(lambda: app.desk.tabs == ["L2"])


async def test_launches_list_and_tabs() -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("2", "j", "enter")
        assert app.desk.launch_id == "L2"
        assert app.desk.tabs == ["L2"]
        assert app.focused is app.screen_of_all.log_pane.view
        await pilot.press("right_square_bracket")
        assert app.desk.launch_id == "L3"
        assert app.screen_of_all.log_pane.tabs.display
        await pilot.press("left_square_bracket", "x")
        assert app.desk.tabs == []


async def test_stop_asks_naming_owner_requests_and_benches() -> None:
    app = make_app()
    commands_of(app).plan = StopPlan("L2", "ada@desk", True, ("pid 812 (ada): python",), 12, 1)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        choose(app, "L2")
        await pilot.press("K")
        await until(lambda: app.screen is not app.screen_of_all)
        text = app.export_screenshot()
        for word in ("ada@desk", "12", "pid"):
            assert word in text
        await pilot.press("n")
        assert commands_of(app).calls == []
        await pilot.press("K")
        await until(lambda: app.screen is not app.screen_of_all)
        await pilot.press("y")
        await until(lambda: commands_of(app).calls == [("stop", "L2")])
        await until(lambda: "stopped; nothing is left" in toasts(app))


async def test_stopping_what_is_not_ours_needs_its_name_typed() -> None:
    app = make_app()
    commands_of(app).plan = StopPlan("L2", "bob@other", False, (), None, 0)
    async with app.run_test(size=(120, 40)) as pilot:
        choose(app, "L2")
        await pilot.press("K")
        await until(lambda: app.screen is not app.screen_of_all)
        await pilot.press("y", "enter")
        assert commands_of(app).calls == []
        await pilot.press("backspace", *"baseline", "enter")
        await until(lambda: commands_of(app).calls == [("stop", "L2")])


async def test_relaunch_takes_the_cards_change() -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        choose(app, "L3")
        await pilot.press("R")
        await until(lambda: app.screen is not app.screen_of_all)
        await pilot.press("y")
        await until(lambda: commands_of(app).calls == [("relaunch", ("L3", {"mem_fraction_static": 0.85}))])


async def test_a_profile_is_launched_as_it_is_on_its_host_or_another() -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("l")
        await until(lambda: app.screen is not app.screen_of_all)
        await pilot.press(*"eag", "enter")
        await until(lambda: commands_of(app).calls)
        assert commands_of(app).calls == [("launch", LaunchOrder("eagle3-topk1", "gpu-b"))]
        await pilot.press("l")
        await until(lambda: app.screen is not app.screen_of_all)
        await pilot.press("right", *"vllm", "enter")
        assert "profiles/broken.toml, line 3: not TOML" in app.export_screenshot().replace("&#160;", " ")
        await pilot.press(*["backspace"] * 4, *"base", "enter")
        await until(lambda: len(commands_of(app).calls) == 2)
        assert commands_of(app).calls[-1] == ("launch", LaunchOrder("baseline", "local"))


async def test_hosts_are_added_and_trusted_after_a_look_at_the_fingerprint() -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("H")
        await until(lambda: app.screen is not app.screen_of_all)
        await pilot.press(*"gpu-a", "enter")
        assert app.screen is not app.screen_of_all
        await pilot.press("down", "enter")
        await until(lambda: commands_of(app).calls == [("add_host", "gpu-c")])
        await pilot.press("T")
        await until(lambda: app.screen is not app.screen_of_all)
        assert "SHA256:xWq0b6T1oB6J2n1bqk8Ry7y5B3aQ5dU1m8nV0c4TtWk" in app.export_screenshot()
        await pilot.press("y")
        fingerprint = "SHA256:xWq0b6T1oB6J2n1bqk8Ry7y5B3aQ5dU1m8nV0c4TtWk"
        await until(lambda: commands_of(app).calls[-1] == ("trust_key", ("gpu-b", fingerprint)))


@pytest.mark.parametrize(
    ("typed", "order"),
    [
        ("/var/log/sglang.log", AttachOrder("gpu-a", "log", "/var/log/sglang.log")),
        (":30000", AttachOrder("gpu-a", "port", "30000")),
        ("8121", AttachOrder("gpu-a", "pid", "8121")),
        ("docker logs -f x", AttachOrder("gpu-a", "log-command", "docker logs -f x")),
    ],
)
async def test_attaching_by_what_the_person_knows(typed: str, order: AttachOrder) -> None:
    app = make_app()
    keys = ["space" if key == " " else key for key in typed]
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("A")
        await until(lambda: app.screen is not app.screen_of_all)
        await pilot.press(*keys, "enter")
        await until(lambda: commands_of(app).calls == [("attach", order)])


async def test_running_engines_are_offered() -> None:
    app = make_app()
    commands_of(app).found = (FoundServer("gpu-a", 71, "vllm", 8000, "bob", "vllm serve Qwen3-32B", "/tmp/v.log"),)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("4", "o")
        await until(lambda: app.screen is not app.screen_of_all)
        await pilot.press("enter")
        await until(lambda: commands_of(app).calls == [("attach", AttachOrder("gpu-a", "pid", "71"))])


async def test_evidence_and_dropping_ask_first() -> None:
    app = make_app()
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        choose(app, "L3")
        await pilot.press("E")
        await until(lambda: app.screen is not app.screen_of_all)
        await pilot.press("y")
        await until(lambda: commands_of(app).calls == [("collect_evidence", "L3")])
        await until(lambda: any("evidence/L3" in toast for toast in toasts(app)))
        await pilot.press("D")
        await until(lambda: app.screen is not app.screen_of_all)
        await pilot.press("y")
        await until(lambda: commands_of(app).calls[-1] == ("forget", "L3"))


async def test_help_palette_jump_theme_and_diff() -> None:
    app = make_app()
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press("2", "question_mark")
        await until(lambda: app.screen is not app.screen_of_all)
        text = app.export_screenshot().replace("&#160;", " ")
        assert "proven by a request of ours" in text
        await pilot.press("escape", "semicolon")
        await until(lambda: app.screen is not app.screen_of_all)
        await pilot.press("a")
        assert app.screen_of_all.pane == "log"
        await pilot.press("f2", "down", "enter")
        assert app.theme != "night"
        await pilot.press("d", "enter")
        await until(lambda: app.screen is not app.screen_of_all)
        assert "speculative_num_steps" in app.export_screenshot()
        await pilot.press("escape", "ctrl+p")
        await until(lambda: app.screen is not app.screen_of_all)
        await pilot.press(*"baseline")
        await until(lambda: "baseline" in app.export_screenshot())
        await pilot.press("escape")


async def test_what_cannot_be_done_is_grey_and_says_why() -> None:
    app = make_app()
    commands = commands_of(app)
    commands.cannot["bench"] = "benchmarks are not there yet"
    async with app.run_test(size=(160, 48), notifications=True) as pilot:
        choose(app, "L5")
        await pilot.press("K", "b", "n")
        await until(lambda: len(toasts(app)) == 3)
        assert toasts(app) == [
            "probe-aqmedai does not run", "benchmarks are not there yet", "nothing was searched; / begins",
        ]  # fmt: skip
        commands.read_only = True
        await pilot.press("H")
        await until(lambda: toasts(app)[-1] == "this console is read-only")
        reasons = {action.action_id: why for action, why in app.screen_of_all.offered()}
        assert "stop" not in reasons  # hidden, not grey
        assert reasons["find"] == ""


async def test_an_error_of_a_command_is_said_with_what_to_try() -> None:
    app = make_app()
    commands_of(app).errors["stop"] = RefusedError("the lock is held by bob", where="gpu-a", try_="wait a minute")
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        choose(app, "L2")
        await pilot.press("K")
        await until(lambda: app.screen is not app.screen_of_all)
        await pilot.press("y")
        await until(lambda: "the lock is held by bob\ntry: wait a minute" in toasts(app))


def test_keys_are_remapped_and_faults_named(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    assert read_keymap(path) is ACTIONS
    path.write_text('[keys]\nstop = "ctrl+k"\nlog-down = "down"\n')
    found = {action.action_id: action.keys for action in read_keymap(path)}
    assert found["stop"] == "ctrl+k"
    assert found["log-down"] == "down"
    for text, word in [
        ('[keys]\nstpo = "x"\n', "stop"),
        ('[keys]\nstop = "l"\n', "launch"),
        ('[keys]\nnext-match = "e"\n', "edit"),
        ("[keys]\nstop = 3\n", "stop"),
        ("keys = [", "not TOML"),
        ("[other]\n", "only the table"),
    ]:
        path.write_text(text)
        with pytest.raises(BadInputError) as caught:
            read_keymap(path)
        assert word in str(caught.value)
        assert str(path) in str(caught.value)


async def test_what_is_typed_right_behind_the_slash_is_searched() -> None:
    """Keys that arrive in one burst, as from fast fingers or a slow link: none is lost, none is read as a command."""
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await until(lambda: app.screen_of_all.log_pane.session is not None)
        for key, character in (("slash", "/"), ("D", "D"), ("e", "e"), ("K", "K")):
            app.post_message(events.Key(key, character))
        line = app.screen_of_all.log_pane.search_line
        await until(lambda: line._input is not None and line._input.value == "DeK")
        await pilot.pause()
        assert app.screen is app.screen_of_all


def burst(app: ConsoleApp, *keys: str) -> None:
    """All at once, as a paste or a slow link gives them."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))


async def test_of_a_burst_each_key_finds_what_the_one_before_opened() -> None:
    app = make_app()
    commands = commands_of(app)
    async with app.run_test(size=(120, 40)):
        choose(app, "L2")
        burst(app, "K", "y")
        await until(lambda: commands.calls == [("stop", "L2")])
        burst(app, "H", *"gpu-x", "enter")
        await until(lambda: commands.calls[-1] == ("add_host", "gpu-x"))
        burst(app, "l", *"topk1", "enter")
        await until(lambda: commands.calls[-1] == ("launch", LaunchOrder("eagle3-topk1", "gpu-b")))


async def test_a_slow_host_holds_no_key_up(monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app()
    answer = asyncio.Event()

    async def slow(self: FakeCommands, launch_id: str) -> StopPlan:
        await answer.wait()
        return StopPlan(launch_id, "ada@desk", True, (), 0, 0)

    monkeypatch.setattr(FakeCommands, "stop_plan", slow)
    async with app.run_test(size=(120, 40)) as pilot:
        choose(app, "L2")
        await pilot.press("K", "2", "j")
        await until(lambda: app.desk.launch_id == "L3")
        assert app.screen is app.screen_of_all
        answer.set()
        await until(lambda: app.screen is not app.screen_of_all)


async def test_a_fault_is_said_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app()

    def broken(*_: object) -> list[object]:
        raise ZeroDivisionError("of ours")

    async with app.run_test(size=(160, 48), notifications=True) as pilot:
        monkeypatch.setattr(app.screen_of_all.phase, "build", broken)
        monkeypatch.setattr(app.screen_of_all.log_pane.view, "_line", broken)
        monkeypatch.setattr(FakeCommands, "profiles", broken)
        app.screen_of_all.refresh_facts()
        app.screen_of_all.log_pane.view.refresh()
        await pilot.press("l")
        await until(lambda: len(toasts(app)) == 3)
        await pilot.press("escape", "2", "j")
        assert all("ZeroDivisionError: of ours" in toast for toast in toasts(app))
        assert "ZeroDivisionError" in app.export_screenshot()
        assert app.desk.launch_id == "L2"


async def test_a_key_that_would_be_seen_is_asked_about_once() -> None:
    app = make_app()
    commands = commands_of(app)
    commands.errors["launch"] = ConsentNeededError("every user of the host sees it", subject="baseline", try_="--allow")
    order = LaunchOrder("baseline", "gpu-a")
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        for answer, placed in (("n", 1), ("y", 3)):
            app._place(order)
            await until(lambda: isinstance(app.screen, Confirm))
            assert "every user of the host sees it" in "".join(str(line) for line in app.screen._lines)
            await pilot.press(answer)
            await until(lambda n=placed: sum(name == "launch" for name, _ in commands.calls) == n)
        assert ("agree_to_key_argument", "baseline") in commands.calls
