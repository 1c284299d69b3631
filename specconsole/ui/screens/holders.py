"""Who holds a host's ports and GPUs, over the window; one of them can be picked and, once typed, ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from specconsole.core.hardware.holders import Holder, HoldersPicture, whose
from specconsole.errors import SpecconsoleError
from specconsole.ui.formatters import duration, fit, row, spread, styled
from specconsole.ui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from specconsole.services.holder_commands import HolderCommands
    from specconsole.services.holders import Evicted
    from specconsole.ui.app import ConsoleApp

_DETAIL_ROWS = 8


class _List(TextPane):
    def __init__(self, screen: HoldersScreen) -> None:
        super().__init__(id="holders-list")
        self._of = screen

    def build(self, width: int, height: int) -> Sequence[Content]:
        picture, place = self._of.picture, self._of.place
        if picture is None:
            return [styled(self._of.problem or "looking …", "$error" if self._of.problem else "$muted")]
        if not picture.holders:
            lines = [styled(f"nobody that can be seen holds {self._of.what}", "$muted")]
            return [*lines, *(styled(note, "$warning") for note in picture.notes)]
        rows = max(1, height - _DETAIL_ROWS - len(picture.notes))
        top = max(0, min(place - rows // 2, len(picture.holders) - rows))
        lines = [
            holder_row(one, width, selected=number == place)
            for number, one in enumerate(picture.holders[top : top + rows], top)
        ]
        lines += [styled("")] * (rows - len(lines))
        lines += detail_lines(picture.holders[place], width)
        return [*lines, *(fit(styled(note, "$warning"), width) for note in picture.notes)]


def holder_row(holder: Holder, width: int, *, selected: bool) -> Content:
    """`  71 bob       3 h  python train.py …              port 30000, 60.1 GiB of GPU 0`."""
    style = "$muted" if holder.why_not else "" if holder.ours else "$warning"
    left = row(
        f"{holder.pid:>8} ", (f"{(holder.user or '?')[:10]:<10} ", "$muted"), f"{duration(holder.age_s):>8}  ",
        (holder.command or holder.name, style),
    )  # fmt: skip
    line = spread(left, row("  ", (holder.holds, "bold")), width)
    return line.stylize("on $selection") if selected else line


def detail_lines(holder: Holder, width: int) -> list[Content]:
    """All around the selected one."""
    facts = (
        ("command", holder.command or holder.name),
        ("belongs to", whose(holder)),
        ("container", holder.container or "none seen"),
        ("parent", f"pid {holder.ppid}  {holder.parent}"),
        ("folder", holder.cwd or "can't be seen"),
    )
    lines = [styled("─" * width, "$rule")]
    lines += [fit(row((f"{name:>11}  ", "$muted"), text), width) for name, text in facts]
    if holder.why_not:
        lines.append(fit(row((f"{'':>11}  ", ""), (f"not to be ended from here: {holder.why_not}", "$warning")), width))
    return lines


class HoldersScreen(ModalScreen[None]):
    """`port` or `gpu` narrow it; `read_only` is the reason why nothing can be ended here, "" when it can."""

    DEFAULT_CSS = """
    HoldersScreen { align: center middle; background: $background 60%; }
    HoldersScreen #holders-box { width: 96%; max-width: 140; height: 90%; border: round $primary; background: $surface;
        border-title-color: $primary; border-title-style: bold; padding: 0 1; }
    HoldersScreen #holders-list { height: 1fr; }
    HoldersScreen #holders-keys { height: 1; width: 1fr; color: $muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", show=False),
        Binding("j,down", "step(1)", show=False),
        Binding("k,up", "step(-1)", show=False),
        Binding("r", "look", show=False),
        Binding("K", "evict", show=False),
    ]

    def __init__(
        self,
        commands: HolderCommands,
        host: str,
        *,
        port: int | None = None,
        gpu: int | None = None,
        read_only: str = "",
    ) -> None:
        super().__init__()
        self._commands = commands
        self._host = host
        self._port = port
        self._gpu = gpu
        self._read_only = read_only
        self.picture: HoldersPicture | None = None
        self.problem = ""
        self.place = 0
        self._list = _List(self)

    @property
    def what(self) -> str:
        """What is looked at, for titles."""
        if self._port is not None:
            return f"port {self._port}"
        return f"GPU {self._gpu}" if self._gpu is not None else "ports and GPUs"

    @property
    def selected(self) -> Holder | None:
        holders = self.picture.holders if self.picture is not None else ()
        return holders[self.place] if self.place < len(holders) else None

    def compose(self) -> ComposeResult:
        box = Vertical(id="holders-box")
        box.border_title = styled(f"{self._host} · who holds {self.what}")
        with box:
            yield self._list
            yield Static(self._keys(), id="holders-keys")

    def _keys(self) -> Content:
        keys = [("j k", "other"), ("r", "look again")]
        if not self._read_only:
            keys.append(("K", "end it (typed)"))
        parts: list[str | tuple[str, str]] = []
        for key, label in (*keys, ("esc", "leave")):
            parts += [(key, "bold $primary"), f" {label}   "]
        return row(*parts)

    async def on_mount(self) -> None:
        self.action_look()

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_step(self, step: int) -> None:
        if self.picture is not None and self.picture.holders:
            self.place = (self.place + step) % len(self.picture.holders)
            self._list.update()

    def action_look(self) -> None:
        """Looks anew, beside the window."""
        self.run_worker(self._look(), exclusive=True, exit_on_error=False)

    async def _look(self) -> None:
        picked = self.selected
        try:
            self.picture = await self._commands.look(self._host, port=self._port, gpu=self._gpu)
        except (SpecconsoleError, TimeoutError) as error:
            self.picture, self.problem = None, str(error) or "no answer in time"
        else:
            same = [n for n, one in enumerate(self.picture.holders) if picked and one.pid == picked.pid]
            self.place = same[0] if same else 0
        self._list.update()

    def action_evict(self) -> None:
        """Asks for the selected one's pid or name, then ends it."""
        from specconsole.ui.forms.confirm import Confirm

        holder, app = self.selected, self._console_app
        if self._read_only or holder is None or holder.why_not:
            why = self._read_only or (holder.why_not if holder is not None else "nobody is selected")
            app.say(f"not ended: {why}", severity="warning")
            return

        def typed(said: bool | None) -> None:
            if said:
                app.errands.start(
                    f"end pid {holder.pid}",
                    lambda progress: self._commands.evict(self._host, holder, str(holder.pid), progress),
                    self._ended,
                )

        age = duration(holder.age_s)
        lines = [
            row((holder.command or holder.name, "bold")),
            row(("of ", "$muted"), (holder.user or "an unknown user", "bold $warning"), (f", for {age}", "$muted")),
            row(("belongs to ", "$muted"), whose(holder)),
            row(("holds ", "$muted"), holder.holds),
            styled("TERM, ten seconds later KILL, to this one process. Nobody can undo it."),
        ]
        self.app.push_screen(
            Confirm(f"end pid {holder.pid} on {self._host}?", lines, yes="end it", typed=str(holder.pid)), typed
        )

    def _ended(self, done: Evicted) -> None:
        ok = done.gone and not done.left
        self._console_app.say(done.text, title=self._host, severity="information" if ok else "warning")
        if self.is_attached:
            self.action_look()

    @property
    def _console_app(self) -> ConsoleApp:
        from specconsole.ui.app import ConsoleApp

        assert isinstance(self.app, ConsoleApp)
        return self.app

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.dismiss(None)
