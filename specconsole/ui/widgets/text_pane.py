"""The base of every pane that is a few lines of text: it keeps what it draws and repaints only what changed."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import RenderResult
from textual.content import Content
from textual.widget import Widget


class TextPane(Widget):
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
        """Builds anew and repaints when something differs."""
        if not self.size.width:
            return
        lines = list(self.build(self.size.width, self.size.height))
        if len(lines) == len(self._lines) and all(a.is_same(b) for a, b in zip(lines, self._lines, strict=True)):
            return
        self._lines = lines
        self.refresh()

    def render(self) -> RenderResult:
        return Content("\n").join(self._lines[: max(1, self.size.height)])

    def on_resize(self) -> None:
        self._lines = []
        self.update()
