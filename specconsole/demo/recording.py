"""A recorded start of a real server, to be played back at any speed: what `specconsole demo --replay` shows.

The log's bytes come with the times at which they were written, GPU samples and health answers with theirs, so a
replay is a pure function of the seconds since the launch.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from specconsole.errors import BadInputError

SGLANG_EAGLE3_H200 = "sglang-eagle3-h200"


@dataclass(frozen=True, slots=True)
class GpuSample:
    """The GPU at one moment, as nvidia-smi printed it."""

    at_s: float
    util_pct: float
    memory_used_bytes: int
    memory_total_bytes: int
    temperature_c: float
    power_w: float
    power_limit_w: float
    sm_clock_mhz: float


@dataclass(frozen=True, slots=True)
class Recording:
    """One launch from its command to the end of its benchmark; all times are seconds since the launch."""

    title: str
    engine: str
    gpu_name: str
    port: int
    command: str
    launched_at: datetime
    log: bytes
    arrivals: tuple[tuple[float, int], ...]
    """(time, size of the log from then on), ascending."""
    health: tuple[tuple[float, str], ...]
    """(time, what /health gave from then on): `refused`, `503`, `200`."""
    gpu: tuple[GpuSample, ...]

    @property
    def length_s(self) -> float:
        return self.arrivals[-1][0]

    def size_at(self, seconds: float) -> int:
        """Bytes of the log that were written `seconds` after the launch."""
        index = bisect_right(self.arrivals, seconds, key=lambda arrival: arrival[0])
        return self.arrivals[index - 1][1] if index else 0

    def health_at(self, seconds: float) -> str:
        index = bisect_right(self.health, seconds, key=lambda answer: answer[0])
        return self.health[index - 1][1] if index else "not-asked"

    def gpu_at(self, seconds: float) -> GpuSample | None:
        """The latest sample; None before the first."""
        index = bisect_right(self.gpu, seconds, key=lambda sample: sample.at_s)
        return self.gpu[index - 1] if index else None


def load_recording(name: str = SGLANG_EAGLE3_H200) -> Recording:
    """Reads a recording that ships with the console. Raises BadInputError when its files are damaged."""
    folder = Path(__file__).parent / "recordings" / name
    try:
        about = tomllib.loads((folder / "recording.toml").read_text())
        log = (folder / "server.log").read_bytes()
        arrivals = tuple((float(at), int(size)) for at, size in rows(folder / "arrivals.tsv"))
        health = tuple((float(at), answer) for at, answer in rows(folder / "health.tsv"))
        gpu = tuple(gpu_sample(row) for row in rows(folder / "gpu.tsv"))
        recording = Recording(
            title=about["title"],
            engine=about["engine"],
            gpu_name=about["gpu_name"],
            port=about["port"],
            command=about["command"],
            launched_at=about["launched_at"],
            log=log,
            arrivals=arrivals,
            health=health,
            gpu=gpu,
        )
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise BadInputError(f"the recording is damaged: {error}", where=str(folder), try_="install it again") from error
    if not arrivals or arrivals[-1][1] != len(log):
        raise BadInputError("the recording's log and its times do not fit", where=str(folder), try_="install it again")
    return recording


def rows(path: Path) -> list[list[str]]:
    """Tab-separated fields of every line that is no comment."""
    return [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")]


def gpu_sample(row: list[str]) -> GpuSample:
    at, util, used, total, temperature, power, limit, clock = row
    mib = 1024 * 1024
    return GpuSample(
        float(at), float(util), int(used) * mib, int(total) * mib,
        float(temperature), float(power), float(limit), float(clock),
    )  # fmt: skip
