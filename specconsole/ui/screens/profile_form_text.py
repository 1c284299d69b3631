"""Saving what the form shows, and editing it as text in the person's own editor."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from specconsole.core.launching.form_layer import Table, base_of
from specconsole.core.launching.inherit import Layer, resolve
from specconsole.errors import SpecconsoleError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import App

    from specconsole.ui.screens.profile_form import ProfileForm

_EDITORS = ("nano", "vi")


async def save(form: ProfileForm) -> None:
    """Into the form's own file; asks for a name where there is none yet."""
    if not form.typing.submit():
        return
    if form.opening.file:
        await _save(form, form.model.base.name)
    else:
        await save_as(form)


async def save_as(form: ProfileForm) -> None:
    from specconsole.ui.forms.profile_name import ProfileName

    if not form.typing.submit():
        return
    name = await form.commands.free_name(form.model.base.name)
    extends = form.model.base.parents[0].name if form.model.base.parents else ""

    def named(chosen: str | None) -> None:
        if chosen:
            form.spawn(_save(form, chosen), "form-save")

    form.app.push_screen(ProfileName(name, extends, form.commands.why_no_name), named)


async def _save(form: ProfileForm, name: str) -> None:
    view = form.model.view
    if view.profile is None:
        form.console_app.say(str(view.error), title="not saved", severity="error")
        return
    try:
        path = await form.commands.save(name, form.model.base, form.model.own, view.profile)
    except SpecconsoleError as error:
        tries = f"\ntry: {error.try_}" if error.try_ else ""
        form.console_app.say(f"{error.what}{tries}", title=f"not saved: {error.where}", severity="error", timeout=12)
        return
    form.opening = replace(form.opening, file=path)
    form.model.move_to(replace(form.model.base, name=name))
    form.model.note_saved()
    form.console_app.say(path, title=f"saved {name}")
    form.changed()


# -------------------------------------------------------------------- as text


def editor_words() -> list[str]:
    """The person's editor as words of a command; [] where there is none."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(named)
    except ValueError:
        words = []
    if words and shutil.which(words[0]):
        return words
    return next(([name] for name in _EDITORS if shutil.which(name)), [])


async def text(form: ProfileForm) -> None:
    """The layer in the person's editor, and back again; a mistake names its line, and the editor opens on it again."""
    if form.typing.submit():
        # Beside the form's own messages: what the editor brings back may have to be asked about.
        form.spawn(_as_text(form), "form-text")


async def _as_text(form: ProfileForm) -> None:
    words = editor_words()
    if not words:
        form.console_app.say("there is no editor: set EDITOR, as in EDITOR=vim", severity="error")
        return
    content = await form.commands.toml_text(form.model.own)
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="specconsole-"))
    path = folder / f"{form.model.base.name}.toml"
    try:
        await asyncio.to_thread(_write, path, _about(form) + content)
        await _edit(form, words, path, content)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, True)


def _about(form: ProfileForm) -> str:
    parent = form.model.base.parents[0].name if form.model.base.parents else ""
    over = f" over {parent}" if parent else ""
    return f"# {form.model.base.name}: what it says itself{over}. Leave the editor to go back to the form.\n"


def _write(path: Path, content: str) -> None:
    path.write_text(content, "utf-8")
    path.chmod(0o600)


@contextmanager
def _nothing_written(app: App[object]) -> Iterator[None]:
    """Drops titles and bells while the terminal is lent: the thread that writes has ended, and the 31st write would
    wait for it for ever (Textual 8.2.8, `WriterThread`)."""
    driver = app._driver
    if driver is None:
        yield
        return
    vars(driver)["write"] = lambda data: None
    try:
        yield
    finally:
        del vars(driver)["write"]


async def _edit(form: ProfileForm, words: list[str], path: Path, before: str) -> None:
    from textual.app import SuspendNotSupported

    try:
        # Paints are held back: the terminal is the editor's. The loop goes on, and with it every link to a host.
        with form.app.batch_update(), form.app.suspend(), _nothing_written(form.app):
            done = await asyncio.to_thread(subprocess.run, [*words, str(path)], check=False)
    except SuspendNotSupported:
        form.console_app.say("this terminal can't be lent to an editor", severity="error")
        return
    except OSError as error:
        form.console_app.say(f"{words[0]}: {error.strerror}", severity="error")
        return
    if done.returncode != 0:
        form.console_app.say(f"{words[0]} ended with {done.returncode}; nothing was taken over", severity="warning")
        return
    await _take_over(form, words, path, before)


async def _take_over(form: ProfileForm, words: list[str], path: Path, before: str) -> None:
    try:
        own, parents = await form.commands.read_edited(path)
        base = base_of(form.model.base.name, form.host, parents)
        await _prove(own, parents, path, form.host)
    except SpecconsoleError as error:
        await _ask_again(form, words, path, before, error)
        return
    form.model.move_to(base)
    if form.model.replace(own, "edited as text"):
        form.console_app.say("taken over from the editor", timeout=3)
    form.changed()


async def _prove(own: Table, parents: Sequence[Layer], path: Path, host: str) -> None:
    """Raises BadInputError with the line of what makes no profile."""
    content = await asyncio.to_thread(path.read_text, "utf-8-sig")
    resolve([Layer(path.stem, own, content, path.name), *parents]).on(host)


async def _ask_again(form: ProfileForm, words: list[str], path: Path, before: str, problem: SpecconsoleError) -> None:
    """The text has a mistake: once more into the editor, or back as it was."""
    from specconsole.ui.formatters import styled
    from specconsole.ui.forms.confirm import Confirm

    again: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    where = problem.where.rpartition("/")[2]
    lines = [styled(f"{where}: {problem.what}" if where else problem.what, "$error")]
    lines += [styled(f"try: {problem.try_}", "$muted")] if problem.try_ else []

    def answered(yes: bool | None) -> None:
        if not again.done():
            again.set_result(bool(yes))

    form.app.push_screen(Confirm("the text can't be taken over", lines, yes="edit it again"), answered)
    if await again:
        await _edit(form, words, path, before)
