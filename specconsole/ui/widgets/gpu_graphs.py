"""Histories as braille on a fixed scale: two columns and four levels a cell. A gap stays blank, zero keeps a dot."""

from __future__ import annotations

from collections.abc import Sequence

# Unicode braille: bits of the left and the right column of a cell, bottom dot first.
_LEFT = (0x40, 0x04, 0x02, 0x01)
_RIGHT = (0x80, 0x20, 0x10, 0x08)
_BRAILLE = 0x2800

History = Sequence[float | None]


def resample(values: History, columns: int) -> list[float | None]:
    """Means over `columns` equal stretches; None where a stretch has no value. Fewer values are repeated."""
    count = len(values)
    if not count or columns <= 0:
        return [None] * max(0, columns)
    found: list[float | None] = []
    for column in range(columns):
        first = column * count // columns
        last = max(first + 1, (column + 1) * count // columns)
        known = [value for value in values[first:last] if value is not None]
        found.append(sum(known) / len(known) if known else None)
    return found


def plot(values: History, width: int, height: int, *, low: float = 0.0, high: float = 100.0) -> list[str]:
    """A filled graph, `height` lines of `width` cells, the scale's top first."""
    dots = 4 * height
    levels = []
    for value in resample(values, 2 * width):
        if value is None or high <= low:
            levels.append(0)
        else:
            ratio = min(1.0, max(0.0, (value - low) / (high - low)))
            levels.append(max(1, round(ratio * dots)))
    lines = []
    for line in range(height):
        floor = dots - 4 * (line + 1)
        cells = []
        for cell in range(width):
            left, right = levels[2 * cell] - floor, levels[2 * cell + 1] - floor
            bits = sum(_LEFT[: max(0, min(4, left))]) + sum(_RIGHT[: max(0, min(4, right))])
            cells.append(chr(_BRAILLE + bits) if bits else " ")
        lines.append("".join(cells))
    return lines


def spark(values: History, width: int, *, low: float = 0.0, high: float = 100.0) -> str:
    """One line of `plot`."""
    return plot(values, width, 1, low=low, high=high)[0]
