"""`specconsole results rm`: the numbers from the store and the run's folder from its host, after asking."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from specconsole.errors import EXIT_FAILED, EXIT_OK, RefusedError

if TYPE_CHECKING:
    from specconsole.core.measuring.result import Result
    from specconsole.services.bench_folder import RunFolder
    from specconsole.wiring import Console


async def remove_results(console: Console, chosen: Sequence[Result], hosts: Sequence[str], *, yes: bool) -> int:
    """Says what goes and what stays behind; `hosts` are those that may be looked at."""
    folders: dict[str, list[RunFolder]] = {}
    for result in chosen:
        folders[result.result_id] = await console.benches.folders(result.result_id, hosts)
        for one in folders[result.result_id]:
            if one.alive:
                raise RefusedError("it is still being measured", where=one.result_id, try_="end it first (Ctrl-C)")
    for result in chosen:
        places = [f"{one.host}:{one.folder}" for one in folders[result.result_id]]
        where = f" and {', '.join(places)}" if places else ""
        print(f"{result.result_id} ({result.name}, {len(result.points)} points){where}", file=sys.stderr)
        server = result.conditions.host
        if not places and server and server not in hosts and not result.imported_from:
            print(f"  its folder on {server} stays: --host {server} takes it too", file=sys.stderr)
    if not yes:
        if not sys.stdin.isatty():
            raise RefusedError("would remove this for good", where=f"{len(chosen)} results", try_="--yes")
        print("remove for good? [y/N] ", end="", file=sys.stderr, flush=True)
        answer = await asyncio.to_thread(sys.stdin.readline)
        if answer.strip().lower() not in ("y", "yes"):
            print("nothing was removed", file=sys.stderr)
            return EXIT_FAILED
    for result in chosen:
        await console.benches.remove(result.result_id, folders[result.result_id])
    return EXIT_OK
