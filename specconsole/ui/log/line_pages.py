"""Lines of a source in pages, so that a repaint reads at most what is new on the screen."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from specconsole.ui.formatters import safe

if TYPE_CHECKING:
    from specconsole.services.commands import LineSource

PAGE_LINES = 256
KEPT_PAGES = 64


class LinePages:
    """Sanitised text by line number. `grown` must be called when the source's size changed."""

    def __init__(self, source: LineSource) -> None:
        self.source = source
        self.generation = source.generation
        self._pages: OrderedDict[int, list[str]] = OrderedDict()
        self.rules: tuple[tuple[int, str], ...] = ()
        """(line that it stands before, text) of what happened between two lines: bytes lost, a file replaced."""
        self._take_rules()

    def _take_rules(self) -> None:
        marked = getattr(self.source, "mark_lines", None)
        self.rules = tuple((line, safe(text)) for line, text in marked()) if marked is not None else ()

    def text(self, line: int) -> str:
        """One line; "" beyond the end."""
        page, place = divmod(line, PAGE_LINES)
        lines = self._pages.get(page)
        if lines is None:
            first = page * PAGE_LINES
            # The spool has sanitised already; a second look costs nothing and holds for every source.
            lines = [safe(text) for text in self.source.lines(first, first + PAGE_LINES)]
            self._pages[page] = lines
            while len(self._pages) > KEPT_PAGES:
                self._pages.popitem(last=False)
        return lines[place] if place < len(lines) else ""

    def grown(self) -> bool:
        """Forgets what may have changed; True when everything did (another generation)."""
        self._take_rules()
        if self.source.generation != self.generation:
            self.generation = self.source.generation
            self._pages.clear()
            return True
        if self._pages:
            last = max(self._pages)
            self._pages.pop(last)
            for page in [page for page, lines in self._pages.items() if len(lines) < PAGE_LINES]:
                del self._pages[page]
        return False
