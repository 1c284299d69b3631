"""The base of every pane that is a few lines of text: it keeps what it draws and repaints only the lines that changed.

Drawn through the line API: a pane of 71 GPU lines of which ten change costs half the CPU and a third of the loop lag
of one `Content` for the whole pane (`benchmarks/gpus.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.geometry import Region
from textual.strip import Strip
from textual.visual import Visual

from specconsole.ui.formatters import fit, styled
from specconsole.ui.widgets.titled import Titled


class TextPane(Titled):
    """Subclasses say their lines in `build`; `update` is called when the facts may have changed."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "TextPane { text-wrap: nowrap; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[Content] = []

    def build(self, width: int, height: int) -> Sequence[Content]:
        """The lines for that many cells; more than `height` are cut."""
        raise NotImplementedError

    def update(self) -> None:
        """Builds anew and repaints what differs."""
        width = self.size.width
        if not width:
            return
        lines = self._built(width)
        before, self._lines = self._lines, lines
        if len(lines) != len(before):
            self.refresh()
            return
        pairs = enumerate(zip(lines, before, strict=True))
        changed = [y for y, (new, old) in pairs if new is not old and not new.is_same(old)]
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed if y < self.size.height))

    def _built(self, width: int) -> list[Content]:
        try:
            return list(self.build(width, self.size.height))
        except Exception as error:  # noqa: BLE001  # a fault in one pane is said in it, and ends no window
            report = getattr(self.app, "fault", None)
            if report is not None:
                report(f"the pane {self.id}", error)
            return [fit(styled(f"{type(error).__name__}: {error}", "$error"), width)]

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y < len(self._lines):
            strips = Visual.to_strips(self, self._lines[y], width, 1, self.visual_style)
            if strips:
                return strips[0]
        return Strip.blank(width, self.rich_style)

    def on_resize(self) -> None:
        self._lines = []
        self.update()
