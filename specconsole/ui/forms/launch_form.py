"""Which profile is launched, and where: enter starts it as it is, tab opens it in the form."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from specconsole.errors import SpecconsoleError
from specconsole.services.commands import ProfileSummary
from specconsole.ui.formatters import row, styled
from specconsole.ui.forms.modal import Modal

if TYPE_CHECKING:
    from specconsole.ui.app import ConsoleApp


@dataclass(frozen=True, slots=True)
class LaunchChoice:
    """A profile and a host."""

    profile: str
    host: str
    edit: bool = False
    """True: into the form first."""


class LaunchForm(Modal[LaunchChoice]):
    """`host` holds whatever profile is picked; `usual_host` gives way to a profile's own."""

    DEFAULT_CSS = """
    LaunchForm #box { width: 100; }
    LaunchForm OptionList { max-height: 20; text-wrap: nowrap; text-overflow: ellipsis; }
    LaunchForm.short OptionList { max-height: 9; }
    LaunchForm OptionList > .option-list--option-highlighted { background: $selection; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+l", "start", show=False, priority=True),
        Binding("tab", "edit", show=False, priority=True),
        Binding("left", "host(-1)", show=False, priority=True),
        Binding("right", "host(1)", show=False, priority=True),
        Binding("down", "step(1)", show=False, priority=True),
        Binding("up", "step(-1)", show=False, priority=True),
        Binding("pagedown", "step(8)", show=False, priority=True),
        Binding("pageup", "step(-8)", show=False, priority=True),
    ]
    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("⏎", "launch as is"), ("tab", "change first"), ("← →", "host"), ("↑ ↓", "profile"), ("esc", "leave"),
    )  # fmt: skip

    def __init__(
        self,
        load: Callable[[], Awaitable[Sequence[ProfileSummary]]],
        hosts: Sequence[str],
        *,
        profile: str = "",
        host: str = "",
        usual_host: str = "",
        prepare: Callable[[LaunchChoice], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__("launch a server")
        self._load = load
        self._loaded = asyncio.Event()
        self._profiles: list[ProfileSummary] = []
        self._shown: list[ProfileSummary] = []
        self._hosts = list(hosts)
        self._profile = profile
        self._host = host or usual_host
        self._usual = self._host
        self._chosen = bool(host)
        """Whether the host was chosen, so that a profile's own gives way to it."""
        self._prepare = prepare
        """Reads what the form needs, while keys wait; None where nothing can be edited."""

    def body(self) -> ComposeResult:
        yield Input(placeholder="part of a profile's name or of what it says", id="wanted")
        yield OptionList(id="profiles")
        yield Static("", id="host-line")
        yield Static("", id="summary", markup=False)

    @staticmethod
    def _line(profile: ProfileSummary) -> Content:
        note = (profile.problem, "$error") if profile.problem else (profile.summary, "$muted")
        return row((f"{profile.name:<26}", "bold"), f" {profile.engine:<9} ", note)

    def on_mount(self) -> None:
        self.query_one("#profiles", OptionList).can_focus = False
        self.query_one("#wanted", Input).focus()
        self._show_host()
        self.run_worker(self._read(), exclusive=True, group="load", exit_on_error=False)

    async def _read(self) -> None:
        """The form stands at once and takes keys; the files are read beside it."""
        try:
            self._profiles = list(await self._load())
        except SpecconsoleError as error:
            self.wrong(str(error))
        except Exception as error:  # noqa: BLE001  # a fault of ours is said, and the window goes on
            cast("ConsoleApp", self.app).fault("the list of profiles", error)
        else:
            if not self._profiles:
                self.wrong("there is no profile yet; put one into the profiles folder")
        finally:
            self._loaded.set()
        self._filter(self.query_one("#wanted", Input).value, self._profile)

    def _fill(self, keep: str) -> None:
        profiles = self.query_one("#profiles", OptionList)
        profiles.clear_options()
        profiles.add_options([Option(self._line(profile)) for profile in self._shown])
        names = [profile.name for profile in self._shown]
        profiles.highlighted = names.index(keep) if keep in names else 0 if names else None
        self._picked_changed()

    @on(Input.Changed, "#wanted")
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        keep = self._picked
        self._filter(event.value, keep.name if keep is not None else self._profile)

    def _filter(self, text: str, keep: str) -> None:
        words = text.lower().split()
        self._shown = [one for one in self._profiles
                       if all(word in f"{one.name} {one.engine} {one.summary}".lower() for word in words)]  # fmt: skip
        # What begins with it goes before what only mentions it.
        self._shown.sort(key=lambda one: bool(words) and not one.name.lower().startswith(words[0]))
        self._fill("" if words else keep)
        if self._profiles:
            self.wrong("" if self._shown else "no profile has that in its name or description")

    @property
    def _picked(self) -> ProfileSummary | None:
        place = self.query_one("#profiles", OptionList).highlighted
        return self._shown[place] if place is not None and place < len(self._shown) else None

    @on(OptionList.OptionHighlighted, "#profiles")
    def _picked_changed(self) -> None:
        picked = self._picked
        if picked is not None and not self._chosen:
            self._host = picked.host if picked.host in self._hosts else self._usual
        shown = [f"{name}={value}" for name, value in picked.settings.items()] if picked is not None else []
        self.query_one("#summary", Static).update(styled("  ".join(shown[:24]), "$muted"))
        self._show_host()
        if picked is not None:
            self.wrong(picked.problem)

    def _show_host(self) -> None:
        others = len(self._hosts) - 1
        more = f"   ← → one of {others} other{'s' if others > 1 else ''}" if others > 0 else ""
        self.query_one("#host-line", Static).update(
            row(("on ", "$muted"), (self._host or "no host", "bold $primary"), (more, "$muted"))
        )

    def action_step(self, by: int) -> None:
        profiles = self.query_one("#profiles", OptionList)
        if self._shown:
            profiles.highlighted = max(0, min(len(self._shown) - 1, (profiles.highlighted or 0) + by))

    def action_host(self, by: int) -> None:
        if self._hosts:
            place = self._hosts.index(self._host) if self._host in self._hosts else 0
            self._host = self._hosts[(place + by) % len(self._hosts)]
            self._chosen = True
            self._show_host()

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        # A click looks before it starts anything.
        self.run_worker(self.action_edit(), exclusive=True, group="open", exit_on_error=False)

    @on(Input.Submitted)
    async def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        await self.action_start()

    async def action_start(self) -> None:
        await self._loaded.wait()
        if (choice := self._choice(edit=False)) is not None:
            self.dismiss(choice)

    async def action_edit(self) -> None:
        await self._loaded.wait()
        choice = self._choice(edit=True)
        if choice is None:
            return
        if self._prepare is None:
            self.wrong("profiles can't be changed here")
            return
        try:
            await self._prepare(choice)
        except SpecconsoleError as error:
            self.wrong(str(error))
        else:
            self.dismiss(choice)

    def _choice(self, *, edit: bool) -> LaunchChoice | None:
        picked = self._picked
        if picked is None or not self._host:
            self.wrong("a profile and a host are wanted")
        elif picked.problem:
            self.wrong(picked.problem)
        else:
            return LaunchChoice(picked.name, self._host, edit)
        return None
