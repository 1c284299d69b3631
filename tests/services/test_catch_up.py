"""Attaching to a log that is already large: its end in a moment, the whole behind it, and the two agree with the file.

40 MB by default; the 2 GB of the claim under `-m faults`.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from specconsole.adapters.ssh import SshLink
from specconsole.adapters.system_clock import SystemClock
from specconsole.core.reading.model import Reading
from specconsole.core.reading.reading import Reader
from specconsole.services.log_intake import LogIntake
from tests.support.sshd_lab import SshdLab

START = Path(__file__).parent / "data" / "sglang-start.log"
DECODE = (
    b"[2026-11-29 15:02:%02d TP0] Decode batch, #running-req: %d, #token: 187, token usage: 0.02, accept len: 3.21, "
    b"accept rate: 0.55, cuda graph: True, gen throughput (token/s): 37.94, #queue-req: 0\n"
)


def write_log(path: Path, size_bytes: int) -> None:
    """A real start, then the same megabyte of decode lines again and again, then a last one that differs."""
    block = b"".join(DECODE % (n % 60, n % 9) for n in range(5200))
    with path.open("wb") as file:
        # Up to the order to end: what follows is a server that serves.
        file.write(START.read_bytes().partition(b"[2026-11-29 14:39:57] SIGTERM")[0])
        while file.tell() < size_bytes:
            file.write(block)
        file.write(DECODE % (59, 77))


def straight(path: Path) -> Reading:
    reader = Reader()
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            reader.feed(data)
    return reader.reading()


async def catch_up(link: SshLink, path: Path, spool: Path) -> tuple[float, float, Reading, Reading]:
    """(seconds to the first reading of the tail, seconds to the whole, both readings)."""
    intake = LogIntake(link, str(path), spool, SystemClock())
    began = time.monotonic()
    await intake.open()
    try:
        await intake.advance()
        first, first_s = intake.shown.reading(), time.monotonic() - began
        while intake.reader.offset < path.stat().st_size:
            await intake.advance()
        await intake.drain()
        whole_s = time.monotonic() - began
        assert intake.shown is intake.reader
        return first_s, whole_s, first, intake.reader.reading()
    finally:
        await intake.close()


@pytest.mark.parametrize("size_mb", [40, pytest.param(2048, marks=[pytest.mark.faults, pytest.mark.timeout(900)])])
async def test_the_end_at_once_and_the_whole_behind_it(
    size_mb: int, ssh_link: SshLink, sshd: SshdLab, tmp_path: Path
) -> None:
    path = sshd.homes[sshd.accounts[0]] / f"large-{size_mb}.log"
    await asyncio.to_thread(write_log, path, size_mb << 20)
    try:
        first_s, whole_s, first, whole = await catch_up(ssh_link, path, tmp_path / "spool")
        print(f"{size_mb} MB: tail after {first_s:.2f} s, whole after {whole_s:.1f} s")  # noqa: T201  # with -s
        assert first_s < 2.0
        assert (first.basis, whole.basis) == ("tail", "whole")
        assert first.metrics == whole.metrics
        assert first.engine == whole.engine == "sglang"
        assert first.metrics.running == 77
        assert whole == await asyncio.to_thread(straight, path)
    finally:
        path.unlink()


async def test_a_small_log_needs_no_glimpse(ssh_link: SshLink, sshd: SshdLab, tmp_path: Path) -> None:
    path = sshd.homes[sshd.accounts[0]] / "small.log"
    await asyncio.to_thread(write_log, path, 1 << 20)
    _, _, first, whole = await catch_up(ssh_link, path, tmp_path / "spool")
    assert (first.basis, whole.basis) == ("whole", "whole")
    path.unlink()
