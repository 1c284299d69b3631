"""Room and speed of disks, by a real `df` and `dd`: a file system that is really full, and what statvfs says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from specconsole.core.launching.disk import DISK, DiskRoom, Disks, judge_disks, parse_disks
from specconsole.core.launching.profile import Profile

SGLANG = Profile("p", "sglang")
GIB = 1 << 30


def look(home: Path, model: Path | str = "", *, sample: bool = False) -> Disks:
    words = ["sh", "-s", "--", str(model), "sample" if sample else ""]
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    done = subprocess.run(words, input=DISK.encode(), env=env, capture_output=True, check=True)
    assert not done.stderr
    return parse_disks(done.stdout)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A home on a file system of 1 MiB and a few files."""
    folder = tmp_path / "small disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,nr_inodes=20", "small", folder], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_it_says_what_the_kernel_says(tmp_path: Path) -> None:
    room = look(tmp_path).rooms["launches"]
    kernel = os.statvfs(tmp_path)
    assert room.total_bytes == kernel.f_blocks * kernel.f_frsize
    assert room.free_bytes == pytest.approx(kernel.f_bavail * kernel.f_frsize, abs=GIB)
    assert [one.severity for one in judge_disks(SGLANG, look(tmp_path), None, 1)] == ["ok"]


def test_a_full_disk_stops_the_start(small_disk: Path) -> None:
    (small_disk / "big").write_bytes(b"x" * (1 << 20))
    disks = look(small_disk)
    assert (disks.rooms["launches"].mounted_at, disks.rooms["launches"].free_bytes) == (str(small_disk), 0)
    [full] = [one for one in judge_disks(SGLANG, disks, None, 1) if one.name == "launches"]
    assert (full.severity, "the disk is full" in full.text) == ("stop", True)
    (small_disk / "big").unlink()
    made = 0
    try:
        for made in range(100):
            (small_disk / f"f{made}").touch()
    except OSError:
        pass
    assert made < 30
    [no_files] = [one for one in judge_disks(SGLANG, look(small_disk), None, 1) if one.name == "launches"]
    assert (no_files.severity, "no file can be made" in no_files.text) == ("stop", True)


def test_the_models_disk_is_timed(tmp_path: Path) -> None:
    (tmp_path / "model-00001-of-00001.safetensors").write_bytes(os.urandom(1 << 20) * 80)
    disks = look(tmp_path, tmp_path, sample=True)
    if disks.read_bytes_per_s is None:
        pytest.skip("this file system reads nothing past its cache")
    assert 1e6 < disks.read_bytes_per_s < 1e12
    [read] = [one for one in judge_disks(SGLANG, disks, 500 * GIB, 1) if one.name == "read"]
    assert f"{disks.read_bytes_per_s / 1e9:.2f} GB/s" in read.text
    assert look(tmp_path, tmp_path).read_bytes_per_s is None
    assert look(tmp_path, tmp_path / "none", sample=True).read_bytes_per_s is None


@pytest.mark.parametrize(
    ("line", "rate"),
    [
        (b"67108864 bytes (67 MB, 64 MiB) copied, 0.5 s, 134 MB/s", 134217728.0),
        (b"67108864 bytes (64.0MB) copied, 0.250000 seconds, 256.0MB/s", 268435456.0),
        (b"67108864 bytes transferred in 0.5 secs", None),
        (b"4096 bytes (4.1 kB, 4.0 KiB) copied, 0.0001 s, 41 MB/s", None),
        (b"0 bytes copied, 0 s", None),
    ],
)
def test_what_dd_prints(line: bytes, rate: float | None) -> None:
    assert parse_disks(b"read=" + line + b"\n").read_bytes_per_s == rate


def test_shared_memory_matters_to_several_ranks() -> None:
    disks = Disks({"launches": DiskRoom(99 * GIB, 50 * GIB, None, "/"), "shm": DiskRoom(1 << 26, 1 << 26, None, "/s")})
    assert [one.name for one in judge_disks(SGLANG, disks, None, 1)] == ["launches"]
    assert [one.name for one in judge_disks(SGLANG, disks, None, 8)] == ["launches", "shm"]


@pytest.mark.parametrize("output", [b"", b"room=\nroom=a|b|c|d|e\nread=", b"\xff\xfe\nroom=launches|1|2", b"denied"])
def test_odd_answers_say_nothing(output: bytes) -> None:
    assert parse_disks(output) == Disks({})
