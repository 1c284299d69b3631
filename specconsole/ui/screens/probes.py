"""The numbers that a launch's profile has read from its log, plotted, over the window; they grow while one looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from specconsole.ui.formatters import fit, row, spread, styled
from specconsole.ui.widgets.gpu_graphs import plot
from specconsole.ui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from specconsole.core.views.launch import LaunchView, ProbeView

_REPAINT_S = 0.5
_MOST_ROWS = 6


def probe_lines(probes: Sequence[ProbeView], width: int, height: int) -> list[Content]:
    """A title and a plot for each, from nothing (or the least, where it is below) to the most."""
    rows = max(1, min(_MOST_ROWS, height // max(1, len(probes)) - 2))
    lines: list[Content] = []
    for probe in probes:
        if probe.last is None or probe.mean is None:
            nothing = f"{probe.unreadable} lines without a number" if probe.unreadable else "nothing was read yet"
            lines.append(spread(row((probe.name, "bold")), styled(nothing, "$muted"), width))
            continue
        numbers = row((f"{probe.last:g}", "bold"), (f"  mean {probe.mean:g} of {probe.count}", "$muted"))
        lines.append(spread(row((probe.name, "bold $primary")), numbers, width))
        low, high = min(0.0, *probe.shown), max(probe.shown)
        scale = max(len(f"{low:g}"), len(f"{high:g}")) + 1
        graph = plot(probe.shown, max(8, width - scale), rows, low=low, high=high if high > low else low + 1.0)
        for number, line in enumerate(graph):
            mark = f"{high:g}" if number == 0 else f"{low:g}" if number == len(graph) - 1 else ""
            lines.append(fit(row((f"{mark:>{scale - 1}} ", "$muted"), (line, "$primary")), width))
        lines.append(Content(""))
    return lines


class _Plots(TextPane):
    def __init__(self, look: Callable[[], LaunchView | None]) -> None:
        super().__init__(id="probe-plots")
        self._look = look
        self.top = 0

    def build(self, width: int, height: int) -> Sequence[Content]:
        view = self._look()
        if view is None:
            return [styled("this launch is not there any more", "$muted")]
        lines = probe_lines(view.probes, width, height)
        self.top = max(0, min(self.top, len(lines) - height))
        return lines[self.top :]


class ProbesScreen(ModalScreen[None]):
    """`look` gives the launch's newest view."""

    DEFAULT_CSS = """
    ProbesScreen { align: center middle; background: $background 60%; }
    ProbesScreen #probes-box { width: 96%; max-width: 120; height: 90%; border: round $primary; background: $surface;
        border-title-color: $primary; border-title-style: bold; padding: 0 1; }
    ProbesScreen #probe-plots { height: 1fr; }
    ProbesScreen #probes-keys { height: 1; width: 1fr; color: $muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,a", "leave", show=False),
        Binding("j,down,pagedown,space", "scroll_lines(4)", show=False),
        Binding("k,up,pageup", "scroll_lines(-4)", show=False),
    ]

    def __init__(self, name: str, look: Callable[[], LaunchView | None]) -> None:
        super().__init__()
        self._launch_name = name
        self._plots = _Plots(look)

    def compose(self) -> ComposeResult:
        box = Vertical(id="probes-box")
        box.border_title = styled(f"{self._launch_name} · probes")
        with box:
            yield self._plots
            yield Static(
                row(("↑ ↓", "bold $primary"), " scroll   ", ("esc", "bold $primary"), " leave"), id="probes-keys"
            )

    def on_mount(self) -> None:
        self.set_interval(_REPAINT_S, self._plots.update)

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_scroll_lines(self, lines: int) -> None:
        self._plots.top = max(0, self._plots.top + lines)
        self._plots.update()

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.dismiss(None)
