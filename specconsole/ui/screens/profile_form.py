"""The form: a profile's settings on one screen, judged while they are typed, saved and launched by keys."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input

from specconsole.core.launching.form_fields import FieldPath, FlagIndex
from specconsole.core.launching.form_layout import SECTIONS
from specconsole.core.launching.form_model import FormModel
from specconsole.core.launching.form_remarks import LEVELS, FieldNames, Learned, Remark, of_findings
from specconsole.ui.formatters import row, styled
from specconsole.ui.keymap import Action
from specconsole.ui.messages import ActionAsked
from specconsole.ui.screens.profile_form_actions import ACTIONS, BY_ID, form_bindings
from specconsole.ui.screens.profile_form_looks import FormLooks
from specconsole.ui.screens.profile_form_typing import Typing
from specconsole.ui.widgets.footer_line import FooterLine
from specconsole.ui.widgets.form_editor import FieldEditor, Suggestions
from specconsole.ui.widgets.form_list import FormList
from specconsole.ui.widgets.form_panes import FormChecks, FormCommand, FormCount, FormDetail, FormHead, FormTabs

if TYPE_CHECKING:
    from specconsole.core.views.form import FormView
    from specconsole.services.form_desk import FormCommands, FormOpening
    from specconsole.ui.app import ConsoleApp
    from specconsole.ui.desk import Desk

SMALL_BELOW = (110, 30)
WIDE_FROM = 170


class ProfileForm(Screen[str]):
    """Gives the id of the launch that it started, or "" when it was left."""

    CSS = (Path(__file__).parent / "profile_form.tcss").read_text("utf-8")
    AUTO_FOCUS = "#form-list"
    BINDINGS: ClassVar[list[BindingType]] = [*form_bindings()]

    def __init__(
        self, desk: Desk, commands: FormCommands, opening: FormOpening, index: FlagIndex | None,
        change: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.desk = desk
        self.commands = commands
        self.opening = opening
        self.model = FormModel(opening.base, opening.own, saved=opening.saved, last=opening.last,
                               python=commands.python(opening.base.host))  # fmt: skip
        self.model.learn(Learned(index))
        if change:
            names = FieldNames([one.field for one in self.model.view.fields], self.engine, index)
            self.model.apply(Remark("note", "as the card proposes", (), {names.path(k): v for k, v in change.items()}))
        self.launching = ""
        """What a start that is under way is at; "" for none."""
        self.errand = ""
        """Its name among the window's errands."""
        self.marked = ""
        """The text of the finding in focus; "" for none. Their numbers change as they come in."""
        self.found: list[Remark] = []
        """What flags, rules, types and the host say, gravest first, as it is shown."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.list = FormList()
        self.editor = FieldEditor()
        self.suggestions = Suggestions()
        self.head = FormHead(self._head)
        self.tabs = FormTabs()
        self.checks = FormChecks()
        self.detail = FormDetail()
        self.small_detail = FormDetail(id="form-small-detail")
        self.command = FormCommand()
        self.count = FormCount()
        self.footer = FooterLine(self._offered)
        self.looks = FormLooks(commands, self.model, self.refresh_form, self.spawn)
        self.typing = Typing(self)
        self.small = False

    @property
    def console_app(self) -> ConsoleApp:
        return cast("ConsoleApp", self.app)

    @property
    def engine(self) -> str:
        profile = self.model.view.profile or self.opening.base.profile
        return profile.engine if profile is not None else "other"

    @property
    def host(self) -> str:
        return self.model.base.host

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Runs beside the form; ended with it. A fault of ours is said and ends nothing."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)
        return task

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            self.console_app.fault(task.get_name(), error)

    # ---------------------------------------------------------------- layout

    def compose(self) -> ComposeResult:
        self._set_classes(self.app.size.width, self.app.size.height)
        yield self.head
        yield self.tabs
        with Horizontal(id="form-body"):
            with Container(id="form-left"):
                yield self.list
                yield self.editor
                yield self.suggestions
            with Vertical(id="form-right"):
                yield self.checks
                yield self.detail
        yield self.small_detail
        yield self.command
        yield self.count
        yield self.footer

    def on_mount(self) -> None:
        self.query_one("#form-command").border_title = styled("command line")
        self.changed()
        for note in self.opening.notes:
            self.console_app.say(note, title=self.model.base.name, severity="warning", timeout=12)

    def on_unmount(self) -> None:
        for task in self._tasks:
            task.cancel()

    def on_resize(self, event: events.Resize) -> None:
        self._set_classes(event.size.width, event.size.height)
        self.typing.move()
        self.refresh_form()

    def _set_classes(self, width: int, height: int) -> None:
        self.small = width < SMALL_BELOW[0] or height < SMALL_BELOW[1]
        self.set_class(self.small, "small")
        self.set_class(width >= WIDE_FROM, "wide")
        self.list.set_one_section(self.small)

    # ---------------------------------------------------------------- what is shown

    def shown(self) -> FormView:
        """The settings as they are, or as they would be with what is being typed."""
        return self.typing.trial or self.model.view

    @property
    def selected(self) -> int:
        """The finding in focus, by number; -1 for none."""
        return next((number for number, one in enumerate(self.found) if one.text == self.marked), -1)

    def _findings(self, view: FormView) -> list[Remark]:
        names = FieldNames([one.field for one in view.fields], self.engine, self.model.learned.index)
        found = [*view.remarks, *of_findings(self.looks.findings, names)]
        if self.looks.trouble:
            found.append(Remark("warning", self.looks.trouble))
        return sorted(found, key=lambda one: LEVELS.index(one.level))

    def changed(self) -> None:
        """The settings are others: everything is shown anew, and the host looked at again."""
        self.looks.settings_changed(self.model.view.profile, self.host)
        self.refresh_form()

    def refresh_form(self) -> None:
        """Draws what differs."""
        if not self.is_attached:
            return
        view = self.shown()
        self.found = found = self._findings(view)
        self.list.show(view.fields)
        self.head.update()
        self.tabs.show(view, self.list.section)
        told = self.looks.told or ("changed since the host was looked at" if self.looks.stale else "")
        self.checks.show(found, self.selected, told)
        self.count.show(found, told)
        self.command.parent_name = self.model.base.parents[0].name if self.model.base.parents else ""
        self.command.last_name = self._last_name()
        self._show_field(found)
        self.footer.update()

    def _last_name(self) -> str:
        last = self.model.last
        if last is None:
            return ""
        return "this launch" if last.launch_id == self.opening.launch_id else f"its last launch on {last.host}"

    def _show_field(self, found: Sequence[Remark]) -> None:
        view = self.shown()
        here = self.list.view
        now = view.by_path.get(here.field.path) if here is not None else None
        mine = [one for one in found if now is not None and now.field.path in one.paths and one.level != "ok"]
        for pane in (self.detail, self.small_detail):
            pane.show(now, mine, self.typing.wrong)
        self.command.show(view, self._flags_here(now.field.path if now is not None else None))

    def _flags_here(self, path: FieldPath | None) -> frozenset[str]:
        """Names on the command line of the setting in focus."""
        if path is None:
            return frozenset()
        if path[0] in ("env", "secrets"):
            return frozenset({f"env.{path[1]}"})
        view = self.shown().by_path.get(path)
        index = self.model.learned.index
        flag = index.find(view.field.flag) if index is not None and view is not None and view.field.flag else None
        names = {alias.lstrip("-").replace("-", "_") for alias in flag.aliases} if flag is not None else set()
        return frozenset({*names, path[1] if len(path) > 1 else path[0]})

    def _head(self) -> tuple[Content, Content]:
        base = self.model.base
        parts: list[str | tuple[str, str]] = [(f" {base.name}", "bold"), " @ ", (base.host, "bold $primary")]
        if self.opening.launch_id:
            parts.append(("  as it was launched" + (", runs now" if self.opening.runs else ""), "$muted"))
        elif self.opening.file and base.parents:
            parts.append((f"  extends {base.parents[0].name}", "$muted"))
        own = len(self.model.view.against_parent) if base.parents else 0
        if self.launching:
            right: Content = styled(f"{self.launching} ", "bold $warning")
        elif why := self.commands.why_not(base.host):
            right = styled(f"{why} ", "bold $warning")
        elif self.model.unsaved:
            right = row((f"{own} changed, not saved " if own else "not saved ", "bold $warning"))
        else:
            right = styled("saved " if self.opening.file else "", "$success")
        return row(*parts), right

    # ---------------------------------------------------------------- keys

    def reason(self, action: Action) -> str:
        """Why an action can't be done now; "" when it can."""
        name = action.action_id
        if name in ("launch", "when-free", "save", "save-as") and (why := self.commands.why_not(self.host)):
            return why if name in ("launch", "when-free") or "console" in why else ""
        if name == "launch" and self.launching:
            return "a start is under way"
        if name == "fix" and self.fixable() is None:
            return "no finding here has a fix"
        if name in ("next-finding", "previous-finding") and not self.found:
            return "there is no finding"
        return ""

    def fixable(self) -> Remark | None:
        """The finding that `f` mends: the one in focus, else the gravest one of the setting in focus."""
        marked = next((one for one in self.found if one.text == self.marked and one.fix), None)
        path = self.list.path
        return marked or next((one for one in self.found if one.fix and path in one.paths), None)

    def _offered(self) -> list[tuple[Action, str]]:
        if self.typing.field is not None:
            return [(action, "") for action in _WHILE_TYPING]
        offered = [action for action in ACTIONS if action.footer]
        return [(action, self.reason(action)) for action in sorted(offered, key=lambda one: one.footer)]

    async def action_act(self, action_id: str) -> None:
        """Does one action, or says why it can't be done."""
        from specconsole.ui.screens import profile_form_deeds

        if action_id.startswith("section-"):
            self.list.go_to_section(SECTIONS[int(action_id.removeprefix("section-")) - 1])
            return
        action = BY_ID.get(action_id)
        if action is None:
            return
        if why := self.reason(action):
            self.console_app.say(why, title=f"{action.shown_key} {action.label}", severity="warning")
            return
        await getattr(profile_form_deeds, action_id.replace("-", "_"))(self)

    @on(ActionAsked)
    async def _asked(self, message: ActionAsked) -> None:
        message.stop()
        if message.action_id == "typing-take":
            self.typing.submit()
        elif message.action_id == "typing-leave":
            self.typing.close()
        else:
            await self.action_act(message.action_id)

    # ---------------------------------------------------------------- what the widgets say

    @on(FormList.Moved)
    def _moved(self) -> None:
        if not any(one.text == self.marked and (self.list.path in one.paths or not one.paths) for one in self.found):
            self.marked = ""
        self.refresh_form()

    @on(FormList.Opened)
    async def _opened(self) -> None:
        await self.action_act("edit")

    @on(FormTabs.Chosen)
    def _tab(self, message: FormTabs.Chosen) -> None:
        self.typing.close()
        self.list.go_to_section(message.section)

    @on(FormChecks.Chosen)
    def _finding(self, message: FormChecks.Chosen) -> None:
        self.go_to_finding(message.number)

    def go_to_finding(self, number: int) -> None:
        """Marks a finding and puts the cursor on its setting."""
        if number >= len(self.found):
            return
        self.marked = self.found[number].text
        for path in self.found[number].paths:
            if self.list.go_to(path):
                break
        self.refresh_form()

    @on(Input.Changed, "#form-editor")
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.typing.changed(event.value)

    @on(Input.Submitted, "#form-editor")
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.typing.submit()

    @on(FieldEditor.GivenUp)
    def _given_up(self) -> None:
        self.typing.close()

    @on(FieldEditor.StepSuggestion)
    def _step_suggestion(self, message: FieldEditor.StepSuggestion) -> None:
        self.suggestions.step(message.by)

    @on(FieldEditor.TakeSuggestion)
    def _take_suggestion(self) -> None:
        self.typing.take_suggestion()

    @on(Suggestions.Picked)
    def _picked(self, message: Suggestions.Picked) -> None:
        self.typing.pick(message.value)


_WHILE_TYPING = (
    Action("typing-take", "enter", "take it", ""),
    Action("typing-leave", "escape", "leave as it was", ""),
    Action("typing-choose", "up,down", "choose", ""),
    Action("typing-complete", "tab", "complete", ""),
    Action("launch", "ctrl+l", "take it and launch", ""),
)
