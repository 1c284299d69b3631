"""The command palette: every action of the window and every launch, by any part of its name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from specconsole.ui.formatters import safe

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from specconsole.ui.screens.console import ConsoleScreen


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
        for view in screen.desk.launches():
            yield f"go to {safe(view.name)} @ {view.host}", view.state, partial(self._go, screen, view.launch_id)

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
