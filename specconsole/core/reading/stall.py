"""Is a silence normal, suspicious, or more than this phase ever takes: a verdict with its reason, never a failure.

Silence is counted from the last sign of progress, by the host's clock; a heartbeat that only says that somebody waits
("No available shared memory broadcast block", vLLM) is not progress. What counts as long comes, in this order, from
the bar's own rhythm, from what the phase took in earlier starts, and from what is known of the servers in general.
GPU use can acquit (it works) or add to the suspicion (idle, or one that spins on a collective).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specconsole.core.reading.eta import BarTrack
from specconsole.core.reading.model import START_PHASES, EtaRange, Part, Phase, RankReading

USUAL_SILENCE_S: dict[Phase, tuple[float, float]] = {
    # (normal up to here, stalled from here on, unless something says otherwise); between them nobody can know.
    # Imports of torch and the engine take 15 to 20 s in each process, three processes one after the other, and up to
    # a minute on a cold or busy machine (SGLang 0.5.17 and vLLM 0.32.0, recorded starts).
    "starting": (90.0, 600.0),
    # NCCL comes up in seconds on one node; torch's own rendezvous limit is 600 s.
    "distributed": (60.0, 600.0),
    # SGLang draws no bar for hub downloads; only the size of the cache folder could tell.
    "download": (300.0, 3600.0),
    # One shard of a large model from a network disk: over a minute is common, mmap faults on Lustre took 20 minutes.
    "weights": (180.0, 1800.0),
    # vLLM's memory profiling has taken 629 s without a line.
    "kv-cache": (180.0, 1200.0),
    # torch.compile 2219 s, DeepGEMM pre-compile 10 to 20 minutes, AITER builds over 10 minutes: without a line.
    "compile": (900.0, 3600.0),
    # The first graph compiles kernels: 72 s on an H200 without caches (SGLang 0.5.17).
    "graph-capture": (180.0, 900.0),
    # SGLang's warm-up request may take 600 s before the server itself gives up (SGLANG_WARMUP_TIMEOUT).
    "warm-up": (120.0, 600.0),
}
RHYTHM = 3.0
"""No new item for this many times the slowest item so far is a stall."""
RHYTHM_LEAST_S = 30.0
RHYTHM_LEAST_ITEMS = 3
HISTORY_MARGIN = 1.5
"""A phase that has lasted this many times the upper end of what it took before is a stall."""
SERVING_SILENCE_S = 120.0
"""SGLang prints a line every 40 decode steps, vLLM one every 10 s: with requests running, two minutes are many."""
SPEAKS_WHILE_WORKING: tuple[str, ...] = ("sglang",)
"""Servers that print a line every few decode steps, and none when the last request is done: silent means idle.
(vLLM says `Running: 0 reqs` first, so requests running and silence is a hang; llama.cpp says when slots are idle.)"""
SPEAKS_OF_REQUESTS_ONLY: tuple[str, ...] = ("vllm", "tgi")
"""Servers that, with their statistics off (vLLM's --disable-log-stats; TGI has none), print a line a request and
nothing else: whether one is still being worked on is never said."""
IDLE_LEAST_S = 30.0
IDLE_RHYTHM = 6.0
"""So many times the longest wait between two decode lines without another one: nothing is decoded any more."""
GPU_IDLE_PCT = 3.0
GPU_SPINNING_PCT = 95.0
MEMORY_STILL_PCT = 1.0


@dataclass(frozen=True, slots=True)
class GpuActivity:
    """Use of the launch's GPUs since the last line, the busiest of them; None is unknown."""

    busy_pct: float | None = None
    """0 to 100."""
    memory_busy_pct: float | None = None
    """Share of time in which memory was read or written, 0 to 100."""

    @property
    def idle(self) -> bool:
        return self.busy_pct is not None and self.busy_pct < GPU_IDLE_PCT

    @property
    def spinning(self) -> bool:
        """Busy without touching memory: the ranks wait for each other inside a collective."""
        return (
            self.busy_pct is not None
            and self.memory_busy_pct is not None
            and self.busy_pct >= GPU_SPINNING_PCT
            and self.memory_busy_pct < MEMORY_STILL_PCT
        )

    @property
    def working(self) -> bool:
        return self.busy_pct is not None and self.busy_pct >= GPU_IDLE_PCT and not self.spinning


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the silence means."""

    stalled: bool | None
    """None: too long to be called normal, too little known to be called a stall (or no clock)."""
    reason: str | None
    """One sentence for a person; None where nothing is to be said."""
    limit_s: float | None = None
    """After this much silence it stops being normal; None where silence means nothing."""
    behind: tuple[str, ...] = ()
    """Ranks that the others wait for."""


def judge(
    phase: Phase,
    part: Part | None,
    silent_s: float | None,
    *,
    track: BarTrack | None = None,
    usual: EtaRange | None = None,
    spent_s: float | None = None,
    gpu: GpuActivity | None = None,
    ranks: Sequence[RankReading] = (),
    running: int | None = None,
) -> Verdict:
    """The verdict on `silent_s` seconds without progress (None: no clock, no verdict).

    `track` is the bar of this phase while it is unfinished; `usual` what the whole phase took in earlier starts
    (`Fit.remaining(0)`), beside `spent_s`, how long it has lasted now; `running` the requests in work.
    """
    if silent_s is None:
        return Verdict(None, None)
    if phase not in START_PHASES:
        return _judge_running(phase, silent_s, gpu, running)
    normal_s, stalled_s, source = _limits(phase, track, usual, spent_s)
    place = phase if part is None else f"{phase} ({part})"
    behind = ranks_behind(ranks) if silent_s > normal_s else ()
    waits = f"; waits for {', '.join(behind)}" if behind else ""
    if silent_s <= normal_s:
        return Verdict(False, None, normal_s)
    said = f"no progress in {place} for {_span(silent_s)}, {source}{waits}"
    if gpu is not None and gpu.working and silent_s < 3.0 * stalled_s:
        return Verdict(None, f"{said}; the GPUs work ({gpu.busy_pct:.0f} %)", normal_s, behind)
    if gpu is not None and gpu.spinning:
        return Verdict(True, f"{said}; the GPUs spin without touching memory, as in a collective", normal_s, behind)
    if gpu is not None and gpu.idle and (phase in _ON_GPU or silent_s >= (normal_s + stalled_s) / 2.0):
        return Verdict(True, f"{said}; the GPUs are idle", normal_s, behind)
    if silent_s >= stalled_s:
        return Verdict(True, said, normal_s, behind)
    return Verdict(None, said, normal_s, behind)


_ON_GPU: frozenset[Phase] = frozenset({"graph-capture", "warm-up"})
"""Phases in which an idle GPU has no innocent explanation but a compiler on the CPU."""


def idle_again(
    engine: str,
    silent_s: float,
    *,
    rhythm_s: float | None,
    prompted: bool,
    windows: bool = True,
    gpu: GpuActivity | None = None,
) -> bool:
    """Whether a server that was at work when it fell silent has simply nothing left to do.

    `rhythm_s`: its longest wait between two decode lines; `prompted`: the last it said was that it takes in a prompt;
    `windows`: whether it ever told figures of an interval. A GPU that is busy speaks against it. A hang looks the same
    until the server's own watchdog or health check speaks.
    """
    if gpu is not None and not gpu.idle and gpu.busy_pct is not None:
        return False
    if engine in SPEAKS_OF_REQUESTS_ONLY and not windows:
        return silent_s > SERVING_SILENCE_S
    if engine not in SPEAKS_WHILE_WORKING:
        return False
    if prompted or rhythm_s is None:
        return silent_s > SERVING_SILENCE_S
    return silent_s > max(IDLE_LEAST_S, IDLE_RHYTHM * rhythm_s)


def ranks_behind(ranks: Sequence[RankReading]) -> tuple[str, ...]:
    """The ranks whose last word is from an earlier phase than the furthest rank's, or that alone have fallen silent.

    Empty where all are at one point: then nobody is behind, all hang together.
    """
    if len(ranks) < 2:
        return ()
    order = {phase: index for index, phase in enumerate(START_PHASES)}
    reached = {rank.rank: order.get(rank.phase, len(order)) for rank in ranks}
    furthest = max(reached.values())
    late = [rank for rank in ranks if reached[rank.rank] < furthest]
    if late and len(late) < len(ranks):
        return tuple(rank.rank for rank in late)
    silences = sorted(rank.silent_s for rank in ranks if rank.silent_s is not None)
    if len(silences) < len(ranks):
        return ()
    usual = silences[len(silences) // 2]
    silent = [r for r in ranks if r.silent_s is not None and r.silent_s > 3.0 * usual + RHYTHM_LEAST_S]
    return tuple(rank.rank for rank in silent) if len(silent) * 2 < len(ranks) else ()


def _limits(
    phase: Phase, track: BarTrack | None, usual: EtaRange | None, spent_s: float | None
) -> tuple[float, float, str]:
    """(normal up to, stalled from, where that comes from) in seconds of silence."""
    normal_s, stalled_s = USUAL_SILENCE_S[phase]
    if track is not None and not track.complete and track.changes >= RHYTHM_LEAST_ITEMS:
        slowest_s = track.slowest_wait_s
        limit_s = max(RHYTHM * slowest_s, RHYTHM_LEAST_S)
        return limit_s, max(2.0 * limit_s, RHYTHM_LEAST_S), f"the slowest item so far took {_span(slowest_s)}"
    if usual is not None and spent_s is not None:
        # The silence is normal as long as the phase as a whole is no longer than it was before.
        lasted_before_s = max(0.0, spent_s)
        limit_s = max(usual.high, RHYTHM_LEAST_S)
        over_s = lasted_before_s - limit_s
        source = f"here it took at most {_span(usual.high)} before ({usual.basis})"
        if over_s <= 0.0:
            return max(normal_s, limit_s), max(stalled_s, HISTORY_MARGIN * limit_s), source
        return min(normal_s, limit_s), min(stalled_s, HISTORY_MARGIN * limit_s), source
    return normal_s, stalled_s, f"up to {_span(normal_s)} is normal there"


def _judge_running(phase: Phase, silent_s: float, gpu: GpuActivity | None, running: int | None) -> Verdict:
    if phase != "serving" or not running:
        return Verdict(False, None)  # an idle server says nothing, and neither does one that has ended
    if silent_s <= SERVING_SILENCE_S:
        return Verdict(False, None, SERVING_SILENCE_S)
    said = f"{running} requests running and no line for {_span(silent_s)}"
    if gpu is not None and gpu.working:
        return Verdict(None, f"{said}; the GPUs work ({gpu.busy_pct:.0f} %)", SERVING_SILENCE_S)
    if gpu is not None and (gpu.idle or gpu.spinning):
        how = "are idle" if gpu.idle else "spin without touching memory, as in a collective"
        return Verdict(True, f"{said}; the GPUs {how}", SERVING_SILENCE_S)
    return Verdict(True if silent_s > 2 * SERVING_SILENCE_S else None, said, SERVING_SILENCE_S)


def _span(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"
