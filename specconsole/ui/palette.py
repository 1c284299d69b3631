"""The command palette: every action of the window and every launch, by any part of its name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider

from specconsole.ui.formatters import safe

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from specconsole.ui.screens.console import ConsoleScreen


class ConsolePalette(CommandPalette):
    """Textual's palette without its blank rows: on a small screen they are two commands."""

    DEFAULT_CSS = """
    ConsolePalette > Vertical { width: 100; max-width: 96%; margin-top: 2; }
    ConsolePalette SearchIcon { display: none; }
    ConsolePalette CommandInput, ConsolePalette CommandInput:focus { border: none; height: 1; padding: 0 1; }
    ConsolePalette CommandList, ConsolePalette CommandList:focus { border-top: none; max-height: 80vh; }
    ConsolePalette #--input, ConsolePalette #--input.--list-visible { border-bottom: hkey $rule; }
    """


def open_palette(screen: ConsoleScreen) -> None:
    """Over the screen that it acts on."""
    screen.app.push_screen(ConsolePalette([ActionsProvider], placeholder="what to do, or where to go"))


class ActionsProvider(Provider):
    """Offers what stands in the key table, greyed ones with their reason, and `go to` for launches and hosts."""

    def _all(self) -> Iterator[tuple[str, str, Callable[[], Awaitable[None] | None]]]:
        screen = cast("ConsoleScreen", self.screen)
        for action in screen.shown_actions():
            if action.action_id.startswith(("log-", "list-", "host-", "results-", "palette")):
                continue
            why = screen.reason(action)
            yield (
                f"{action.label}  ({action.shown_key})",
                f"can't now: {why}" if why else action.help,
                partial(screen.action_act, action.action_id),
            )
        yield "save a picture", "Save this screen as an SVG file.", partial(self._picture, screen)
        for view in screen.desk.launches():
            yield f"go to {safe(view.name)} @ {view.host}", view.state, partial(self._go, screen, view.launch_id)

    @staticmethod
    def _picture(screen: ConsoleScreen) -> None:
        screen.app.deliver_screenshot()

    @staticmethod
    def _go(screen: ConsoleScreen, launch_id: str) -> None:
        screen.desk.select(launch_id)
        screen.refresh_facts()

    async def discover(self) -> Hits:
        for label, about, run in self._all():
            yield DiscoveryHit(label, run, help=about)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for label, about, run in self._all():
            score = max(matcher.match(label), matcher.match(about) * 0.5)
            if score > 0:
                yield Hit(score, matcher.highlight(label), run, help=about)
