"""What the economics say, in a few words, the same on every screen and in every export."""

from __future__ import annotations

from collections.abc import Sequence

from specconsole.core.measuring.compare import Cell, Row
from specconsole.core.measuring.economics import Crossing
from specconsole.core.measuring.marks import MARKS


def crossing_text(crossings: Sequence[Crossing]) -> str:
    """`C<2.3 (1.9-2.8)`, `C<2 or C>9`, `C>4?` where noise hides where it is; "" when the speed-up never passes 1."""
    parts = []
    for one in crossings:
        sign = "<" if one.helps_below else ">"
        text = f"C{sign}{one.concurrency:.3g}"
        if one.low is None or one.high is None:
            text += "?"
        elif one.low != one.high:
            text += f" ({one.low:.3g}-{one.high:.3g})"
        parts.append(text)
    return " or ".join(parts)


def pays_text(row: Row) -> str:
    """`always` or `never` over the loads measured, or where it stops; "" when nothing can be said."""
    if row.crossings:
        return crossing_text(row.crossings)
    told = [cell.verdict.pays for cell in row.cells if cell.verdict is not None]
    if not told:
        return ""
    if all(told):
        return "at all C measured"
    return "at no C measured" if not any(told) else ""


def left_out_text(cell: Cell, plain: Cell | None) -> str:
    """Why there is no verdict at a load: `left out (baseline: q)` by the marks' signs; "" when nothing keeps it out."""
    for whose, one in (("", cell), ("baseline: ", plain)):
        signs = [MARKS[m].sign for m in (one.marks if one is not None else ()) if m in MARKS and MARKS[m].excluded]
        if signs:
            return f"left out ({whose}{''.join(signs)})"
    return "" if cell.value is not None and plain is not None and plain.value is not None else "not measured"


def verdict_lines(cell: Cell) -> list[str]:
    """The economics of one cell, a line each; empty without a verdict."""
    verdict = cell.verdict
    if verdict is None:
        return []
    lines = [
        f"a target step takes {verdict.step_time_s * 1e3:.2f} ms and brings {verdict.accept_length:.2f} tokens; "
        f"the baseline takes {verdict.baseline_tpot_s * 1e3:.2f} ms a token",
        f"it breaks even at {verdict.break_even_length:.2f} tokens a step"
        + (f"; the ceiling of {verdict.ceiling - 1} draft steps is {verdict.ceiling}" if verdict.ceiling else ""),
    ]
    if verdict.can_pay is False:
        lines.append("no draft can pay here: break-even lies above the ceiling")
    elif verdict.best_decode_speed_up is not None:
        lines.append(f"a draft that is always right would decode {verdict.best_decode_speed_up:.2f}x as fast")
    speed = f"decode {verdict.decode_speed_up:.2f}x"
    if cell.end_to_end_speed_up is not None:
        speed += f", end to end {cell.end_to_end_speed_up:.2f}x"
    lines.append(f"{speed} the baseline's speed")
    return lines
