"""A result: the points of one benchmark run, with everything that is needed to compare them fairly.

Frozen values that go to JSON as they are (`dataclasses.asdict`); the store and the exports write that shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from specconsole.core.measuring.acceptance import Acceptance
from specconsole.core.measuring.gpu_clocks import PointGpu
from specconsole.core.measuring.point import PointMetrics

SCHEMA_VERSION = 1

CacheState = Literal["flushed", "unique-prompts", "shared-prefix", "unknown"]
"""How the prefix cache was kept out: emptied before each point, prompts that can't hit, asked for, or not known."""

CLIENT_OVERHEAD_LIMIT_PCT = 10.0
"""perf_analyzer warns beyond 10 % of a slot's time spent in the client (triton-inference-server/client PR 257)."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Under what a result was measured. None: the server or host did not say."""

    engine: str
    version: str | None = None
    build: Mapping[str, str] = field(default_factory=dict)
    """commit, diff hash, torch, CUDA, NCCL, FlashInfer, driver: whatever is known."""
    model: str | None = None
    draft_model: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Effective settings as the server told them, secrets masked."""
    command: str = ""
    host: str = ""
    gpu_names: tuple[str, ...] = ()
    client_host: str = ""
    through_tunnel: bool = False
    workload: str = ""
    workload_hash: str = ""
    workload_marks: tuple[str, ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict)
    cache: CacheState = "unknown"
    num_steps: int | None = None
    """Draft steps a target step; None for a plain server, or where it is not known."""
    speculative: bool | None = None
    dp_size: int = 1
    running_cap: int | None = None
    """Most requests that run at once, per data-parallel rank."""
    simulated: str = ""
    """Not "": acceptance was made up (`SGLANG_SIMULATE_ACC_LEN=2.5`, `--spec-synth-len 2.5`). Stamped SIMULATED."""


@dataclass(frozen=True, slots=True)
class ClientFigures:
    """How well the load generator itself kept up."""

    cpu_share_pct: float | None = None
    """Its CPU time over wall time, of one core."""
    lag_p99_s: float | None = None
    """How long the last ready stream of a turn waited to be read."""
    stalled_s: float = 0.0
    overhead_pct: float | None = None
    """Share of slot time between an answer's end and the next request's start."""
    stamped_by: str = ""
    """`kernel`: it tells when bytes came, and a lag of the client moves no arrival; `client`; "" where not known."""


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """One concurrency (or arrival rate), one repeat."""

    concurrency: int | None
    rate_per_s: float | None
    repeat: int
    launch_id: str
    at_s: float
    """Wall clock of the client when it began."""
    metrics: PointMetrics
    acceptance: Acceptance
    client: ClientFigures
    running_server_mean: float | None = None
    """Mean of the server's own count of running requests, sampled under load."""
    queued_server_max: float | None = None
    gpus: tuple[PointGpu, ...] = ()
    """The GPUs of the server's host over the point; () where they could not be asked."""
    marks: tuple[str, ...] = ()
    """What a reader must know, beyond `metrics.marks`: see `marks.py`."""
    probes: Mapping[str, float] = field(default_factory=dict)
    """Means over the window of what the profile's probes read from the server's log, by name."""

    @property
    def all_marks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.metrics.marks, *self.marks)))

    @property
    def load(self) -> float:
        """Concurrency, or arrival rate: what the columns of a table are sorted by."""
        return float(self.concurrency if self.concurrency is not None else self.rate_per_s or 0.0)


@dataclass(frozen=True, slots=True)
class Result:
    """The points of one run, repeats and all."""

    result_id: str
    name: str
    """The profile's name, or the URL."""
    started_at_s: float
    ended_at_s: float | None
    conditions: Conditions
    points: tuple[MeasuredPoint, ...]
    ended: str = "done"
    """`done`, `cancelled`, `deadline`, `server-died`, `failed`, `broken-off` (the load generator was killed), or
    `unfinished` while it is under way."""
    note: str = ""
    until_ci_ratio: float | None = None
    """Repeats went on until throughput was known to this share of its mean; None: as many as were asked for."""
    imported_from: str = ""
    """Not "": made by another client (`sglang.bench_serving`, `vllm bench serve`, ...), and shown as such."""

    @property
    def launches(self) -> int:
        """Over how many starts of the server its repeats span; 1 is marked "one start"."""
        return len({point.launch_id for point in self.points})

    def at(self, load: float) -> tuple[MeasuredPoint, ...]:
        """The repeats at one concurrency or rate."""
        return tuple(point for point in self.points if point.load == load)

    @property
    def loads(self) -> tuple[float, ...]:
        return tuple(sorted({point.load for point in self.points}))
