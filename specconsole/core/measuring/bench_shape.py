"""What is written down about a run before it starts; it travels in the run's folder, so any console can finish it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from specconsole.core.measuring.assemble import RunShape
from specconsole.core.measuring.point import Limits
from specconsole.core.measuring.result import Conditions, MeasuredPoint
from specconsole.core.measuring.run_plan import PlannedPoint
from specconsole.core.measuring.statistics import FIRST_LOOK, narrow_enough


@dataclass(frozen=True, slots=True)
class BenchShape:
    """One run as it was asked for."""

    result_id: str
    name: str
    """The profile's name, or the URL."""
    launch_id: str
    """Of the server; "" when it is nobody's launch."""
    workload: str
    points: tuple[PlannedPoint, ...]
    conditions: Conditions
    limits: Limits = field(default_factory=Limits)
    until_ci_ratio: float | None = None
    snapshots: bool = False
    """Whether a metrics page is read before and after each point."""
    note: str = ""
    budget_s: float | None = None
    log_path: str = ""
    """The server's log on the host that the run is on; "" when it is elsewhere or not known."""
    probes: Mapping[str, str] = field(default_factory=dict)
    """Numbers to read from that log, by name (`launching.probe_pattern`)."""
    server_host: str = ""
    """Where the server runs; the run itself may be elsewhere (through the tunnel)."""

    def to_json(self) -> dict[str, Any]:
        """JSON values only."""
        return asdict(self)

    def run_shape(self) -> RunShape:
        return RunShape(self.result_id, self.name, self.launch_id, self.conditions, self.limits, self.note)


def no_longer_needed(
    planned: Sequence[PlannedPoint], measured: Mapping[int, MeasuredPoint], target_ratio: float
) -> tuple[int, ...]:
    """Indices of the repeats that are left at loads whose output throughput is known closely enough.

    The interval is corrected for having looked after each repeat (`statistics.confidence_at_look`).
    """
    found: list[int] = []
    for load in dict.fromkeys((point.concurrency, point.rate_per_s) for point in planned):
        indices = [n for n, point in enumerate(planned) if (point.concurrency, point.rate_per_s) == load]
        values = [v for n in indices if n in measured and (v := measured[n].metrics.output_tok_s) is not None]
        if narrow_enough(values, target_ratio, least=FIRST_LOOK):
            found += [n for n in indices if n not in measured]
    return tuple(sorted(found))
