from __future__ import annotations

from dataclasses import replace

from specconsole.core.hardware.gpu_activity import FRESH_S, gpu_activity
from specconsole.core.reading.stall import GpuActivity
from specconsole.core.views.host import GpuProcessView, GpuView, HostView

OURS = GpuProcessView(7, 1 << 30, "me", "python", 5.0, "launch-1", "eagle, TP0")
THEIRS = replace(OURS, pid=8, launch_id=None, label="not ours")
HOST = HostView(
    "gpu-a",
    "up",
    gpu_as_of_s=100.0,
    gpus=(
        GpuView(0, "H200", util_pct=2.0, memory_util_pct=0.0, processes=(OURS,)),
        GpuView(
            1, "H200", util_pct=0.0, memory_util_pct=0.0, processes=(OURS,), util_history_pct=(90.0, 0.0, 1.0, 40.0)
        ),
        GpuView(2, "H200", util_pct=100.0, memory_util_pct=80.0, processes=(THEIRS,)),
    ),
)


def test_busiest_of_the_launchs_own_gpus_over_the_last_moments() -> None:
    assert gpu_activity(HOST, "launch-1", 101.0) == GpuActivity(40.0, 0.0)


def test_unknown_stays_unknown() -> None:
    assert gpu_activity(None, "launch-1", 101.0) is None
    assert gpu_activity(HOST, "launch-2", 101.0) is None, "hidden pids, or no GPU held yet"
    assert gpu_activity(HOST, "launch-1", 101.0 + FRESH_S) is None, "the tool hangs"
    assert gpu_activity(replace(HOST, stale_since_s=50.0), "launch-1", 101.0) is None, "the link is down"
    assert gpu_activity(replace(HOST, gpu_as_of_s=None), "launch-1", 101.0) is None
    without = replace(HOST, gpus=(GpuView(0, "910B", processes=(OURS,)),))
    assert gpu_activity(without, "launch-1", 101.0) == GpuActivity(None, None)
