"""A read-only console, and a read-only host, show no key that changes something: footer, help, palette."""

from __future__ import annotations

import pytest

from specconsole.services.looking_only import LookingOnly
from specconsole.ui.app import ConsoleApp
from specconsole.ui.availability import hidden, reason
from specconsole.ui.keymap import ACTIONS
from specconsole.ui.palette import ActionsProvider
from tests.ui.conftest import make_app, until
from tests.ui.fakes import FakeCommands

LOOK = {
    "find", "error", "follow", "diff", "account", "help", "palette", "cancel", "jump", "next-launch", "previous-launch",
    "close-tab", "theme", "card", "quit", "gpus", "holders", "reconnect", "history", "probes",
}  # fmt: skip
"""Everything else, but for moving around and the log's own keys, changes something or opens a form for it."""


def commands_of(app: ConsoleApp) -> FakeCommands:
    assert isinstance(app.desk.commands, FakeCommands)
    return app.desk.commands


def is_moving(action_id: str) -> bool:
    return action_id.startswith(("pane-", "log-", "list-", "host-", "results-"))


async def palette_labels(app: ConsoleApp) -> set[str]:
    return {label.rsplit("  (", 1)[0] for label, _, _ in ActionsProvider(app.screen_of_all, None)._all()}


async def test_a_read_only_console_shows_only_what_looks() -> None:
    app = make_app()
    commands_of(app).read_only = True
    kept = {action.action_id for action in ACTIONS if not hidden(action, app.desk)}
    logs = {action.action_id for action in ACTIONS if action.scope == "log"}
    # A new action must be judged here.
    assert {name for name in kept - logs if not is_moving(name)} == LOOK
    gone = [action for action in ACTIONS if action.action_id not in kept]
    assert {"launch", "stop", "relaunch", "bench", "attach", "trust-key", "remove-host"} <= {a.action_id for a in gone}
    async with app.run_test(size=(160, 40)) as pilot:
        for pane in ("1", "2", "3", "4"):
            await pilot.press(pane)
            offered = {action.action_id for action, _ in app.screen_of_all.offered()}
            assert not offered & {action.action_id for action in gone}
            _, _, helped = app.screen_of_all.help_of_focus()
            assert not {action.action_id for action in helped} & {action.action_id for action in gone}
        assert not await palette_labels(app) & {action.label for action in gone}
        before = list(commands_of(app).calls)
        for action in gone:
            await pilot.press(action.keys.split(",")[0])
        await pilot.pause()
        assert commands_of(app).calls == before
        assert len(app.screen_stack) == 1


def test_while_the_services_start_nothing_is_hidden_that_comes_a_moment_later() -> None:
    app = make_app()
    stop = next(action for action in ACTIONS if action.action_id == "stop")
    app.desk.launch_id = "L2"
    app.desk.commands = LookingOnly("the services are starting", read_only=False)
    assert not hidden(stop, app.desk)
    assert "the services are starting" in reason(stop, app.desk, None)
    app.desk.commands = LookingOnly("this is a recording")
    assert hidden(stop, app.desk)


@pytest.mark.parametrize(("kept_host", "shown"), [("gpu-a", False), ("gpu-b", True)])
async def test_a_read_only_host_hides_what_would_change_it(kept_host: str, shown: bool) -> None:
    app = make_app()
    commands_of(app).read_only_hosts = (kept_host,)
    async with app.run_test(size=(160, 40), notifications=True) as pilot:
        app.desk.select("L2")
        app.screen_of_all.refresh_facts()
        assert app.desk.launch is not None
        assert app.desk.launch.host == "gpu-a"
        offered = {action.action_id for action, _ in app.screen_of_all.offered()}
        assert ({"relaunch", "stop"} <= offered) is shown
        assert "launch" in offered  # another host takes it
        if not shown:
            await pilot.press("K")
            await until(lambda: any("gpu-a is read-only (hosts.toml)" in note.message for note in app._notifications))
