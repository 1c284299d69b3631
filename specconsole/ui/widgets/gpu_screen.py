"""One GPU in full, over the window; the keys step through the host's GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from specconsole.core.views.host import HostView
from specconsole.ui.formatters import row, styled
from specconsole.ui.widgets.gpu_detail import gpu_detail
from specconsole.ui.widgets.gpu_lines import GpuLevels
from specconsole.ui.widgets.text_pane import TextPane

_REPAINT_S = 0.5


class _Detail(TextPane):
    def __init__(self, look: Callable[[], HostView | None], index: int) -> None:
        super().__init__(id="gpu-detail")
        self._look = look
        self.index = index
        self.top = 0
        self._count = 0

    def build(self, width: int, height: int) -> Sequence[Content]:
        host = self._look()
        if host is None:
            return [styled("this host is not watched any more", "$muted")]
        levels = GpuLevels.of_theme(self.app.theme_variables)
        lines = gpu_detail(host, self.index, width, height, levels=levels)
        self._count = len(lines)
        self.top = max(0, min(self.top, self._count - height))
        return lines[self.top :]


class GpuScreen(ModalScreen[None]):
    """`look` gives the host's newest view; `index` is the GPU to begin with; `holders` shows who holds one."""

    DEFAULT_CSS = """
    GpuScreen { align: center middle; background: $background 60%; }
    GpuScreen #gpu-box { width: 96%; max-width: 130; height: 94%; border: round $primary; background: $surface;
        border-title-color: $primary; border-title-style: bold; }
    GpuScreen #gpu-detail { height: 1fr; }
    GpuScreen #gpu-keys { height: 1; width: 1fr; color: $muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "leave", show=False),
        Binding("j,down,right,l", "step(1)", show=False),
        Binding("k,up,left,h", "step(-1)", show=False),
        Binding("pagedown,space", "scroll_lines(8)", show=False),
        Binding("w", "holders", show=False),
        Binding("pageup,b", "scroll_lines(-8)", show=False),
    ]

    def __init__(
        self, look: Callable[[], HostView | None], index: int = 0, *, holders: Callable[[int], None] | None = None
    ) -> None:
        super().__init__()
        self._look = look
        self._holders = holders
        self._detail = _Detail(look, index)

    def compose(self) -> ComposeResult:
        box = Vertical(id="gpu-box")
        with box:
            yield self._detail
            keys = row(("j k", "bold $primary"), " other GPU   ", ("pgdn", "bold $primary"), " down   ",
                       *((("w", "bold $primary"), " who holds it   ") if self._holders is not None else ()),
                       ("esc", "bold $primary"), " leave")  # fmt: skip
            yield Static(keys, id="gpu-keys")

    def on_mount(self) -> None:
        self._retitle()
        self.set_interval(_REPAINT_S, self._detail.update)

    def _retitle(self) -> None:
        host = self._look()
        name = host.name if host is not None else "?"
        self.query_one("#gpu-box").border_title = styled(f"{name} · GPU {self._detail.index}")

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_holders(self) -> None:
        if self._holders is not None:
            self._holders(self._detail.index)

    def action_step(self, step: int) -> None:
        host = self._look()
        indices = [gpu.index for gpu in host.gpus] if host is not None else []
        if indices:
            place = indices.index(self._detail.index) if self._detail.index in indices else 0
            self._detail.index = indices[(place + step) % len(indices)]
            self._detail.top = 0
            self._detail.update()
            self._retitle()

    def action_scroll_lines(self, lines: int) -> None:
        self._detail.top = max(0, self._detail.top + lines)
        self._detail.update()

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.dismiss(None)
