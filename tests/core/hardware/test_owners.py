"""Whose a GPU's processes are; and what the kernel's messages say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from specconsole.core.hardware.gpu import GpuProcess
from specconsole.core.hardware.gpu_owners import (
    OWNERS_SH,
    KnownLaunch,
    Owner,
    Owners,
    age_text,
    claim,
    hidden_note,
    parse_owners,
    rank_of,
)
from specconsole.core.hardware.kernel_log import parse_kernel_log, same_bus

GIB = 1 << 30
LAUNCH = KnownLaunch("0123456789abcdef", "eagle3-topk1")


def process(pid: int | None = 71, name: str | None = "python3", used_bytes: int | None = GIB) -> GpuProcess:
    return GpuProcess("GPU-1", pid, name, used_bytes)


def owners(*found: Owner, in_container: bool = False, hidepid: bool = False) -> Owners:
    return Owners({owner.pid: owner for owner in found}, in_container, hidepid)


def test_a_launchs_process_is_told_by_its_environment_and_named_with_its_rank() -> None:
    owner = Owner(71, start_ticks=5, command="sglang::scheduler_TP3", launch_id=LAUNCH.launch_id, environ_seen=True)
    found = claim(process(), owners(owner), [LAUNCH])
    assert (found.launch_id, found.label) == (LAUNCH.launch_id, "eagle3-topk1, TP3")


def test_an_adopted_servers_process_is_told_by_pid_and_start_ticks() -> None:
    adopted = KnownLaunch("feed", "bobs-vllm", frozenset({(71, 5)}))
    mine = Owner(71, start_ticks=5, command="VLLM::Worker_TP1", environ_seen=True, chain=((71, 5), (3, 1)))
    assert claim(process(), owners(mine), [adopted]).label == "bobs-vllm, TP1"
    forked = Owner(90, start_ticks=8, command="VLLM::Worker_TP2", environ_seen=True, chain=((90, 8), (71, 5)))
    assert claim(process(90), owners(forked), [adopted]).label == "bobs-vllm, TP2"
    reused = Owner(71, start_ticks=6, chain=((71, 6), (3, 1)), user="bob", command="vim", age_s=30.0, environ_seen=True)
    found = claim(process(), owners(reused), [adopted])
    assert (found.launch_id, found.label) == (None, "not ours: pid 71, bob, 30 s, vim")


def test_what_can_not_be_seen_is_not_called_foreign() -> None:
    unseen = Owner(71, user="bob", command="python train.py", age_s=3 * 3600.0)
    assert claim(process(), owners(unseen), []).label == "not known to be ours: pid 71, bob, 3 h, python train.py"
    gone = Owner(71, gone=True)
    assert "another container" in claim(process(), owners(gone, in_container=True), []).label
    assert "hidepid" in claim(process(), owners(gone, hidepid=True), []).label
    assert "no such process" in claim(process(), owners(gone), []).label
    assert claim(process(pid=None), owners(), []).label.startswith("hidden")


def test_a_launch_that_we_do_not_know_is_still_a_launch() -> None:
    owner = Owner(71, start_ticks=5, command="sglang::scheduler", launch_id="beef", environ_seen=True, state="Z")
    assert claim(process(), owners(owner), []).label == "launch beef, dead but not reaped"


def test_memory_without_a_process_is_said() -> None:
    assert hidden_note(61 * GIB, [], True) == "61 GiB held in another container (process ids are hidden here)"
    assert "by no process that the tool lists" in hidden_note(61 * GIB, [process(used_bytes=20 * GIB)], False)
    assert hidden_note(GIB // 2, [], True) == ""
    assert hidden_note(61 * GIB, [process(used_bytes=None)], True) == ""


@pytest.mark.parametrize(
    ("title", "rank"),
    [
        ("sglang::scheduler_TP3", "TP3"),
        ("sglang::scheduler_DP0_TP0_EP0", "DP0 TP0 EP0"),
        ("VLLM::Worker_TP1", "TP1"),
        ("sglang::scheduler", None),
        ("python -m http.server STEP2", None),
    ],
)
def test_ranks(title: str, rank: str | None) -> None:
    assert rank_of(title) == rank


def test_ages() -> None:
    assert [age_text(age) for age in (None, 45, 600, 3 * 3600, 5 * 86400)] == [None, "45 s", "10 min", "3 h", "5 d"]


def test_a_real_process_reads_as_psutil_says(tmp_path: Path) -> None:
    """Witness: psutil, for a process that carries a launch id, a secret and odd words in its command line."""
    argv = [sys.executable, "-c", "import sys; sys.stdin.read()", "--api-key", "hunter2", "a b", "x\n#pid=1\ngone=1"]
    env = {**os.environ, "SPECCONSOLE_LAUNCH": "0123456789abcdef"}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, env=env, cwd=tmp_path) as child:
        try:
            answer = subprocess.run(
                ["sh", "-c", OWNERS_SH, "sh", str(child.pid), "1", "4194305"],
                capture_output=True,
                check=True,
                timeout=20,
            )
            witness = psutil.Process(child.pid)
            found = parse_owners(answer.stdout)
            assert found.whole
            owner = found.by_pid[child.pid]
            assert owner.launch_id == "0123456789abcdef"
            assert owner.user == witness.username()
            assert owner.ppid == os.getpid()
            assert owner.age_s is not None
            assert 0 <= owner.age_s < 60
            assert owner.command is not None
            assert "hunter2" not in owner.command
            assert "'a b'" in owner.command
            ticks = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(") ")[2].split()[19])
            assert owner.start_ticks == ticks
            assert owner.chain[0] == (child.pid, ticks)
            parents = [witness.pid, *(parent.pid for parent in witness.parents() if parent.pid != 1)]
            assert [pid for pid, _ in owner.chain] == parents
            assert found.by_pid[4194305].gone
            assert not found.by_pid[1].gone
            assert claim(process(child.pid), found, [LAUNCH]).label == "eagle3-topk1"
        finally:
            child.kill()


def test_xids() -> None:
    text = (
        "[  812.114215] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
        "[ 1024.667000] NVRM: Xid (PCI:0000:0a:00): 31, pid=2345, name=python3, Ch 00000008, intr 00000000. MMU Fault\n"
        "[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0\n"
        "               NVRM: fallen off the bus and is not responding to commands.\n"
        "[ 2001.500000] amdgpu 0000:0c:00.0: amdgpu: GPU reset begin!\n"
        "[ 2002.500000] usb 1-1: new device\n"
    )
    off_bus, mmu, unnumbered, amd = parse_kernel_log(text)
    assert (off_bus.xid, off_bus.hardware, off_bus.uptime_s, off_bus.pid) == (79, True, 812.114215, None)
    assert (mmu.xid, mmu.hardware, mmu.pid) == (31, False, 2345)
    assert (unnumbered.xid, unnumbered.bus_id) == (None, "0000:b3:00")
    assert amd.text.startswith("amdgpu: GPU reset")
    assert same_bus(off_bus.bus_id, "00000000:3B:00.0")
    assert not same_bus("00000000:3C:00.0", "0000:3b:00")
    assert not same_bus(None, "0000:3b:00")
