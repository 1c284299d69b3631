"""From a file on a host to spool, reading and checkpoint; the witness is the file and one straight reading of it."""

from __future__ import annotations

import asyncio
import json
import os
import random
import stat
import threading
import time
from pathlib import Path

import pytest

from specconsole.adapters.local import LocalTransport
from specconsole.core.reading.model import Reading
from specconsole.core.reading.reading import read_bytes
from specconsole.services.log_intake import LogIntake
from specconsole.services.spool import Spool
from tests.support.fake_clock import FakeClock

LOG = Path(__file__).parent / "data" / "sglang-start.log"
SECRET = "a-secret-of-some-length"


def intake(path: Path, folder: Path, clock: FakeClock, **more: object) -> LogIntake:
    return LogIntake(LocalTransport(), str(path), folder, clock, **more)  # type: ignore[arg-type]  # test's shorthand


async def straight(data: bytes) -> Reading:
    return await asyncio.to_thread(read_bytes, data)


async def read_all(one: LogIntake) -> None:
    for _ in range(3):
        while await one.advance():
            pass


@pytest.mark.parametrize("seed", range(4))
async def test_a_console_killed_anywhere_reads_the_same_as_one_that_lived(
    tmp_path: Path, fake_clock: FakeClock, seed: int
) -> None:
    """Ten consoles, each dropped without a goodbye; the log grows all the while."""
    data = LOG.read_bytes()
    rng = random.Random(seed)
    path, folder = tmp_path / "server.log", tmp_path / "spool"
    path.touch()
    written = 0
    for _ in range(10):
        one = intake(path, folder, fake_clock)
        await one.open()
        for _ in range(rng.randrange(1, 4)):
            step = rng.randrange(1, len(data) // 20)
            with path.open("ab") as file:
                file.write(data[written : written + step])
            written += step
            await one.advance()
            if rng.random() < 0.5:
                await fake_clock.advance(1.5)
                await one.advance()
        # kill -9: the descriptors close, nothing else happens.
        assert one.spool is not None
        one.spool.close()
        one.unlock()
    with path.open("ab") as file:
        file.write(data[written:])
    last = intake(path, folder, fake_clock)
    await last.open()
    await read_all(last)
    await last.drain()
    assert last.spool is not None
    assert last.spool.path.read_bytes() == data == path.read_bytes()
    assert last.spool.marks == ()
    got, want = last.reader.reading(None), await straight(data)
    assert got.to_json() == want.to_json()
    await last.close()


async def test_secrets_reach_no_file_of_ours(tmp_path: Path, fake_clock: FakeClock) -> None:
    path, folder = tmp_path / "server.log", tmp_path / "spool"
    text = b"begin " + SECRET.encode() + b" end\n"
    one = intake(path, folder, fake_clock, secrets=[SECRET])
    await one.open()
    for at in range(len(text)):
        path.write_bytes(text[: at + 1])
        await one.advance()
    await one.drain()
    await one.close()
    kept = [file for file in folder.rglob("*") if file.is_file()]
    assert len(kept) >= 2
    for file in kept:
        assert SECRET.encode() not in file.read_bytes()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (folder / "log").read_bytes() == b"begin " + b"*" * len(SECRET) + b" end\n"


async def test_a_lost_or_torn_checkpoint_costs_time_and_nothing_else(tmp_path: Path, fake_clock: FakeClock) -> None:
    data = LOG.read_bytes()
    path, folder = tmp_path / "server.log", tmp_path / "spool"
    path.write_bytes(data)
    for damage in ("none", "torn", "foreign", "no-reader", "no-spool"):
        one = intake(path, folder, fake_clock)
        await one.open()
        await read_all(one)
        await one.drain()
        assert one.spool is not None
        assert one.spool.path.read_bytes() == data, damage
        assert one.reader.reading(None).to_json() == (await straight(data)).to_json(), damage
        await one.close()
        checkpoint = folder / "checkpoint.json"
        shape = json.loads(checkpoint.read_text())
        match damage:
            case "none":
                checkpoint.write_text(checkpoint.read_text()[:100])
            case "torn":
                checkpoint.write_text(json.dumps({**shape, "schema": 99}))
            case "foreign":
                checkpoint.write_text(json.dumps({**shape, "reader": {"what": "is this"}}))
            case "no-reader":
                (folder / "log").write_bytes(b"")
            case _:
                pass


async def test_two_consoles_of_one_machine_keep_a_spool_each(tmp_path: Path, fake_clock: FakeClock) -> None:
    path, folder = tmp_path / "server.log", tmp_path / "spool"
    path.write_bytes(b"one\ntwo\n")
    first, second = intake(path, folder, fake_clock), intake(path, folder, fake_clock)
    await first.open()
    await second.open()
    await asyncio.gather(read_all(first), read_all(second))
    assert first.spool is not None
    assert second.spool is not None
    assert first.spool.path != second.spool.path
    assert first.spool.path.read_bytes() == second.spool.path.read_bytes() == b"one\ntwo\n"
    await first.close()
    await second.close()


async def test_a_rotation_is_marked_and_the_reading_says_tail(tmp_path: Path, fake_clock: FakeClock) -> None:
    path, folder = tmp_path / "server.log", tmp_path / "spool"
    path.write_bytes(b"before, and no end of line")
    one = intake(path, folder, fake_clock)
    await one.open()
    await read_all(one)
    path.write_bytes(b"")
    await read_all(one)
    with path.open("ab") as file:
        file.write(b"after\n")
    await read_all(one)
    assert one.spool is not None
    assert [(mark.kind, mark.lost_bytes) for mark in one.spool.marks] == [("truncated", None)]
    assert one.spool.lines(0, 9) == ["before, and no end of line", "after"]
    reading = one.reader.reading(None)
    assert (reading.basis, reading.lines) == ("tail", 2)
    await one.close()


async def test_silence_counts_from_the_last_write_and_not_from_our_coming(
    tmp_path: Path, fake_clock: FakeClock
) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"[2026-02-26 21:02:36 TP0] Load weight begin. avail mem=78.58 GB\n")
    host_now_s = fake_clock.wall_s() + 5000.0
    os.utime(path, (host_now_s - 120.0, host_now_s - 120.0))
    one = intake(path, tmp_path / "spool", fake_clock)
    one.host_offset_s = 5000.0
    await one.open()
    await read_all(one)
    reading = one.reader.reading(fake_clock.monotonic_s())
    assert reading.silent_s == pytest.approx(120.0, abs=1.0)
    with path.open("ab") as file:
        file.write(b"[2026-02-26 21:02:37 TP0] more\n")
    await read_all(one)
    assert one.reader.reading(fake_clock.monotonic_s()).silent_s == pytest.approx(0.0, abs=1.0)
    await one.close()


