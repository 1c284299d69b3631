"""Starting what the form shows: asked about where something stands against it, or where the old one still runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from specconsole.errors import SpecconsoleError
from specconsole.ui.formatters import styled

if TYPE_CHECKING:
    from specconsole.core.launching.form_remarks import Remark
    from specconsole.services.form_desk import FormOrder
    from specconsole.ui.screens.profile_form import ProfileForm


async def launch(form: ProfileForm) -> None:
    await _ask_and_start(form, when_free=False)


async def when_free(form: ProfileForm) -> None:
    """Waits on the host until what it needs is free."""
    await _ask_and_start(form, when_free=True)


async def _ask_and_start(form: ProfileForm, *, when_free: bool) -> None:
    from specconsole.services.form_desk import FormOrder

    if not form.typing.submit():
        return
    view = form.model.view
    if view.profile is None or view.error is not None:
        error = view.error
        form.console_app.say(str(error) if error is not None else "the settings make no profile", severity="error")
        return
    order = FormOrder(view.profile, form.host, when_free=when_free)
    # What was found for settings that have changed since is looked at again by the start itself; and where it waits,
    # what the host holds now passes.
    known = view.remarks if when_free or form.looks.stale else form.found
    errors = [one for one in known if one.level == "error"]
    if errors:
        _ask_about(form, errors, order)
    else:
        _ask_about_running(form, order)


def _ask_about(form: ProfileForm, errors: list[Remark], order: FormOrder) -> None:
    from dataclasses import replace

    from specconsole.ui.forms.confirm import Confirm, bullet

    lines = [styled("This stands against the start:"), *(bullet(one.text, "$error") for one in errors[:8])]

    def answered(yes: bool | None) -> None:
        if yes:
            _ask_about_running(form, replace(order, preflight=False))

    form.app.push_screen(Confirm(f"start {order.profile.name} all the same?", lines, yes="start it"), answered)


def _ask_about_running(form: ProfileForm, order: FormOrder) -> None:
    """The launch that is edited still runs: it is stopped first, or the new one goes beside it."""
    from dataclasses import replace

    from specconsole.ui.forms.picker import Picker

    launch_id = form.opening.launch_id
    view = form.desk.board.launches.get(launch_id)
    runs = view is not None and view.state not in ("stopped", "failed", "gone", "unknown")
    if view is None or not runs or order.when_free:
        _start(form, order)
        return
    choices = [("beside", "start it beside the one that runs"), ("not-now", "not now")]
    if view.ours:
        # Somebody else's server is stopped from its own row, by typing its name.
        busy = f", {view.running_benches} benchmarks on it" if view.running_benches else ""
        choices.insert(0, ("stop", f"stop the one that runs, then start ({view.owner or 'owner unknown'}{busy})"))

    def chosen(word: str | None) -> None:
        if word in ("stop", "beside"):
            _start(form, replace(order, stop_first=launch_id) if word == "stop" else order)

    form.app.push_screen(Picker(f"{view.name} runs on {view.host}", choices), chosen)


def _start(form: ProfileForm, order: FormOrder) -> None:
    """Runs beside the form, which closes when the server's process stands, and stays with what was wrong otherwise."""
    app = form.console_app
    name = form.errand = f"launch {order.profile.name}"

    async def work(progress: Callable[[str], None]) -> str:
        def told(text: str) -> None:
            progress(text)
            form.launching = text
            form.refresh_form()

        told("starting")
        try:
            return await form.commands.launch(order, told)
        except SpecconsoleError:
            form.launching = ""
            form.refresh_form()
            raise
        finally:
            form.launching = ""

    def done(launch_id: str) -> None:
        if form.is_current:
            form.dismiss(launch_id)
        else:
            form.desk.select(launch_id)

    app.errands.start(name, work, done)
