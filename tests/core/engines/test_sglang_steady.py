"""Long runs of a busy SGLang, put together by chance: what is skipped, and where the bytes are cut, never shows."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from specconsole.core.engines.sglang import dialect_steady, dialect_steady_row
from specconsole.core.reading.block_lines import BlockLines
from specconsole.core.reading.prefilter import Picked, Prefilter
from specconsole.core.reading.reading import Reader
from tests.core.reading import lines_for_tests as pool

WORK = tuple(dict.fromkeys(line[22:] for line in pool.SGLANG_SERVING if line[20:22] == "] "))
LITTLE = (
    'INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 200 OK',
    'INFO:     127.0.0.1:5 - "POST /generate HTTP/1.1" 200 OK',
    "something unknown 12",
)
TELLING = (
    'INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 503 Service Unavailable',
    "KV cache pool is full. Retract requests. #retracted_reqs: 1",
    "ValueError: x",
)
RANKS = ([""], [""], [" TP0"], [" DP0 TP0"], [" DP0 TP0", " DP1 TP1"], [" TP0", " TP1"])
WRAPPERS = ("", "", "", "pod-1  | ", "Nov 29 14:13:08 host python[77]: ")


def log_of(dice: random.Random) -> bytes:
    ranks, wrapper = dice.choice(RANKS), dice.choice(WRAPPERS)
    weights = [dice.random() ** 3 for _ in WORK]
    telling = dice.choice([0.0, 0.0, 0.01, 0.05])
    lines = [*pool.SGLANG_START[: dice.choice([1, len(pool.SGLANG_START)])]]
    pauses = [0] * dice.randrange(1, 30) + [1, 1, 2, 40]
    now_s = dice.randrange(3000)
    for _ in range(dice.randrange(5, 300)):
        now_s += dice.choice(pauses)
        stamp = f"[2026-11-29 {15 + now_s // 3600 % 8:02}:{now_s // 60 % 60:02}:{now_s % 60:02}"
        chance = dice.random()
        if chance < telling:
            lines.append(f"{stamp}] {dice.choice(TELLING)}")
        elif chance < 0.3:
            lines.append(f"{stamp}] {dice.choice(LITTLE)}")
        else:
            lines.append(f"{stamp}{dice.choice(ranks)}] {dice.choices(WORK, weights)[0]}")
    return "".join(f"{wrapper}{line}\n" for line in lines).encode()[: dice.choice([None, None, -1, -40])]


def reading_of(log: bytes, cuts: list[int], prefilter: Prefilter | None = None) -> dict[str, Any]:
    reader = Reader(engine="sglang")
    if prefilter is not None:
        reader._prefilter = prefilter
    for start, end in zip([0, *cuts], [*cuts, len(log)], strict=True):
        reader.feed(log[start:end])
    return reader.reading().to_json()


@pytest.fixture(scope="module")
def looking_at_everything() -> Prefilter:
    """Reads every steady line, on the long way."""
    return Prefilter(literals(), None)


def literals() -> tuple[bytes, ...]:
    from specconsole.core.reading.dialect import load
    from specconsole.core.reading.reading import ALWAYS

    dialect = load("sglang")
    assert dialect is not None
    return (*ALWAYS, *dialect.literals)


@pytest.mark.parametrize("seed", range(12))
def test_skipping_changes_nothing(seed: int, looking_at_everything: Prefilter) -> None:
    for turn in range(6):
        dice = random.Random(1000 * seed + turn)
        log = log_of(dice)
        every = reading_of(log, [], looking_at_everything)
        assert reading_of(log, []) == every, f"seed {seed}, turn {turn}"
        cuts = sorted(dice.randrange(len(log)) for _ in range(dice.randrange(1, 6)))
        assert reading_of(log, cuts) == every, f"seed {seed}, turn {turn}, cut at {cuts}"


def test_most_lines_of_one_rank_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Picked, int]] = []
    real = dialect_steady_row.pick_row

    def spy(lines: BlockLines, kinds: bytes, name: bytes, decode: int) -> Picked:
        picked = real(lines, kinds, name, decode)
        seen.append((replace(picked), len(lines)))
        return picked

    monkeypatch.setattr(dialect_steady, "pick_row", spy)
    busy = next(text for text in WORK if "#running-req: 2" in text)
    log = "".join(f"{line}\n" for line in pool.SGLANG_START) + f"[2026-11-29 14:13:08 TP0] {busy}\n" * 500
    reading_of(log.encode(), [])
    (picked, count) = seen[-1]
    assert count > 500
    # The start's own lines, the moment at which work began, and the last windows.
    assert len(picked.indexes) <= len(pool.SGLANG_START) + 5
    assert [row.whats for row in picked.moments] == [["decodes"]]


def test_lines_are_found_from_wherever_one_is_known() -> None:
    dice = random.Random(3)
    for _ in range(200):
        block = b"\n".join(bytes(dice.choices(b"abc", k=dice.randrange(4))) for _ in range(dice.randrange(1, 150)))
        pieces = block.split(b"\n")
        lines = BlockLines(block, len(pieces))
        for _ in range(6):
            index, count, known = (dice.randrange(len(pieces)) for _ in range(3))
            assert lines[index] == pieces[index]
            assert lines.before(index, count + 1) == pieces[max(0, index - count - 1) : index]
            lines.known(known, len(b"\n".join(pieces[:known])) + (1 if known else 0))
        assert lines.before(len(pieces), 5) == pieces[-5:]
