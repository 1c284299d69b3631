"""What a start needs to be free on its host: GPUs with so much memory, ports, host memory. Pure.

In a launch folder they are words, which the waiter on the host compares: `gpu=0/81920` (MiB that must be free, `-`
where that is not known), `port=30000`, `memory/2048`. What stands before the `/` is the thing itself: two launches
that name the same thing are in each other's way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from specconsole.core.launching.engine_settings import settings_of
from specconsole.core.launching.memory import DEFAULT_FRACTION
from specconsole.core.launching.model_check import GpuRoom, gpus_used, host_bytes, judge_gpu_memory, ports_beside
from specconsole.core.launching.model_files import Model
from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.profile import Profile

MIB = 1024 * 1024
IDLE_MIB = 1024
"""Where it is not known how much a start takes, a GPU is free with less than this in use: a driver alone holds some
hundred MiB (4 on an idle H200 with persistence, up to 600 with a display)."""

_GPU_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
_GPU_LAYERS = ("n_gpu_layers", "gpu_layers", "ngl")


@dataclass(frozen=True, slots=True)
class GpuNeed:
    """One GPU that a start takes."""

    name: str
    """Its index as nvidia-smi prints it, or its UUID."""
    free_bytes: int | None = None
    """What must be free there; None: not known, so next to nothing may be in use."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Of one start on one host."""

    gpus: tuple[GpuNeed, ...] = ()
    ports: tuple[int, ...] = ()
    host_bytes: int | None = None
    """Of the host's memory; None where it is not judged."""
    notes: tuple[str, ...] = ()
    """What is not waited for, and why; one sentence each."""

    def words(self) -> tuple[str, ...]:
        """For the launch folder."""
        found = [f"gpu={gpu.name}/{'-' if gpu.free_bytes is None else -(-gpu.free_bytes // MIB)}" for gpu in self.gpus]
        found += [f"port={port}" for port in self.ports]
        if self.host_bytes is not None:
            found.append(f"memory/{-(-self.host_bytes // MIB)}")
        return tuple(found)


def needs_of(profile: Profile, port: int | None, target: Model, draft: Model, gpus: Sequence[GpuRoom] | None) -> Needs:
    """`profile` as it is started; `gpus` of the host: () without a tool, None when they were not looked at."""
    ports = (*((port,) if port is not None else ()), *ports_beside(profile, port))
    notes: list[str] = []
    taken: tuple[GpuNeed, ...] = ()
    if gpus:
        taken = _gpus(profile, target, draft, gpus, notes)
    elif gpus is None:
        notes.append("the GPUs were not looked at: only ports are waited for")
    elif profile.engine in ("sglang", "vllm"):
        notes.append("no GPU tool is on the host: only ports and host memory are waited for")
    memory = host_bytes(profile, target, draft) if not taken and gpus is not None else None
    return Needs(taken, ports, memory, tuple(notes))


def _gpus(
    profile: Profile, target: Model, draft: Model, gpus: Sequence[GpuRoom], notes: list[str]
) -> tuple[GpuNeed, ...]:
    named = _visible(profile)
    if profile.engine in ("sglang", "vllm"):
        count, used = gpus_used(profile, gpus)
        names = [str(gpu.index) for gpu in used] or list((named or ())[:count])
        settings = settings_of(profile)
        share = settings.get("mem_fraction_static" if profile.engine == "sglang" else "gpu_memory_utilization")
        if not isinstance(share, int | float) or isinstance(share, bool):
            share = DEFAULT_FRACTION[profile.engine]
        total = {str(gpu.index): gpu.total_bytes for gpu in gpus}
        # Both engines take this share of the card for weights and KV, whatever the model's size.
        return tuple(GpuNeed(name, int(total[name] * share) if name in total else None) for name in names)
    if profile.engine == "llamacpp":
        settings = settings_of(profile)
        if any(settings.get(key) in (0, "0") for key in _GPU_LAYERS) or settings.get("device") == "none":
            return ()
        names = list(named) if named is not None else [str(gpu.index) for gpu in gpus]
        whole = host_bytes(profile, target, draft)
        return tuple(GpuNeed(name, None if whole is None else whole // len(names)) for name in names)
    if named is None:
        notes.append("which GPUs it takes is not known (no CUDA_VISIBLE_DEVICES): only ports are waited for")
    return tuple(GpuNeed(name) for name in named or ())


def _visible(profile: Profile) -> tuple[str, ...] | None:
    """CUDA_VISIBLE_DEVICES as names, () where it hides all; None where it is not set."""
    visible = profile.env.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return None
    names: list[str] = []
    for part in visible.split(","):
        # CUDA ignores what stands behind the first name that is none (its programming guide, environment variables).
        if not _GPU_NAME.fullmatch(part.strip()) or part.strip().startswith("-"):
            break
        names.append(part.strip())
    return tuple(names)


def never_free(profile: Profile, target: Model, draft: Model, gpus: Sequence[GpuRoom]) -> tuple[Finding, ...]:
    """What would forbid the start on the same GPUs with nobody else there: no waiting helps against it."""
    if profile.engine not in ("sglang", "vllm") or not gpus:
        return ()
    empty = [GpuRoom(gpu.index, gpu.total_bytes, gpu.total_bytes) for gpu in gpus]
    return tuple(one for one in judge_gpu_memory(profile, target, draft, empty) if one.severity == "stop")


def passes_with_time(finding: Finding, needs: Needs) -> bool:
    """Whether what forbids a start now may be gone later; what never can be is `never_free`'s to say."""
    return finding.check == "port" or (finding.check in ("gpu", "memory") and bool(needs.gpus))
