"""Evidence of a hang: of a real process, compared with what /proc says of it."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from specconsole.adapters.local import LocalTransport
from specconsole.services.evidence import collect_evidence, gpu_table, last_lines
from tests.support.waiting import until
from tests.ui.fakes import BytesLines, hosts, log_bytes, stalled

VICTIM = """
import time
def all_reduce():
    print("up", flush=True)
    time.sleep(60)
def rank_main():
    all_reduce()
rank_main()
"""


async def test_a_real_process_is_described_and_what_is_missing_is_said(tmp_path: Path) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", VICTIM, "--api-key", "sesame-open-1", "our-own-secret",
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": "eth0", "HF_TOKEN": "hf_secret"},
    )  # fmt: skip
    transport = LocalTransport()
    said: list[str] = []
    try:
        assert child.stdout is not None
        await child.stdout.readline()
        await until(lambda: Path(f"/proc/{child.pid}/environ").exists())
        folder = await collect_evidence(
            transport,
            [child.pid],
            stalled(),
            hosts()[0],
            BytesLines(log_bytes()),
            tmp_path / "e",
            said.append,
            secrets=["our-own-secret"],
        )
    finally:
        child.kill()
        await child.wait()
        await transport.aclose()

    def read() -> dict[str, str]:
        return {path.name: path.read_text() for path in folder.iterdir()}

    files = await asyncio.to_thread(read)
    assert files[f"environment-{child.pid}.txt"].split() == ["NCCL_DEBUG=INFO", "NCCL_SOCKET_IFNAME=eth0"]
    assert "time.sleep(60)" in files[f"process-{child.pid}.txt"]
    assert "State:\tS (sleeping)" in files[f"process-{child.pid}.txt"]
    assert "hang-nccl @ gpu-a: stalled" in files["summary.txt"]
    if (Path(sys.executable).parent / "py-spy").exists():  # beside the victim's interpreter, where servers have it
        stacks = files[f"stacks-{child.pid}.txt"]
        assert re.search(r"all_reduce .*\n +rank_main .*\n +<module>", stacks), stacks
    else:
        assert f"stacks of {child.pid}: py-spy is not on this host" in files["summary.txt"]
    for secret in ("hf_secret", "sesame-open-1", "our-own-secret"):
        assert not [name for name, text in files.items() if secret in text]
    assert f"--api-key {'*' * 13}" in files[f"process-{child.pid}.txt"]
    assert "TP3" in files["last-lines.txt"]
    assert said[-1] == f"process {child.pid} (1 of 1)"


def test_last_lines_keep_each_ranks_own_with_their_numbers() -> None:
    data = b"".join(b"[2026-11-29 14:02:%02d TP%d] step %d\n" % (n % 60, n % 3, n) for n in range(300))
    text = last_lines(BytesLines(data))
    parts = text.split("\n\n")
    assert [part.splitlines()[0] for part in parts] == ["== TP0", "== TP1", "== TP2"]
    assert len(parts[0].splitlines()) == 41
    assert parts[0].splitlines()[-1] == "298: [2026-11-29 14:02:57 TP0] step 297"


def test_gpu_samples_without_history_are_an_empty_table() -> None:
    assert gpu_table(hosts()[0]).count("\n") == 1


@pytest.mark.parametrize("pid", [2**22 + 7])
async def test_a_process_that_is_gone_is_said(pid: int, tmp_path: Path) -> None:
    transport = LocalTransport()
    folder = await collect_evidence(transport, [pid], stalled(), None, None, tmp_path / "e", lambda _: None)
    await transport.aclose()
    text = await asyncio.to_thread((folder / f"process-{pid}.txt").read_text)
    assert "is gone" in text
