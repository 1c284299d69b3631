"""The stream of `nvidia-smi --query-gpu=... --format=csv,noheader,nounits -l N`: bytes to ticks.

Written against driver 580.159 (H200), kept to fields that drivers from 450 on know; a field that a driver does
not know is left out and asked for no more. A tick is the rows of one round; a round ends when `count` rows are
there, or when the index starts again (a GPU that went missing).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from specconsole.core.hardware.gpu import MIB, GpuSample, GpuTick, ThrottleReason, ToolTrouble
from specconsole.core.hardware.nvidia_trouble import explain
from specconsole.core.hardware.values import clean, number, whole, word

FIELDS: tuple[str, ...] = (
    "count", "index", "uuid", "name", "utilization.gpu", "utilization.memory", "memory.used", "memory.total",
    "temperature.gpu", "temperature.memory", "power.draw", "clocks.sm", "clocks.mem", "pstate",
    "clocks_throttle_reasons.active", "ecc.errors.uncorrected.volatile.total",
)  # fmt: skip
"""What the stream asks for. `clocks_throttle_reasons` is the old name, which new drivers still take;
`clocks_event_reasons` came with 535."""

STEADY_FIELDS: tuple[str, ...] = ("pci.bus_id", "power.limit", "clocks.max.sm", "mig.mode.current")
"""Asked for once in a while: they seldom change and are dear. CPU a round measured on 2 H200 (580.159.04): 8.0 ms
for all 20 fields; clocks.max.sm 4.3, pci.bus_id 2.7, power.limit 0.9, mig.mode.current 0.8, the other 16 below 1."""

REQUIRED_FIELDS = frozenset({"index", "uuid"})
_LONGEST_LINE = 4096

# nvml.h, nvmlClocksEventReason*: 0x1 is "idle", which is no limit.
_THROTTLE_BITS: tuple[tuple[int, ThrottleReason], ...] = (
    (0x2, "app-clocks"),
    (0x4, "power-cap"),
    (0x8, "hw-slowdown"),
    (0x10, "sync-boost"),
    (0x20, "thermal"),
    (0x40, "hw-thermal"),
    (0x80, "power-brake"),
    (0x100, "display-clocks"),
)

# What --query-gpu prints in place of a number for a GPU that answers no more (NVML: GPU_IS_LOST, UNKNOWN).
_LOST = frozenset({"[gpu is lost]", "[unknown error]", "[error]"})


def query_argv(
    tool: str, *, every_s: int | None = None, fields: Sequence[str] = FIELDS, only: Sequence[str] = ()
) -> list[str]:
    """The command: one round, or a round every `every_s` seconds for ever; `only` names GPUs by UUID."""
    argv = [tool, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    if only:
        argv += ["-i", ",".join(only)]
    if every_s is not None:
        argv += ["-l", str(every_s)]
    return argv


def throttle_reasons(text: str) -> tuple[ThrottleReason, ...] | None:
    """Reasons in the bit mask `0x0000000000000004`; None when there is no mask."""
    try:
        mask = int(text.strip(), 16)
    except ValueError:
        return None
    return tuple(name for bit, name in _THROTTLE_BITS if mask & bit)


def parse_row(line: str, fields: Sequence[str] = FIELDS) -> tuple[GpuSample, int | None] | None:
    """One row as a sample, and the number of GPUs that the tool counts; None when the line is no such row.

    A real row, driver 580.159.04 with an older field list:
    `0, GPU-242bffcf-..., NVIDIA H200, 100, 75, 131014, 143771, 45, 436.09, 700.00, 1980, 3201, [N/A], P0, 0, Disabled`
    """
    cells = [cell.strip() for cell in line.split(", ")]
    if len(cells) != len(fields):
        return None
    row = dict(zip(fields, cells, strict=True))
    index, uuid = whole(row.get("index", "")), word(row.get("uuid", ""))
    if index is None or uuid is None:
        return None

    def value(field: str) -> float | None:
        return number(row[field]) if field in row else None

    def mib(field: str) -> int | None:
        amount = value(field)
        return None if amount is None else int(amount * MIB)

    ecc = value("ecc.errors.uncorrected.volatile.total")
    mig = word(row.get("mig.mode.current", ""))
    figures = [row[field].casefold() for field in ("utilization.gpu", "memory.used", "temperature.gpu") if field in row]
    sample = GpuSample(
        index=index,
        uuid=uuid,
        name=word(row.get("name", "")) or "",
        bus_id=word(row.get("pci.bus_id", "")),
        util_pct=value("utilization.gpu"),
        memory_util_pct=value("utilization.memory"),
        memory_used_bytes=mib("memory.used"),
        memory_total_bytes=mib("memory.total"),
        temperature_c=value("temperature.gpu"),
        memory_temperature_c=value("temperature.memory"),
        power_w=value("power.draw"),
        power_limit_w=value("power.limit"),
        sm_clock_mhz=value("clocks.sm"),
        sm_clock_max_mhz=value("clocks.max.sm"),
        memory_clock_mhz=value("clocks.mem"),
        pstate=word(row.get("pstate", "")),
        throttle=throttle_reasons(row.get("clocks_throttle_reasons.active", "")),
        ecc_uncorrected=None if ecc is None else int(ecc),
        mig={"Enabled": True, "Disabled": False}.get(mig or ""),
        lost=bool(figures) and all(figure in _LOST for figure in figures),
    )
    count = value("count")
    return sample, None if count is None else int(count)


def with_steady(sample: GpuSample, steady: GpuSample | None) -> GpuSample:
    """The sample with what another query told of the same GPU."""
    if steady is None:
        return sample
    return replace(
        sample,
        bus_id=sample.bus_id or steady.bus_id,
        power_limit_w=sample.power_limit_w if sample.power_limit_w is not None else steady.power_limit_w,
        sm_clock_max_mhz=sample.sm_clock_max_mhz if sample.sm_clock_max_mhz is not None else steady.sm_clock_max_mhz,
        mig=sample.mig if sample.mig is not None else steady.mig,
    )


class QueryStream:
    """Turns chunks, cut anywhere, into ticks and troubles. Lines without meaning are dropped."""

    def __init__(self, fields: Sequence[str] = FIELDS) -> None:
        self._fields = tuple(fields)
        self._rest = b""
        self._round: list[GpuSample] = []
        self._count: int | None = None
        self.strange_lines = 0
        """Lines that were neither a row nor a known message."""

    def feed(self, data: bytes) -> list[GpuTick | ToolTrouble]:
        """What the bytes up to here complete."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            self._rest = b""
        found: list[GpuTick | ToolTrouble] = []
        for line in lines:
            self._line(line.decode("utf-8", "replace").strip(), found)
        return found

    def finish(self) -> list[GpuTick | ToolTrouble]:
        """What is left when the stream has ended."""
        found = self.feed(b"\n")
        self._close_round(found)
        return found

    def _line(self, line: str, found: list[GpuTick | ToolTrouble]) -> None:
        if not line:
            return
        parsed = parse_row(line, self._fields)
        if parsed is None:
            trouble = explain(clean(line))
            if trouble is None:
                self.strange_lines += 1
            else:
                found.append(trouble)
            return
        sample, count = parsed
        if self._round and sample.index <= self._round[-1].index:
            self._close_round(found)
        self._round.append(sample)
        self._count = count
        if count is not None and len(self._round) >= count:
            self._close_round(found)

    def _close_round(self, found: list[GpuTick | ToolTrouble]) -> None:
        if self._round:
            complete = self._count is None or len(self._round) >= self._count
            found.append(GpuTick(tuple(self._round), complete))
            self._round = []
