"""What the GPUs of the server's host did during a point: asked beside the load, by the load generator itself.

NVIDIA alone (`nvidia-smi` on the host's PATH); elsewhere it stays unknown, or is what a console saw meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specconsole.core.hardware.gpu import GpuSample, GpuTick
from specconsole.core.hardware.nvidia_query import QueryStream, query_argv

FIELDS = (
    "count", "index", "uuid", "name", "clocks.sm", "clocks.max.sm", "temperature.gpu", "power.draw",
    "clocks_throttle_reasons.active",
)  # fmt: skip
EVERY_S = 5.0
CLOCKS_APART_RATIO = 0.05
"""Clocks that differ by more make two results differ for another reason than the draft."""


@dataclass(frozen=True, slots=True)
class PointGpu:
    """One GPU over one point. None: not told."""

    index: int
    name: str
    samples: int
    sm_clock_mhz: float | None
    """Mean over the samples."""
    sm_clock_low_mhz: float | None
    sm_clock_max_mhz: float | None
    """The highest that the GPU can."""
    power_w: float | None
    """Mean."""
    temperature_c: float | None
    """The highest."""
    throttle: tuple[str, ...] = ()
    """Everything that held it down in any sample."""


def beside_argv(tool: str = "nvidia-smi") -> list[str]:
    """What the load generator runs."""
    return query_argv(tool, fields=FIELDS)


def point_gpus(lines: Iterable[Mapping[str, Any]]) -> tuple[PointGpu, ...]:
    """From the `beside` lines of one point; () where the tool was not there or said nothing of use."""
    seen: dict[int, list[GpuSample]] = {}
    for line in lines:
        if line.get("status") != 0:
            continue
        stream = QueryStream(FIELDS)
        for item in (*stream.feed(str(line.get("output", "")).encode()), *stream.finish()):
            if isinstance(item, GpuTick):
                for gpu in item.gpus:
                    seen.setdefault(gpu.index, []).append(gpu)
    return tuple(_over(seen[index]) for index in sorted(seen))


def clock_mhz(gpus: Sequence[PointGpu]) -> float | None:
    """Mean over GPUs; None where it is not known."""
    known = [gpu.sm_clock_mhz for gpu in gpus if gpu.sm_clock_mhz is not None]
    return sum(known) / len(known) if known else None


def gpu_text(gpus: Sequence[PointGpu]) -> str:
    """`GPUs at 1,710 MHz of 1,980 (lowest 1,695), 612 W, 71 °C; held down: power-cap`; "" when nothing is known."""
    mean = clock_mhz(gpus)
    if mean is None:
        return ""
    text = f"GPUs at {mean:,.0f} MHz"
    most = [gpu.sm_clock_max_mhz for gpu in gpus if gpu.sm_clock_max_mhz is not None]
    low = [gpu.sm_clock_low_mhz for gpu in gpus if gpu.sm_clock_low_mhz is not None]
    text += f" of {max(most):,.0f}" if most else ""
    text += f" (lowest {min(low):,.0f})" if low and min(low) < 0.99 * mean else ""
    power = [gpu.power_w for gpu in gpus if gpu.power_w is not None]
    text += f", {sum(power) / len(power):,.0f} W each" if power else ""
    heat = [gpu.temperature_c for gpu in gpus if gpu.temperature_c is not None]
    text += f", {max(heat):.0f} °C" if heat else ""
    held = sorted({reason for gpu in gpus for reason in gpu.throttle})
    return text + (f"; held down: {', '.join(held)}" if held else "")


def _over(samples: Sequence[GpuSample]) -> PointGpu:
    def known(pick: str) -> list[float]:
        return [value for one in samples if (value := getattr(one, pick)) is not None]

    clocks, power, heat = known("sm_clock_mhz"), known("power_w"), known("temperature_c")
    return PointGpu(
        index=samples[0].index,
        name=samples[0].name,
        samples=len(samples),
        sm_clock_mhz=sum(clocks) / len(clocks) if clocks else None,
        sm_clock_low_mhz=min(clocks, default=None),
        sm_clock_max_mhz=max(known("sm_clock_max_mhz"), default=None),
        power_w=sum(power) / len(power) if power else None,
        temperature_c=max(heat, default=None),
        throttle=tuple(dict.fromkeys(reason for one in samples for reason in one.throttle or ())),
    )
