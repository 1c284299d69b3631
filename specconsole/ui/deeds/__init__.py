"""What each action does: one coroutine an action, in the module of its subject, found by its name.

`log-top` is `log_top` in one of the modules below. A deed runs only when `availability` has no reason against it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specconsole.ui.screens.console import ConsoleScreen

Deed = Callable[["ConsoleScreen"], Coroutine[Any, Any, None]]


@cache
def find_deed(action_id: str) -> Deed:
    """The coroutine of an action; every action has one (a test looks)."""
    name = action_id.replace("-", "_")
    for module in ("window_deeds", "log_deeds", "history_deeds", "launch_deeds", "host_deeds", "bench_deeds"):
        deed: Deed | None = getattr(import_module(f"{__name__}.{module}"), name, None)
        if deed is not None:
            return deed
    raise LookupError(action_id)
