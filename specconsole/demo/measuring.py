"""The demo's measuring: does the draft pay on this machine, and until when?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from specconsole.core.measuring.run_plan import BenchOrder
from specconsole.errors import SpecconsoleError

if TYPE_CHECKING:
    from specconsole.core.measuring.progress import BenchView
    from specconsole.core.measuring.result import Result
    from specconsole.wiring import Console

Say = Callable[[str, str], None]
WORKLOAD = "demo"
REPEATS = 3


async def measure(console: Console, launch_id: str, say: Say) -> Result:
    """One server at 1, 2 and 4 requests at once, three times each; interrupted, the run is ended too."""
    prepared, host = await console.benches.prepare_launch(launch_id, BenchOrder(WORKLOAD, repeats=REPEATS))
    name = prepared.target.name
    plan = prepared.plan
    say("measure", f"{name}: {plan.requests} requests in {len(plan.points)} points, from a process of its own")
    bench_id = await console.benches.start(prepared, host)
    loads = len({point.concurrency for point in plan.points})
    told = 0

    def hear(view: BenchView) -> None:
        nonlocal told
        rounds = view.points_done // loads
        if view.bench_id == bench_id and rounds > told:
            told = rounds
            accept = "" if view.accept_length is None else f", accept length {view.accept_length:.2f}"
            say("measure", f"{name}: repeat {rounds}/{REPEATS}, {view.requests_done}/{view.requests} requests{accept}")

    try:
        result = await console.benches.wait(bench_id, hear)
    except asyncio.CancelledError:
        await asyncio.shield(console.benches.cancel(bench_id))
        raise
    failed = sum(point.metrics.failed for point in result.points)
    if result.ended != "done" or failed or len(result.points) != len(plan.points):
        raise SpecconsoleError(
            f"measured {len(result.points)} of {len(plan.points)} points, {failed} requests failed ({result.ended})",
            where=name,
        )
    return result


def show(plain: Result, draft: Result, say: Say) -> None:
    """The table, the economics, and what the marks mean."""
    from specconsole.cli.result_text import table_text

    for line in table_text([plain, draft], "output_tok_s", plain.result_id):
        say("results", line)
