"""The recording that ships is whole, in order, and of a server that really came up."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from specconsole.demo import recording as module
from specconsole.demo.recording import load_recording
from specconsole.errors import BadInputError


def test_times_and_sizes_grow_and_end_with_the_log() -> None:
    recording = load_recording()
    for series in (recording.arrivals, recording.health, [(sample.at_s, 0) for sample in recording.gpu]):
        assert all(earlier[0] <= later[0] for earlier, later in itertools.pairwise(series))
    assert all(earlier[1] <= later[1] for earlier, later in itertools.pairwise(recording.arrivals))
    assert recording.size_at(recording.length_s) == len(recording.log) > 80_000
    assert recording.size_at(-1) == 0
    assert recording.log.endswith(b"\n")


def test_at_any_moment_it_is_what_the_server_was_then() -> None:
    recording = load_recording()
    ready = b"The server is fired up and ready to roll!"
    assert [recording.health_at(at) for at in (0, 58, 59, 62, 97)] == ["refused", "refused", "503", "200", "200"]
    assert ready not in recording.log[: recording.size_at(60.0)]
    assert ready in recording.log[: recording.size_at(61.0)]
    assert b"speculative_algorithm='EAGLE3'" in recording.log
    before, after = recording.gpu_at(1), recording.gpu_at(90)
    assert before is not None
    assert after is not None
    assert before.memory_used_bytes == 0
    assert 130_000 < after.memory_used_bytes / 2**20 < after.memory_total_bytes / 2**20 == 143_771
    assert recording.gpu_at(0.0) is None


def test_a_damaged_recording_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "__file__", str(tmp_path / "recording.py"))
    with pytest.raises(BadInputError, match="install it again"):
        load_recording()
