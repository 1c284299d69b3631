"""What a window may ask about benchmarks: a part of `services.commands.Commands`, and its implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from specconsole.core.measuring.run_plan import BenchOrder
from specconsole.core.measuring.table_view import seconds_text
from specconsole.services.bench_log import LogPart
from specconsole.services.bench_start import Prepared
from specconsole.services.benches import Benches


class MeasuringCommands(Protocol):
    """Every coroutine raises SpecconsoleError when it did not do what it says."""

    def workloads(self) -> Sequence[str]:
        """Names of those that there are."""

    async def budget(self, launch_id: str, order: BenchOrder) -> Sequence[str]:
        """What a run would take, a line each, without starting it."""

    async def start(self, launch_id: str, order: BenchOrder) -> str:
        """Starts a run; returns its id. How far it is stands on the board."""

    async def cancel(self, bench_id: str) -> str:
        """Ends a run, keeps what was measured; one line that says what there is."""

    def running(self) -> Sequence[tuple[str, str]]:
        """(id, one line) of the runs that are under way."""

    async def pin(self, result_id: str | None) -> None:
        """Compares with this result from now on; None: with the newest plain one."""

    async def hide(self, result_ids: frozenset[str]) -> None:
        """These rows are out of sight from now on, in every window; empty: none is."""

    async def note(self, result_id: str, text: str) -> None: ...

    async def log_part(self, launch_id: str, start: int, stop: int) -> LogPart:
        """What a launch's log said between two sizes of it."""

    async def requests(self, result_id: str) -> Mapping[int, Sequence[Mapping[str, Any]]]:
        """The request lines of a result, by index of the point."""


class BenchesDesk:
    """`MeasuringCommands` over `Benches`."""

    def __init__(self, benches: Benches) -> None:
        self._benches = benches

    def workloads(self) -> Sequence[str]:
        return self._benches.workload_names()

    async def budget(self, launch_id: str, order: BenchOrder) -> Sequence[str]:
        prepared, host = await self._benches.prepare_launch(launch_id, order)
        return budget_lines(prepared, host)

    async def start(self, launch_id: str, order: BenchOrder) -> str:
        prepared, host = await self._benches.prepare_launch(launch_id, order)
        return await self._benches.start(prepared, host)

    async def cancel(self, bench_id: str) -> str:
        result = await self._benches.cancel(bench_id)
        return f"{result.name}: {len(result.points)} points are kept"

    def running(self) -> Sequence[tuple[str, str]]:
        from specconsole.core.measuring.table_view import progress_text

        return [(view.bench_id, progress_text(view)) for view in self._benches.views if not view.over]

    async def pin(self, result_id: str | None) -> None:
        await self._benches.pin(result_id)
        await self._benches.publish()

    async def hide(self, result_ids: frozenset[str]) -> None:
        await self._benches.hide(result_ids)
        await self._benches.publish()

    async def log_part(self, launch_id: str, start: int, stop: int) -> LogPart:
        return await self._benches.log_part(launch_id, start, stop)

    async def note(self, result_id: str, text: str) -> None:
        await self._benches.note(result_id, text)

    async def requests(self, result_id: str) -> Mapping[int, Sequence[Mapping[str, Any]]]:
        return await self._benches.requests(result_id)


def budget_lines(prepared: Prepared, host: str) -> list[str]:
    """The time budget and what to know, before it starts."""
    plan = prepared.plan
    loads = ", ".join(
        f"C={p.concurrency}" if p.concurrency is not None else f"{p.rate_per_s:g}/s"
        for p in plan.points
        if p.repeat == 0
    )
    repeats = max((p.repeat for p in plan.points), default=0) + 1
    took = "time not known before the first point" if prepared.budget_s is None else seconds_text(prepared.budget_s)
    return [
        f"{prepared.target.name} on {host}: workload {plan.workload.name} at {loads}, {repeats}x",
        f"{plan.requests} requests, at most {plan.output_tokens:,} tokens; {took}",
        *(f"note: {note}" for note in prepared.notes),
    ]
