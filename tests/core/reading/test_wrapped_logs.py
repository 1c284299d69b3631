"""Whole logs inside what carries them: the reading is that of the bare log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from specconsole.core.reading.model import Reading
from specconsole.core.reading.reading import read_bytes

LOGS = Path(__file__).parent / "invented" / "logs"
NAMES = (
    "sglang-draft-load-oom", "sglang-http-port-taken-then-other-server-ready", "sglang-healthy-scary", "sglang-gloo-timeout-capture",
    "sglang-dp4-mixed-windows", "sglang-cut-mid-bar-draft", "vllm-worker-oom-others-shm", "vllm-engine-dead-at-request-oom-cause",
    "vllm-dp-two-engines", "vllm-missing-flashinfer-nvcc", "llama-ggml-assert-live", "llama-idle-after-request",
)  # fmt: skip
STAMP = "2026-06-01T10:00:00.123456789Z"
WRAPPERS: dict[str, Callable[[int, str], str]] = {
    "compose": lambda no, line: f"sglang-1  | {line}",
    "docker -t": lambda no, line: f"{STAMP} {line}",
    "docker json-file": lambda no, line: json.dumps({"log": line + "\n", "stream": "stderr", "time": STAMP}),
    "CRI": lambda no, line: f"{STAMP} stderr F {line}",
    "kubectl --prefix": lambda no, line: f"[pod/server-0/main] {line}",
    "journald": lambda no, line: f"Jun 01 10:00:00 gpu-a serve[4711]: {line}",
    "journald as JSON": lambda no, line: json.dumps({"MESSAGE": line, "_PID": "3", "__REALTIME_TIMESTAMP": "1"}),
    "srun -l": lambda no, line: f"0: {line}",
    "mpirun": lambda no, line: f"[1,0]<stderr>:{line}",
    "torchrun": lambda no, line: f"[default0]:{line}",
    "Ray": lambda no, line: f"\x1b[36m(Engine pid=3342, ip=10.0.0.4)\x1b[0m {line}",
    "numbered": lambda no, line: f"{no:6}\t{line}",
    "grep -n": lambda no, line: f"{no}:{line}",
    "colours": lambda no, line: f"\x1b[1;36m{line}\x1b[0m",
    "colours without ESC": lambda no, line: f"[1;36m{line}[0m",
    "CRLF": lambda no, line: f"{line}\r",
    "pod in journald": lambda no, line: f"Jun 01 10:00:00 gpu-a docker[1]: sglang-1  | {line}",
}


def _said(reading: Reading) -> dict[str, object]:
    """What must be the same: all but sizes and times, which a wrapper may add, and the line's own text."""
    failure = reading.failure
    return {
        "engine": reading.engine,
        "phase": (reading.phase, reading.part),
        "progress": None if reading.progress is None else (reading.progress.done, reading.progress.total),
        "failure": None if failure is None else (failure.failure_class, failure.line_no, failure.in_phase, failure.in_part),
        "metrics": reading.metrics,
        "warnings": [(warning.warning_class, warning.line_no) for warning in reading.warnings],
        "server": reading.server,
        "starts": reading.starts,
        "timeline": [(entry.phase, entry.part, entry.line_no) for entry in reading.timeline],
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_wrapper_around_a_whole_log_changes_nothing(name: str) -> None:
    text = (LOGS / f"{name}.log").read_text()
    end = "\n" if text.endswith("\n") else ""
    lines = text.removesuffix("\n").split("\n")
    want = _said(read_bytes(text.encode()))
    for wrapper, wrap in WRAPPERS.items():
        wrapped = "\n".join(wrap(no, line) for no, line in enumerate(lines, 1)) + end
        assert _said(read_bytes(wrapped.encode())) == want, wrapper
