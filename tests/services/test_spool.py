"""The spool against the plainest witness: the bytes themselves, split by Python."""

from __future__ import annotations

import random
import stat
from pathlib import Path

import pytest

from specconsole.core.reading.text import clean
from specconsole.errors import SpecconsoleError
from specconsole.services.line_index import BLOCK_BYTES
from specconsole.services.spool import Spool


def expected_lines(data: bytes) -> list[str]:
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [clean(line.rstrip(b"\r").split(b"\r")[-1]) for line in lines]


def random_log(seed: int, size: int) -> bytes:
    rng = random.Random(seed)
    parts = []
    total = 0
    while total < size:
        kind = rng.random()
        if kind < 0.05:
            line = b"\r".join(b"Loading: %d%%" % n for n in range(rng.randrange(9))) + b"\n"
        elif kind < 0.06:
            line = bytes(rng.randrange(256) for _ in range(rng.randrange(3000))).replace(b"\n", b"") + b"\n"
        elif kind < 0.07:
            line = b"x" * rng.randrange(2 * BLOCK_BYTES) + b"\n"
        else:
            line = b"[2026-11-29 14:00:00 TP%d] line %d" % (rng.randrange(8), len(parts)) + b"\n" * rng.randrange(1, 3)
        parts.append(line)
        total += len(line)
    return b"".join(parts)[:size]


@pytest.mark.parametrize("seed", range(3))
def test_every_range_of_lines_is_what_a_split_of_the_bytes_gives(tmp_path: Path, seed: int) -> None:
    data = random_log(seed, 700_000)
    rng = random.Random(seed)
    spool = Spool(tmp_path / "spool")
    at = 0
    while at < len(data):
        step = rng.choice((1, 7, 4096, BLOCK_BYTES, 100_001))
        spool.append(data[at : at + step])
        at += step
    want = expected_lines(data)
    assert spool.line_count == len(want)
    assert spool.size_bytes == len(data) == spool.path.stat().st_size
    shown = [line[: 16 * 1024] for line in want]
    for _ in range(60):
        start = rng.randrange(len(want))
        stop = start + rng.randrange(40)
        got = spool.lines(start, stop)
        assert [g[:16000] for g in got] == [s[:16000] for s in shown[start:stop]]
    assert spool.lines(len(want), len(want) + 5) == []
    blocks = list(spool.blocks(0))
    assert b"".join(block for _, block in blocks) == data
    number, block = blocks[-1]
    assert number + block.count(b"\n") == data.count(b"\n")
    again = Spool(tmp_path / "spool")
    assert (again.line_count, again.size_bytes) == (spool.line_count, spool.size_bytes)
    assert again.lines(3, 9) == spool.lines(3, 9)
    again.close()
    spool.close()


def test_it_is_private_and_a_cut_takes_it_back(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    assert stat.S_IMODE(spool.path.stat().st_mode) == 0o600
    spool.append(b"one\ntwo\nthr")
    assert spool.lines(0, 9) == ["one", "two", "thr"]
    spool.truncate(6)
    assert spool.lines(0, 9) == ["one", "tw"]
    assert spool.generation == 1
    spool.append(b"o\n")
    assert spool.lines(1, 2) == ["two"]
    spool.close()


def test_marks_survive_and_a_torn_one_is_skipped(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.append(b"one\n")
    spool.mark("truncated", None, "the file was cut")
    with (tmp_path / "spool" / "marks.jsonl").open("ab") as file:
        file.write(b'{"offset": 4, "ki')
    spool.close()
    again = Spool(tmp_path / "spool")
    assert [(m.offset, m.kind, m.lost_bytes) for m in again.marks] == [(4, "truncated", None)]
    again.close()


def test_the_quota_gives_the_oldest_part_back_to_the_disk(tmp_path: Path) -> None:
    line = b"%07d " + b"y" * 1000 + b"\n"
    spool = Spool(tmp_path / "spool", quota_bytes=1_000_000)
    total = 4000
    for n in range(total):
        spool.append(line % n)
    assert spool.line_count == total
    assert spool.generation > 0
    on_disk = spool.path.stat().st_blocks * 512
    assert on_disk < 1_600_000, "holes were not given back"
    assert spool.lines(total - 1, total)[0].startswith("0003999 ")
    assert spool.lines(0, 2) == ["", ""]
    again = Spool(tmp_path / "spool", quota_bytes=1_000_000)
    assert again.line_count == total
    for n in (total - 600, total - 1):
        assert again.lines(n, n + 1) == spool.lines(n, n + 1)
        assert again.lines(n, n + 1)[0].startswith(f"{n:07d} ")
    again.close()
    spool.close()


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SpecconsoleError, match="can't keep the log here"):
        Spool(tmp_path / "file" / "spool")


def test_a_closed_spool_can_still_be_read_and_a_removed_one_is_empty(tmp_path: Path) -> None:
    """A launch that ended under a window: its pane goes on showing the log."""
    data = random_log(11, 3 * BLOCK_BYTES)
    spool = Spool(tmp_path)
    spool.append(data)
    spool.close()
    assert spool.lines(0, spool.line_count) == [line[: 16 * 1024] for line in expected_lines(data)]
    assert spool.raw(5, 4000) == data[5:4000]
    assert b"".join(block for _, block in spool.blocks(0)) == data
    spool.path.unlink()
    assert spool.lines(0, 50) == []
    assert spool.raw(0, 10) == b""
    assert list(spool.blocks(0)) == []