async def test_only_what_comes_under_our_eyes_has_a_time_of_arrival(tmp_path: Path, fake_clock: FakeClock) -> None:
    path = tmp_path / "server.log"
    bar = "Loading checkpoint shards: {:3}% Completed | {}/4\n"
    path.write_text(bar.format(25, 1) + bar.format(50, 2))
    old = intake(path, tmp_path / "old", fake_clock)
    young = intake(path, tmp_path / "young", fake_clock)
    young.launch_age_s = 0.5
    for one in (old, young):
        await one.open()
        await read_all(one)
    # Both updates stood there before the first console came: it does not know what one took.
    assert old.reader._state.pipeline.phases.progress_at_s is None
    assert young.reader._state.pipeline.phases.progress_at_s == fake_clock.monotonic_s()
    with path.open("a") as file:
        file.write(bar.format(75, 3))
    for one in (old, young):
        await read_all(one)
        assert one.reader._state.pipeline.phases.progress_at_s == fake_clock.monotonic_s()
        await one.close()


async def test_two_askers_at_once_and_one_that_is_cancelled_read_nothing_twice_and_lose_nothing(
    tmp_path: Path, fake_clock: FakeClock
) -> None:
    path = tmp_path / "server.log"
    path.touch()
    one = intake(path, tmp_path / "spool", fake_clock)
    await one.open()
    rng = random.Random(3)
    written = bytearray()
    for n in range(150):
        line = b"line %d of many\n" % n
        written += line
        with path.open("ab") as file:
            file.write(line)
        askers = [asyncio.create_task(one.advance()) for _ in range(3)]
        for _ in range(rng.randrange(4)):
            await asyncio.sleep(0)
        askers[rng.randrange(3)].cancel()
        await asyncio.gather(*askers, return_exceptions=True)
    await one.drain()
    assert one.spool is not None
    assert one.spool.path.read_bytes() == written
    assert one.reader.reading(None).bytes == len(written)
    await one.close()


async def test_closed_in_the_middle_of_a_step_the_next_console_misses_nothing(
    tmp_path: Path, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"first\n")
    one = intake(path, tmp_path / "spool", fake_clock)
    await one.open()
    await read_all(one)
    append, writing = Spool.append, threading.Event()

    def slowly(spool: Spool, data: bytes) -> None:
        writing.set()
        time.sleep(0.3)
        append(spool, data)

    monkeypatch.setattr(Spool, "append", slowly)
    with path.open("ab") as file:
        file.write(b"second\n")
    asker = asyncio.create_task(one.advance())
    await asyncio.to_thread(writing.wait, 10)
    asker.cancel()
    await asyncio.gather(asker, return_exceptions=True)
    await one.close()
    with path.open("ab") as file:
        file.write(b"third\n")
    other = intake(path, tmp_path / "spool", fake_clock)
    await other.open()
    await other.drain()
    assert other.spool is not None
    assert other.spool.path.read_bytes() == b"first\nsecond\nthird\n"
    await other.close()
