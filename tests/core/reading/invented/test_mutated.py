"""Damaged lines of every kind: no dialect, no rule and no reading raises, and every reading is JSON."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from specconsole.core.reading import generic
from specconsole.core.reading.dialect import load_all
from specconsole.core.reading.events import Line
from specconsole.core.reading.reading import read_bytes

HERE = Path(__file__).parent
LINES = [line for path in sorted((HERE / "logs").glob("*.log")) for line in path.read_text().split("\n") if line]


def damaged(line: str, dice: random.Random) -> str:
    match dice.randrange(6):
        case 0:
            return line.replace(dice.choice("0123456789"), "9" * dice.choice([1, 30, 6000]))
        case 1:
            at = dice.randrange(len(line) + 1)
            return line[:at] + dice.choice(LINES)
        case 2:
            return line[: dice.randrange(len(line) + 1)]
        case 3:
            return line * dice.randrange(1, 30)
        case 4:
            return "".join(c for c in line if dice.random() > 0.05)
        case _:
            return line.replace(" ", dice.choice(["\t", "  ", "\u00a0", ""]))


def test_no_line_raises() -> None:
    dice = random.Random(11)
    dialects = load_all()
    for _ in range(1500):
        line = Line(damaged(dice.choice(LINES), dice), 1)
        generic.parse(line)
        for dialect in dialects:
            assert dialect.evidence(line) in (0, 1, 2, 3)
            dialect.parse(line)


@pytest.mark.parametrize("seed", range(12))
def test_no_log_of_damaged_lines_raises(seed: int) -> None:
    dice = random.Random(seed)
    text = "\n".join(damaged(dice.choice(LINES), dice) for _ in range(60)).encode()
    for dead in (False, True):
        got = read_bytes(text, dead=dead)
        json.dumps(got.to_json(), allow_nan=False)
        assert got.phase == "failed" or got.failure is None
