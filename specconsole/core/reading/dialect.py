"""How an engine's lines are told and found: one module `dialect.py` in a folder of `core/engines/`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Protocol, cast

from specconsole.core import engines
from specconsole.core.reading.events import Event, Line


class Dialect(Protocol):
    """What the pipeline asks of an engine. An instance named `DIALECT` stands in the engine's `dialect.py`."""

    @property
    def engine(self) -> str:
        """The contract's name: `sglang`, `tensorrt-llm`, ..."""

    @property
    def literals(self) -> tuple[bytes, ...]:
        """Every line that `parse` may turn into an event holds one of these, case included.

        They are compared after all digits were taken out of both, so they may hold digits but never rest on
        them. A line without any is counted and not decoded.
        """

    def evidence(self, line: Line) -> int:
        """How strongly this line (one with a literal) speaks for the engine: 0 not at all, 1 a hint,
        3 only this engine prints it."""

    def parse(self, line: Line) -> Sequence[Event]:
        """What the line means; () for nothing. Stateless, and never raises, whatever the line holds."""


# Listed when this module is imported: a reader on the event loop must not wait for a disk.
_FOLDERS = tuple(sorted(module.name for module in pkgutil.iter_modules(engines.__path__) if module.ispkg))


def folder_names() -> list[str]:
    """The engines that there are, by listing the folder; nothing is imported."""
    return list(_FOLDERS)


@cache
def load(name: str) -> Dialect | None:
    """The dialect of one engine, by folder or contract name; None when there is none of that name."""
    folder = name.replace("-", "_").replace(".", "")
    try:
        module = importlib.import_module(f"{engines.__name__}.{folder}.dialect")
    except ModuleNotFoundError:
        return None
    return cast(Dialect, module.DIALECT)


def load_all(names: Iterable[str] | None = None) -> tuple[Dialect, ...]:
    """The dialects of `names` (default: every folder that has one)."""
    found = (load(name) for name in (folder_names() if names is None else names))
    return tuple(dialect for dialect in found if dialect is not None)
