"""A pane whose border carries a title that changes while it is looked at."""

from __future__ import annotations

from typing import Self

from textual.content import Content
from textual.geometry import Region
from textual.widget import Widget


class Titled(Widget):
    """Setting a border's title repaints the whole pane (Textual 8.2.8), 4 ms for a log; here it repaints that line."""

    _entitling = False
    _title: Content | None = None

    def entitle(self, title: Content) -> None:
        """Sets the border's title if it is another one."""
        if self._title is None or not title.is_same(self._title):
            self._title = title
            self._entitling = True
            try:
                self.border_title = title
            finally:
                self._entitling = False

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        if self._entitling and not regions and self.is_mounted:
            # Regions count from the content; the title stands in the border above it.
            left, top = self.content_offset
            regions = (Region(-left, -top, self.outer_size.width, 1),)
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
