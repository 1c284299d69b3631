"""A/A: the same against itself shows no difference, also when runs may stop early.

`recorded_tok_s.json`: output tok/s of 40 repeats each of a real llama.cpp server, with a draft and without, at two
concurrencies, on a busy 2-core machine (their spread is 30 to 45 %).
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from specconsole.core.measuring.statistics import FIRST_LOOK, STOPPED_CONFIDENCE, narrow_enough, ratio_of

RECORDED: dict[str, list[float]] = json.loads((Path(__file__).parent / "recorded_tok_s.json").read_text())
MOST = 20


def share_without_difference(draw: Callable[[], float], target_ratio: float, pairs: int = 1000) -> tuple[float, float]:
    """(share of equal pairs that show no difference, repeats that a side took)."""
    alike = repeats = 0
    for _ in range(pairs):
        sides = []
        for _ in range(2):
            side: list[float] = []
            while len(side) < MOST and not narrow_enough(side, target_ratio, least=FIRST_LOOK):
                side.append(draw())
            sides.append(side)
            repeats += len(side)
        alike += ratio_of(*sides, confidence=STOPPED_CONFIDENCE).differs is False
    return alike / pairs, repeats / pairs / 2


@pytest.mark.parametrize("name", sorted(RECORDED))
@pytest.mark.parametrize("target_ratio", [0.3])
def test_pairs_resampled_from_recorded_runs(name: str, target_ratio: float) -> None:
    source = random.Random(f"{name} {target_ratio}")
    share, _ = share_without_difference(partial(source.choice, RECORDED[name]), target_ratio)
    assert share >= 0.94


@pytest.mark.parametrize(("spread", "target_ratio"), [(0.02, 0.03), (0.03, 0.03), (0.4, 0.5)])
def test_pairs_whose_runs_stop_early(spread: float, target_ratio: float) -> None:
    source = random.Random(5)
    share, repeats = share_without_difference(lambda: math.exp(source.gauss(0, spread)), target_ratio)
    assert share >= 0.94
    assert repeats < MOST, "early stopping is on"


def test_a_real_difference_is_still_seen() -> None:
    source = random.Random(5)
    seen = 0
    for _ in range(200):
        plain = [source.gauss(100, 2) for _ in range(6)]
        other = [source.gauss(108, 2) for _ in range(6)]
        seen += ratio_of(plain, other, confidence=STOPPED_CONFIDENCE).differs is True
    assert seen >= 190
