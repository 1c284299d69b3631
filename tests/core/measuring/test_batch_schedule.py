"""Steps by batch size from measured chains; the witness reckons each batch size by itself, from the same lines."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specconsole.core.launching.adaptive import adaptive_settings, sglang_config, vllm_ranges
from specconsole.core.launching.profile import Profile
from specconsole.core.measuring.batch_schedule import batch_schedule
from specconsole.core.measuring.result import Result
from specconsole.errors import BadInputError
from tests.core.measuring.build import point, result

LOADS = (1, 2, 4, 8, 16, 32, 64)


def chain(steps: int, base_ms: float, growth: float, *, loads: tuple[int, ...] = LOADS) -> Result:
    """TPOT = base * batch^growth: a straight line on logarithms, where interpolation is exact."""
    points = [point(c, c * 1000 / (base_ms * c**growth), accept=2.0 if steps else None) for c in loads]
    more = {"speculative": True, "num_steps": steps} if steps else {}
    return result(f"k{steps}", points, engine="sglang", **more)


# The longer the chain, the quicker alone and the slower in company: k5 to 3.36, k2 to 22.6, then none.
LINES = {0: (10.0, 0.10), 2: (6.0, 0.2637), 5: (5.0, 0.4141)}
RESULTS = [chain(steps, *line) for steps, line in LINES.items()]


def fastest(batch: int, lines: dict[int, tuple[float, float]]) -> int:
    return min(lines, key=lambda steps: (lines[steps][0] * batch ** lines[steps][1], steps))


def steps_at(ranges: list[list[int]], batch: int) -> int:
    return next((steps for first, last, steps in ranges if first <= batch <= last), ranges[-1][2])


def test_every_batch_size_gets_its_fastest_chain() -> None:
    schedule = batch_schedule(RESULTS)
    ranges = vllm_ranges(schedule)
    assert [entry[2] for entry in ranges] == [5, 2, 0]
    assert {batch: steps_at(ranges, batch) for batch in range(1, 65)} == {
        batch: fastest(batch, LINES) for batch in range(1, 65)
    }
    assert ranges[-1][1] == 64
    assert "measured up to 64" in schedule.notes[-1]


def test_what_is_near_the_fastest_is_a_candidate() -> None:
    exact = sglang_config(batch_schedule(RESULTS, slack_ratio=0.0))
    assert [entry["candidate_steps"] for entry in exact.values()] == [[5], [2], [0]]
    assert next(iter(exact)) == "1"
    loose = sglang_config(batch_schedule(RESULTS, slack_ratio=1.0))
    assert all(entry["candidate_steps"] == [0, 2, 5] for entry in loose.values())


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.sampled_from([0, 1, 2, 3, 5, 7]),
                       st.tuples(st.floats(1, 20), st.floats(0.0, 1.0)), min_size=2, max_size=4))  # fmt: skip
def test_lines_of_any_slope(lines: dict[int, tuple[float, float]]) -> None:
    """At the measured loads the fastest is always right; ranges have no gap and rise."""
    results = [chain(steps, *line) for steps, line in lines.items()]
    if all(fastest(load, lines) == 0 for load in LOADS):
        with pytest.raises(BadInputError, match="no draft pays"):
            batch_schedule(results)
        return
    schedule = batch_schedule(results)
    ranges = vllm_ranges(schedule)
    assert ranges[0][0] == 1
    assert all(before[1] + 1 == after[0] for before, after in pairwise(ranges))
    assert all(first <= last for first, last, _ in ranges)
    for load in LOADS:
        times = {steps: base * load**growth for steps, (base, growth) in lines.items()}
        # Where a switch falls on the load itself either is as good.
        assert times[steps_at(ranges, load)] <= min(times.values()) * 1.01 or _switches_at(ranges, load)


def _switches_at(ranges: list[list[int]], load: int) -> bool:
    return any(abs(first - load) <= 1 for first, _, _ in ranges[1:])


@pytest.mark.parametrize(
    ("results", "says"),
    [
        (RESULTS[:1], "nothing to cross"),
        ([RESULTS[1], RESULTS[1]], "all of them have 2 draft steps"),
        ([chain(0, 5, 0.1), chain(3, 9, 0.5)], "no draft pays"),
        ([RESULTS[0], chain(3, 9, 0.5, loads=(3, 5))], "no load was measured with two"),
        ([RESULTS[0], result("x", [point(1, 9.0)], speculative=True)], "how many steps x drafts"),
        ([RESULTS[0], result("x", [point(1, 9.0)], num_steps=3, simulated="2.5")], "SIMULATED"),
        ([RESULTS[0], result("x", [point(1, 9.0)], num_steps=3, workload_hash="other")], "other workload"),
        ([RESULTS[0], result("x", [point(1, 9.0)], num_steps=3, settings={"speculative_eagle_topk": 4})], "a tree"),
        ([RESULTS[0], result("x", [point(1, 9.0)], num_steps=3, dp_size=2)], "data parallelism"),
    ],
)
def test_what_nothing_follows_from_is_refused(results: list[Result], says: str) -> None:
    with pytest.raises(BadInputError, match=says.replace("(", r"\(")):
        batch_schedule(results)


def test_a_switch_between_loads_that_were_not_both_measured_is_said() -> None:
    # k5 was measured alone only; k2 above.
    schedule = batch_schedule([chain(0, 10, 0.1), chain(5, 5, 0.4, loads=(1, 2)), chain(2, 6, 0.2, loads=(8, 16))])
    assert [(tier.first, tier.steps) for tier in schedule.tiers] == [(1, 5), (8, 2)]
    assert any("were not both measured" in note for note in schedule.notes)
    assert math.isclose(schedule.tiers[-1].last, 16)


def test_the_settings_of_each_engine() -> None:
    schedule = batch_schedule(RESULTS)
    sglang = Profile("s", "sglang", args={"speculative-algorithm": "EAGLE3", "speculative_eagle_topk": 4})
    assert adaptive_settings(sglang, schedule, "/c.json") == {
        "speculative_adaptive": True, "speculative_adaptive_config": "/c.json", "speculative_num_steps": 5,
        "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 6,
    }  # fmt: skip
    vllm = Profile("v", "vllm", args={"speculative_config": {"method": "eagle3", "model": "/d"}})
    assert adaptive_settings(vllm, schedule, None)["speculative_config"] == {
        "method": "eagle3", "model": "/d", "num_speculative_tokens": 5,
        "num_speculative_tokens_per_batch_size": vllm_ranges(schedule),
    }  # fmt: skip
    for profile in (Profile("l", "llamacpp"), Profile("v", "vllm"), Profile("s", "sglang")):
        with pytest.raises(BadInputError):
            adaptive_settings(profile, schedule, None)
