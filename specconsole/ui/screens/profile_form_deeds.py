"""What each of the form's actions does: one coroutine an action, found by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specconsole.core.launching.form_command import plain_command
from specconsole.core.launching.form_fields import LAYOUTS, NO_LAYOUT
from specconsole.core.launching.form_layer import base_of
from specconsole.core.launching.form_search import Hit, SettingSearch
from specconsole.errors import SpecconsoleError
from specconsole.ui.screens.profile_form_start import launch, when_free
from specconsole.ui.screens.profile_form_text import save, save_as, text
from specconsole.ui.text.form_text import default_text

if TYPE_CHECKING:
    from specconsole.ui.screens.profile_form import ProfileForm

__all__ = ["launch", "save", "save_as", "text", "when_free"]


async def edit(form: ProfileForm) -> None:
    """Switches turn; anything else is typed in place."""
    view = form.list.view
    if view is None:
        await find(form)
    elif view.field.kind in ("switch", "on-off"):
        await next_value(form)
    else:
        form.typing.begin(view.field, view.text)


async def toggle(form: ProfileForm) -> None:
    await edit(form)


async def next_value(form: ProfileForm) -> None:
    _step(form, 1)


async def previous_value(form: ProfileForm) -> None:
    _step(form, -1)


def _step(form: ProfileForm, by: int) -> None:
    view = form.list.view
    if view is not None and form.model.step(view.field, by):
        form.changed()


async def put_back(form: ProfileForm) -> None:
    view = form.list.view
    if view is not None and form.model.put_back(view.field):
        form.changed()


async def undo(form: ProfileForm) -> None:
    _went(form, form.model.undo(), "undone", "nothing to undo")


async def redo(form: ProfileForm) -> None:
    _went(form, form.model.redo(), "done again", "nothing to do again")


def _went(form: ProfileForm, what: str, word: str, none: str) -> None:
    form.console_app.say(f"{word}: {what}" if what else none, timeout=2)
    form.changed()


async def fix(form: ProfileForm) -> None:
    remark = form.fixable()
    if remark is not None and form.model.apply(remark):
        form.changed()


async def find(form: ProfileForm) -> None:
    from specconsole.ui.forms.profile_find import ProfileFind

    view = form.model.view
    variables = LAYOUTS.get(form.engine, NO_LAYOUT).variables
    texts = {one.field.path: one.text or f"({default_text(one)})" for one in view.fields}
    set_texts = {path: shown for path, shown in texts.items() if not shown.startswith("(")}

    search = SettingSearch(view.fields, form.model.learned.index, variables, set_texts)

    def chosen(hit: Hit | None) -> None:
        if hit is None:
            return
        if not form.list.go_to(hit.path):
            # Not in the form yet; or no more, since the server's own flags have come in meanwhile.
            form.model.show(hit.path)
            form.refresh_form()
            form.list.go_to(hit.path)
        here = form.list.view
        if here is not None and here.field.kind not in ("switch", "on-off"):
            form.typing.begin(here.field, here.text)
        elif here is not None and hit.kind == "flag" and form.model.step(here.field, 1):
            form.changed()  # who adds a switch wants it on

    form.app.push_screen(ProfileFind(search.find), chosen)


async def host(form: ProfileForm) -> None:
    from specconsole.ui.forms.picker import Picker

    names = [(view.name, f"{view.name}  {'' if view.state == 'up' else view.state}") for view in form.desk.hosts()]

    def chosen(name: str | None) -> None:
        if name is None or name == form.host:
            return
        try:
            base = base_of(form.model.base.name, name, form.model.base.parents)
        except SpecconsoleError as error:
            form.console_app.say(str(error), severity="error")
            return
        form.model.move_to(base)
        form.model.python = form.commands.python(name)
        form.looks.findings = ()
        form.changed()

    form.app.push_screen(Picker("launch it on", names, form.host), chosen)


async def holders(form: ProfileForm) -> None:
    """Of the port or GPU that the finding in focus names; without one, all of the host's."""
    import re

    from specconsole.ui.deeds.host_deeds import show_holders

    found = form.found
    text = found[form.selected].text if 0 <= form.selected < len(found) else ""
    port, gpu = re.search(r"\bport (\d{1,5}) is held", text), re.search(r"held on GPU (\d+):", text)
    show_holders(
        form.console_app, form.desk, form.host,
        port=int(port[1]) if port else None, gpu=int(gpu[1]) if gpu and not port else None,
    )  # fmt: skip


async def next_finding(form: ProfileForm) -> None:
    _to_finding(form, 1)


async def previous_finding(form: ProfileForm) -> None:
    _to_finding(form, -1)


def _to_finding(form: ProfileForm, by: int) -> None:
    found = form.found
    # What is fine needs no visit.
    bad = [number for number, one in enumerate(found) if one.level != "ok"] or list(range(len(found)))
    now = bad.index(form.selected) if form.selected in bad else -1 if by > 0 else 0
    form.go_to_finding(bad[(now + by) % len(bad)])


async def checks(form: ProfileForm) -> None:
    from specconsole.ui.forms.form_findings import FormFindings

    def chosen(number: int | None) -> None:
        if number is not None and number < len(found):
            now = [one.text for one in form.found]
            form.go_to_finding(now.index(found[number].text) if found[number].text in now else len(now))

    found = list(form.found)
    form.app.push_screen(FormFindings(found), chosen)


async def look(form: ProfileForm) -> None:
    profile = form.model.view.profile
    if form.looks.under_way:
        form.looks.call_off()
    elif profile is not None:
        form.looks.again(profile, form.host)


async def copy(form: ProfileForm) -> None:
    form.console_app.copy_text(plain_command(form.model.view.units))


async def command(form: ProfileForm) -> None:
    form.toggle_class("whole")
    form.call_after_refresh(form.refresh_form)


async def next_section(form: ProfileForm) -> None:
    form.list.step_section(1)


async def previous_section(form: ProfileForm) -> None:
    form.list.step_section(-1)


async def down(form: ProfileForm) -> None:
    form.list.move(1)


async def up(form: ProfileForm) -> None:
    form.list.move(-1)


async def page_down(form: ProfileForm) -> None:
    form.list.move(max(2, form.list.size.height - 2))


async def page_up(form: ProfileForm) -> None:
    form.list.move(-max(2, form.list.size.height - 2))


async def top(form: ProfileForm) -> None:
    form.list.move_to_end(last=False)


async def bottom(form: ProfileForm) -> None:
    form.list.move_to_end(last=True)


async def help(form: ProfileForm) -> None:
    from specconsole.ui.screens.help import HelpScreen
    from specconsole.ui.screens.profile_form_actions import ACTIONS, HELP

    form.app.push_screen(HelpScreen("the form", HELP, ACTIONS))


async def leave(form: ProfileForm) -> None:
    """A view over the whole window is left first; what is not saved is asked about."""
    from specconsole.ui.formatters import styled
    from specconsole.ui.forms.confirm import Confirm, bullet

    if form.has_class("whole"):
        await command(form)
        return
    if form.launching:
        form.console_app.errands.cancel(form.errand)
        form.console_app.say("the start is called off; what it did so far stands", severity="warning")
        return
    if not form.model.unsaved:
        form.dismiss("")
        return
    lost = form.model.view.against_parent
    lines = [styled("What was changed here is in no file and in no launch:"),
             *(bullet(f"{one.key}: {one.before or '–'} → {one.after or '–'}") for one in lost[:8])]  # fmt: skip

    def answered(yes: bool | None) -> None:
        if yes:
            form.dismiss("")

    form.app.push_screen(Confirm("leave without saving?", lines, yes="leave it"), answered)
