"""The GPU pane of this machine in a Textual application of its own, for measuring what watching costs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from textual.app import App, ComposeResult
from textual.content import Content

from specconsole import wiring
from specconsole.services.board import Board
from specconsole.services.host_sampler import HostSampler
from specconsole.ui.theme_files import VARIABLE_DEFAULTS
from specconsole.ui.widgets.gpu_lines import gpu_lines, gpu_summary
from specconsole.ui.widgets.text_pane import TextPane


class _Pane(TextPane):
    def __init__(self, board: Board) -> None:
        super().__init__()
        self.board = board
        self._drawn = -1

    def build(self, width: int, height: int) -> Sequence[Content]:
        view = self.board.hosts.get("local")
        return [] if view is None else [gpu_summary(view, width), *gpu_lines(view, width, 8)]

    def look(self) -> None:
        if self.board.version != self._drawn:
            self._drawn = self.board.version
            self.update()


class GpuPaneApp(App[None]):
    """Looks at the board five times a second, as the window does."""

    def __init__(self, board: Board) -> None:
        super().__init__()
        self.pane = _Pane(board)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(VARIABLE_DEFAULTS)

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_mount(self) -> None:
        self.set_interval(0.2, self.pane.look)


async def main() -> None:
    board = Board()
    async with wiring.open_transport("local") as transport, asyncio.TaskGroup() as group:
        sampler = HostSampler(transport, board, wiring.system_clock(), wiring.hardware_tools())
        sampling = group.create_task(sampler.run())
        await GpuPaneApp(board).run_async(mouse=False)
        sampling.cancel()


if __name__ == "__main__":
    asyncio.run(main())
