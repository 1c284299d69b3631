"""What the tests on real engines measured, as tables: on the terminal, and in docs/real-engines.md when all passed.

A plugin of its own (`-p tests.engines.tables`): with several workers the process that sums up reads no test.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest

from tests.engines.engines import REPOSITORY

DOCUMENT = REPOSITORY / "docs/real-engines.md"
BEGIN, END = "<!-- table: written by `make real` -->", "<!-- end of table -->"
BENCH_BEGIN, BENCH_END = "<!-- bench table: written by `make real` -->", "<!-- end of bench table -->"
BEGAN_S = time.monotonic()


@dataclass
class Row:
    """One line of the table; None is "not measured"."""

    engine: str
    speculation: str
    answered_s: float | None = None
    eta_error: str = ""
    accept_ours: float | None = None
    accept_counters: float | None = None
    stops: dict[str, float] = field(default_factory=dict)
    left_over: int = 0

    def cells(self) -> list[str]:
        stops = ", ".join(f"{state} {seconds:.1f} s" for state, seconds in self.stops.items())
        return [
            self.engine,
            self.speculation,
            "" if self.answered_s is None else f"{self.answered_s:.1f} s",
            self.eta_error,
            "" if self.accept_ours is None else f"{self.accept_ours:.2f}",
            "" if self.accept_counters is None else f"{self.accept_counters:.2f}",
            stops,
            "nothing" if not self.left_over else str(self.left_over),
        ]


HEAD = ["engine", "speculation", "time to answer", "ETA error", "accept length, ours", "by its counters", "stop took",
        "left over"]  # fmt: skip
"""Filled by the tests through `table_row`."""
ROWS: dict[tuple[str, str], Row] = {}


def table_row(engine: str, speculation: str) -> Row:
    return ROWS.setdefault((engine, speculation), Row(engine, speculation))


BENCH_HEAD = ["engine", "speculation", "accept length by `bench`", "by its counters", "as the engine says it"]
BENCHES: dict[tuple[str, str], list[str]] = {}
TABLES = {"start": (BEGIN, END, HEAD), "bench": (BENCH_BEGIN, BENCH_END, BENCH_HEAD)}


def bench_row(engine: str, speculation: str, ours: float, counted: float, engine_figure: float) -> None:
    cells = [f"{value:.3f}" for value in (ours, counted, engine_figure)]
    BENCHES[engine, speculation] = [engine, speculation, *cells]


def measured_rows() -> list[tuple[str, object]]:
    """Properties of a test, as which a worker's rows reach the process that writes the tables."""
    return [
        *(("start", row.cells()) for row in ROWS.values()),
        *(("bench", cells) for cells in BENCHES.values()),
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    found: dict[str, dict[tuple[str, ...], list[str]]] = {name: {} for name in TABLES}
    for reports in terminalreporter.stats.values():
        for name, cells in (pair for report in reports for pair in getattr(report, "user_properties", ())):
            if name in found:
                found[name][tuple(cells[:2])] = cells
    if not any(found.values()):
        return
    terminalreporter.section("real engines")
    terminalreporter.write_line(f"{time.monotonic() - BEGAN_S:.0f} s in all")
    for name, rows in found.items():
        begin, end, head = TABLES[name]
        lines = ["| " + " | ".join(cells) + " |" for cells in (head, *rows.values())]
        lines.insert(1, "|" + " --- |" * len(head))
        for line in lines if rows else ():
            terminalreporter.write_line(line)
        if rows and DOCUMENT.exists() and terminalreporter.stats.get("failed") is None:
            write_table(begin, end, lines)


def write_table(begin: str, end: str, lines: list[str]) -> None:
    """Rows that were measured now replace theirs in the document; others stay."""
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(begin)
    old, _, after = rest.partition(end)
    kept = {tuple(line.split(" | ")[:2]): line for line in old.strip().splitlines()[2:]}
    kept |= {tuple(line.split(" | ")[:2]): line for line in lines[2:]}
    table = "\n".join([*lines[:2], *kept.values()])
    DOCUMENT.write_text(f"{before}{begin}\n\n{table}\n\n{end}{after}")
