"""A key as an argument of a real process: filled in on the host only where a person agreed. Witness: /proc."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contracts.conftest import Host
from tests.contracts.launches import Bench, bench_on
from tests.support.waiting import until

KEY = "planted $(id) 'key' \\ 0123456789"
pytestmark = pytest.mark.parametrize("host", ["local", "ssh-user"], indirect=True)


@pytest.fixture
async def bench(host: Host) -> AsyncIterator[Bench]:
    async with bench_on(host) as bench:
        yield bench


@pytest.mark.parametrize("allowed", [True, False])
async def test_the_argument_is_the_key_only_with_consent(bench: Bench, allowed: bool) -> None:
    python = sys.executable if bench.host.as_root else "/usr/bin/python3"
    argv = (
        python,
        "-S",
        "-E",
        "-c",
        "import time; print(1, flush=True); time.sleep(600)",
        "--api-key",
        "${secret:KEY}",
    )
    spec = bench.spec(*argv, secret_places={"KEY": "env:X"}, key_argument_allowed=allowed)
    record = await bench.start(spec, {"KEY": KEY})
    await until(lambda: Path(record.log_path).read_bytes() == b"1\n", what="it runs")
    assert record.process is not None
    words = Path(f"/proc/{record.process.pid}/cmdline").read_bytes().decode().split("\0")
    assert words[-3:-1] == ["--api-key", KEY if allowed else "${secret:KEY}"]
    # Beside the process nothing holds it, with consent or without.
    folder = Path(record.folder)
    assert [path.name for path in folder.iterdir() if KEY.encode() in path.read_bytes()] == []
