"""The hosts: in full while all fit, else one line each and the selected one in full."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.content import Content

from specconsole.ui.formatters import fit, row, styled
from specconsole.ui.messages import HostPicked
from specconsole.ui.text import host_text
from specconsole.ui.widgets.gpu_lines import HELP as GPU_HELP
from specconsole.ui.widgets.gpu_lines import GpuLevels, LineCache
from specconsole.ui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from specconsole.core.views.host import HostView
    from specconsole.ui.desk import Desk

MOST_GPU_ROWS = 16
"""GPU rows of one host that the pane makes room for."""


class HostsPane(TextPane, can_focus=True):
    """Every host with its GPUs, processor and memory."""

    HELP = (
        "Hosts. A mark in yellow waits for you: T looks at an unknown key. Old figures stand with their age. "
        "Where not all fit, every host but the selected one is one line. " + GPU_HELP
    )
    BORDER_TITLE: ClassVar[str] = "hosts"

    def __init__(self, desk: Desk) -> None:
        super().__init__(id="hosts")
        self.desk = desk
        self._host_at: list[str] = []
        self._first = 0
        self._drawn, self._bare, self._wanted = LineCache(), LineCache(), LineCache()

    def build(self, width: int, height: int) -> Sequence[Content]:
        hosts = self.desk.hosts()
        if not hosts:
            if waits := self.desk.waits_for():
                return [fit(styled(f"◌ {waits}", "$muted"), width)]
            return [fit(styled("no host yet", "$muted"), width), fit(row(("H", "bold $primary"), " adds one"), width)]
        levels = GpuLevels.of_theme(self.app.theme_variables)
        gpu_hosts = sum(1 for view in hosts if view.gpus)
        bare = self._rows(self._bare, 0, width)
        gpu_rows = max(1, (height - bare) // gpu_hosts) if gpu_hosts else 0
        short = len(hosts) > 1 and bare + gpu_hosts > height
        lines: list[Content] = []
        self._host_at = []
        selected_rows = range(0)
        for host in hosts:
            selected = host.name == self.desk.host_name and len(hosts) > 1
            rows = min(MOST_GPU_ROWS, max(1, height * 2 // 3)) if short else gpu_rows
            build = partial(self._block, host, width, selected, rows, levels, one_line=short and not selected)
            clock = int(self.desk.monotonic_s()) if host_text.shows_time(host) else 0
            block = self._drawn.lines(host, (width, selected, self.has_focus, rows, short, levels, clock), build)
            if selected:
                selected_rows = range(len(lines), len(lines) + len(block))
            lines += block
            self._host_at += [host.name] * len(block)
        self._keep_in_sight(selected_rows, len(lines), height)
        return lines[self._first :]

    def _block(
        self, host: HostView, width: int, selected: bool, gpu_rows: int, levels: GpuLevels, *, one_line: bool
    ) -> list[Content]:
        now_s = self.desk.monotonic_s()
        if one_line:
            return [host_text.host_line(host, width, now_s, levels=levels)]
        return host_text.host_lines(
            host, width, now_s, selected=selected, focused=self.has_focus, gpu_rows=gpu_rows, levels=levels
        )

    def _keep_in_sight(self, wanted: range, count: int, height: int) -> None:
        """Moves no more than needed to have the selected host's rows in sight."""
        first = max(self._first, wanted.stop - height)
        self._first = max(0, min(first, wanted.start if wanted else first, count - height))

    def _rows(self, cache: LineCache, gpu_rows: int, width: int) -> int:
        """How many rows all hosts take with that many GPU rows each."""
        now_s = self.desk.monotonic_s()

        def build(host: HostView) -> list[Content]:
            return host_text.host_lines(host, width, now_s, selected=False, focused=False, gpu_rows=gpu_rows)

        return sum(len(cache.lines(host, (width, gpu_rows), partial(build, host))) for host in self.desk.hosts())

    def wanted_height(self) -> int:
        """Rows that would show everything, border included."""
        return 2 + max(2, self._rows(self._wanted, MOST_GPU_ROWS, 40))

    def on_click(self, event: events.Click) -> None:
        row_number = event.y - (1 if self.styles.border_top[0] else 0) + self._first
        if 0 <= row_number < len(self._host_at):
            self.post_message(HostPicked(self._host_at[row_number]))
