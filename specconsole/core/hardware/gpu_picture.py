"""All that is known of a host's GPUs, kept up tick by tick and drawn as frozen views. Pure: time is an argument."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from specconsole.core.hardware.gpu import GpuFacts, GpuProcess, GpuSample, GpuTick
from specconsole.core.hardware.gpu_owners import Claim, KnownLaunch, Owners, age_text, claim, hidden_note
from specconsole.core.hardware.kernel_log import GpuFault, same_bus
from specconsole.core.hardware.series import HISTORY_S, History
from specconsole.core.views.host import GpuProcessView, GpuView, ThrottleSpan

_MOST_SPANS = 40
_MOST_FAULTS = 5


@dataclass(slots=True)
class _Track:
    """One GPU over time."""

    sample: GpuSample
    present: bool = True
    util: History = field(default_factory=History)
    memory_util: History = field(default_factory=History)
    memory: History = field(default_factory=History)
    power: History = field(default_factory=History)
    temperature: History = field(default_factory=History)
    spans: list[ThrottleSpan] = field(default_factory=list)

    def add(self, sample: GpuSample, at_s: float) -> None:
        self.sample, self.present = sample, True
        ratio = None
        if sample.memory_used_bytes is not None and sample.memory_total_bytes:
            ratio = sample.memory_used_bytes / sample.memory_total_bytes
        for history, value in (
            (self.util, sample.util_pct),
            (self.memory_util, sample.memory_util_pct),
            (self.memory, ratio),
            (self.power, sample.power_w),
            (self.temperature, sample.temperature_c),
        ):
            history.add(at_s, value)
        self._throttled(tuple(sample.throttle or ()), at_s)

    def _throttled(self, reasons: tuple[str, ...], at_s: float) -> None:
        open_span = self.spans[-1] if self.spans and self.spans[-1].end_s is None else None
        if open_span is not None and open_span.reasons != reasons:
            self.spans[-1] = replace(open_span, end_s=at_s)
            open_span = None
        if reasons and open_span is None:
            self.spans.append(ThrottleSpan(reasons, at_s, None))
        self.spans = [span for span in self.spans if span.end_s is None or span.end_s > at_s - HISTORY_S][-_MOST_SPANS:]


class GpuPicture:
    """Feeds: ticks, processes, facts, kernel messages. Draws: `views`."""

    def __init__(self) -> None:
        self._tracks: dict[str, _Track] = {}
        self._processes: tuple[GpuProcess, ...] = ()
        self._owners: Owners | None = None
        self._facts = GpuFacts()
        self._faults: tuple[GpuFault, ...] = ()
        self.as_of_s: float | None = None
        """When the last figures came."""

    @property
    def any_mig(self) -> bool:
        return any(track.sample.mig for track in self._tracks.values())

    def saw_tick(self, tick: GpuTick, at_s: float) -> None:
        self.as_of_s = at_s
        for sample in tick.gpus:
            track = self._tracks.get(sample.uuid)
            if track is None:
                track = self._tracks[sample.uuid] = _Track(sample)
            track.add(sample, at_s)
        listed = {sample.uuid for sample in tick.gpus}
        for uuid, track in self._tracks.items():
            track.present = uuid in listed

    def memory_used(self) -> dict[str, int | None]:
        """Bytes in use by GPU, as of the last tick, for the GPUs that it listed."""
        return {uuid: track.sample.memory_used_bytes for uuid, track in self._tracks.items() if track.present}

    def saw_lost(self, bus_id: str) -> None:
        """The tool says that the GPU at this address does not answer."""
        for track in self._tracks.values():
            if same_bus(track.sample.bus_id, bus_id):
                track.present = False

    def saw_processes(self, processes: Sequence[GpuProcess], owners: Owners) -> None:
        self._processes, self._owners = tuple(processes), owners

    def saw_facts(self, facts: GpuFacts) -> None:
        self._facts = facts

    def saw_faults(self, faults: Sequence[GpuFault]) -> None:
        self._faults = tuple(faults)

    def claims(self, launches: Collection[KnownLaunch]) -> Mapping[str, tuple[Claim, ...]]:
        """Processes by GPU with whose they are, the largest first."""
        owners = self._owners or Owners({})
        found: dict[str, list[Claim]] = {}
        for process in self._processes:
            found.setdefault(self._gpu_of(process.gpu_uuid), []).append(claim(process, owners, launches))
        return {
            uuid: tuple(sorted(claims, key=lambda one: -(one.process.used_bytes or 0)))
            for uuid, claims in found.items()
        }

    def _gpu_of(self, uuid: str) -> str:
        """The GPU that a MIG device is cut from; any other UUID as it is. On a host of one GPU all is its own."""
        if uuid in self._tracks:
            return uuid
        if len(self._tracks) == 1:
            return next(iter(self._tracks))
        index = next((mig.gpu_index for mig in self._facts.mig_devices if mig.uuid == uuid), None)
        return next((own for own, track in self._tracks.items() if track.sample.index == index), uuid)

    def views(
        self, now_s: float, launches: Collection[KnownLaunch] = (), uptime_s: float | None = None
    ) -> tuple[GpuView, ...]:
        """Every GPU that was ever seen, by index; a GPU that is gone is `lost` and keeps its name and history."""
        claims = self.claims(launches)
        tracks = sorted(self._tracks.values(), key=lambda track: track.sample.index)
        return tuple(self._view(track, now_s, claims, uptime_s) for track in tracks)

    def links(self) -> tuple[tuple[str, ...], ...]:
        """The topology matrix of the GPUs alone."""
        topology = self._facts.topology
        if topology is None:
            return ()
        gpus = [number for number, name in enumerate(topology.names) if name.startswith("GPU")]
        return tuple(tuple(topology.links[row][column] for column in gpus) for row in gpus)

    def _view(
        self, track: _Track, now_s: float, claims: Mapping[str, tuple[Claim, ...]], uptime_s: float | None
    ) -> GpuView:
        sample = track.sample
        lost = sample.lost or not track.present
        mine = claims.get(sample.uuid, ())
        hidden = ""
        if self._owners is not None and not lost:
            hidden = hidden_note(sample.memory_used_bytes, [one.process for one in mine], self._owners.in_container)
        shown = GpuSample(sample.index, sample.uuid, sample.name, sample.bus_id) if lost else sample
        return GpuView(
            index=sample.index,
            name=sample.name,
            uuid=sample.uuid,
            util_pct=shown.util_pct,
            memory_util_pct=shown.memory_util_pct,
            memory_used_bytes=shown.memory_used_bytes,
            memory_total_bytes=sample.memory_total_bytes,
            temperature_c=shown.temperature_c,
            power_w=shown.power_w,
            power_limit_w=sample.power_limit_w,
            sm_clock_mhz=shown.sm_clock_mhz,
            memory_clock_mhz=shown.memory_clock_mhz,
            pstate=shown.pstate,
            throttle=tuple(shown.throttle or ()),
            ecc_uncorrected=shown.ecc_uncorrected,
            lost=lost,
            processes=() if lost else tuple(_process_view(one) for one in mine),
            util_history_pct=track.util.values(now_s),
            memory_history_ratio=track.memory.values(now_s),
            memory_util_history_pct=track.memory_util.values(now_s),
            power_history_w=track.power.values(now_s),
            temperature_history_c=track.temperature.values(now_s),
            bus_id=sample.bus_id,
            memory_temperature_c=shown.memory_temperature_c,
            sm_clock_max_mhz=sample.sm_clock_max_mhz,
            throttle_history=tuple(track.spans),
            numa_node=self._numa_node(sample.index),
            nvlink=self._nvlink(sample.index),
            mig=bool(sample.mig),
            mig_devices=self._mig(sample.index),
            hidden=hidden,
            faults=self._faults_of(sample, uptime_s),
            detail=sample.detail,
        )

    def _numa_node(self, index: int) -> str | None:
        topology = self._facts.topology
        name = f"GPU{index}"
        if topology is None or name not in topology.names:
            return None
        return topology.numa_affinity[topology.names.index(name)]

    def _nvlink(self, index: int) -> str:
        for state in self._facts.nvlinks:
            if state.gpu_index == index:
                speed = f", {state.gb_s_each:.1f} GB/s each" if state.gb_s_each is not None else ""
                down = f", {state.inactive} inactive" if state.inactive else ""
                return f"{state.active} NVLinks up{speed}{down}"
        return ""

    def _mig(self, index: int) -> tuple[str, ...]:
        lines = []
        for mig in self._facts.mig_devices:
            if mig.gpu_index == index:
                used, total = mig.memory_used_bytes, mig.memory_total_bytes
                memory = f" {used / 2**30:.1f}/{total / 2**30:.1f} GiB" if used is not None and total else ""
                lines.append(f"{mig.device}: {mig.profile or 'MIG device'}{memory}")
        return tuple(lines)

    def _faults_of(self, sample: GpuSample, uptime_s: float | None) -> tuple[str, ...]:
        mine = [fault for fault in self._faults if same_bus(fault.bus_id, sample.bus_id)][-_MOST_FAULTS:]
        lines = []
        for fault in reversed(mine):
            known = fault.uptime_s is not None and uptime_s is not None
            age = age_text(max(0.0, uptime_s - fault.uptime_s)) if known and uptime_s and fault.uptime_s else None
            lines.append(f"{fault.text}, {age} ago" if age else fault.text)
        return tuple(lines)


def _process_view(one: Claim) -> GpuProcessView:
    owner = one.owner
    return GpuProcessView(
        pid=one.process.pid,
        used_bytes=one.process.used_bytes,
        user=owner.user if owner else None,
        command=(owner.command if owner else None) or one.process.name,
        age_s=owner.age_s if owner else None,
        launch_id=one.launch_id,
        label=one.label,
        start_ticks=owner.start_ticks if owner else None,
    )
