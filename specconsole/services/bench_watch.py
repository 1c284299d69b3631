"""Follows one run to its end and makes its result: by whoever looks, as often as needed, always the same.

The run goes on by itself on its host. A link that breaks, or a console that dies, only means that its lines are read
later, here or by another console.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.launching.probe_pattern import probes_of
from specconsole.core.measuring.assemble import assemble
from specconsole.core.measuring.bench_shape import BenchShape, no_longer_needed
from specconsole.core.measuring.log_marks import LIMIT_BYTES, log_marks
from specconsole.core.measuring.progress import BenchView, RunProgress
from specconsole.core.measuring.result import MeasuredPoint, Result
from specconsole.core.reading.probe_series import window_means
from specconsole.errors import SpecconsoleError, TransportError
from specconsole.ports import BenchLauncher, Clock, Transport
from specconsole.services.bench_log import read_range
from specconsole.services.bench_parts import BenchParts
from specconsole.services.bench_start import OUT
from specconsole.services.bench_store import BenchStore
from specconsole.services.follower import Chunk, Follower

_POLL_S = 0.2
_LOOK_S = 1.0
_RETRY_S = 2.0
_GPUS_S = 5.0
Changed = Callable[[BenchView], None]
Measured = Callable[[], Awaitable[None]]
"""Called when a point was added."""


class BenchWatch:
    """One run under our eyes. `run` returns when its result is stored."""

    def __init__(
        self,
        record: LaunchRecord,
        shape: BenchShape,
        transport: Transport,
        launcher: BenchLauncher,
        parts: BenchParts,
        store: BenchStore | None,
        clock: Clock,
        changed: Changed,
        measured: Measured | None = None,
    ) -> None:
        self.record = record
        self.shape = shape
        self._transport = transport
        self.launcher = launcher
        self._parts = parts
        self._store = store
        self._clock = clock
        self._changed = changed
        self._point_added = measured
        self._throttled: set[int] = set()
        """Points during which a GPU was seen held back."""
        self._follower = Follower(transport, f"{record.folder}/{OUT}")
        self._rest = b""
        self._progress = RunProgress(shape.points)
        self._run: dict[str, Any] = {}
        self._end: dict[str, Any] | None = None
        self._lines: dict[int, list[dict[str, Any]]] = {}
        self._measured: dict[int, MeasuredPoint] = {}
        self._skipped: tuple[int, ...] = ()
        self._problem = ""
        self.stopping = False
        self.result: Result = self._result("unfinished")
        self.view = self._view("starting")

    @property
    def bench_id(self) -> str:
        return self.shape.result_id

    async def run(self) -> Result:
        """Until the run is over and read. Trouble with the link is waited out."""
        looked_s = gpus_s = float("-inf")
        over = False
        try:
            while True:
                try:
                    came = await self._read()
                    if over and not came:
                        break
                    now_s = self._clock.monotonic_s()
                    if not over and (self._end is not None or now_s - looked_s >= _LOOK_S):
                        looked_s = now_s
                        over = await self._is_over()
                        if not over and now_s - gpus_s >= _GPUS_S:
                            gpus_s = now_s
                            await self._look_at_gpus()
                    self._problem = ""
                except (TransportError, TimeoutError) as error:
                    self._problem = f"{error or 'no answer in time'}; the run goes on"
                    self._publish()
                    await self._clock.sleep(_RETRY_S)
                    continue
                self._publish()
                if not came and not over:
                    await self._clock.sleep(_POLL_S)
            for index in sorted(self._lines):
                await self._close(index)
            await self._finish()
        finally:
            await self._follower.aclose()
        return self.result

    async def _is_over(self) -> bool:
        record = await self.launcher.observe(self.bench_id)
        if record is None:
            self._problem = "its folder is gone"
            return True
        self.record = record
        return record.alive is False or (record.alive is None and record.exited)

    async def _read(self) -> bool:
        """Takes what is new; whether there was anything."""
        came = False
        while isinstance(piece := await self._follower.poll(), Chunk):
            came = True
            *whole, self._rest = (self._rest + piece.data).split(b"\n")
            for line in whole:
                with suppress(ValueError):
                    raw = json.loads(line)
                    if isinstance(raw, dict):
                        await self._take(raw)
        return came or piece is not None

    async def _take(self, line: dict[str, Any]) -> None:
        self._progress.take(line)
        kind, index = line.get("kind"), line.get("point")
        if kind == "run":
            self._run = line
        elif kind == "end":
            self._end = line
        elif isinstance(index, int) and kind not in ("progress", "skipped"):
            self._lines.setdefault(index, []).append(line)
            last = "snapshot" if self.shape.snapshots else "point-end"
            if kind == last and (kind == "point-end" or line.get("when") == "after"):
                await self._close(index)

    async def _close(self, index: int) -> None:
        """A point is whole, or as whole as it will be: measured, stored, and further repeats judged."""
        lines = self._lines.pop(index, [])
        shape, shape_probes = self.shape.run_shape(), self.shape.probes
        made = await asyncio.to_thread(assemble, [self._run, *lines], shape, self._parts.parse_page)
        if not made.points:
            return
        point = made.points[0]
        finish = next((line for line in lines if line.get("kind") == "point-end"), {})
        window = await self._log_of_window(finish)
        seen = [*await asyncio.to_thread(log_marks, window), *self._throttled_since(index)]
        means = await asyncio.to_thread(window_means, probes_of(shape_probes), window) if shape_probes else {}
        point = replace(point, marks=tuple(dict.fromkeys((*point.marks, *seen))), probes=means)
        self._measured[index] = point
        self.result = self._result("unfinished")
        if self._store is not None:
            requests = [line for line in lines if line.get("kind") == "request"]
            await self._store.put_point(self.result, index, point, requests)
        if self._point_added is not None:
            await self._point_added()
        if self.shape.until_ci_ratio is not None and self._end is None:
            skip = no_longer_needed(self.shape.points, self._measured, self.shape.until_ci_ratio)
            if skip != self._skipped:
                self._skipped = skip
                with suppress(SpecconsoleError, TimeoutError):
                    await self._transport.write_file(f"{self.record.folder}/skip.json", json.dumps(list(skip)).encode())

    async def _log_of_window(self, finish: Mapping[str, Any]) -> bytes:
        """What the server wrote into its log within the window; b"" where it can't be read."""
        path, start, stop = self.shape.log_path, finish.get("log_from"), finish.get("log_to")
        if not path or not isinstance(start, int) or not isinstance(stop, int) or stop <= start:
            return b""
        try:
            return await read_range(self._transport, path, start, min(stop, start + LIMIT_BYTES))
        except (SpecconsoleError, TimeoutError):
            return b""

    async def _look_at_gpus(self) -> None:
        """Throttling shows only while it happens: looked for as long as this console follows the run."""
        index = self._progress.current
        if index is None or not self.shape.conditions.gpu_names:
            return
        moment = await self._parts.look_at_gpus(self._transport)
        if moment.throttled:
            self._throttled.add(index)

    def _throttled_since(self, index: int) -> tuple[str, ...]:
        return ("throttled",) if index in self._throttled else ()

    async def _finish(self) -> None:
        ended = str(self._end.get("reason", "done")) if self._end is not None else "broken-off"
        if self._end is None and self.record.stop is not None:
            ended = "cancelled"
        if self._end is None and self.record.exit_status == 2 and not self._measured:
            ended = "failed"
            self._problem = await self._last_words() or "the load generator could not begin"
        self.result = self._result(ended)
        if self._store is not None:
            await self._store.put_result(self.result)
        self.view = self._view(ended if ended != "server-died" else "failed")
        self._changed(self.view)

    async def _last_words(self) -> str:
        try:
            said = await self._transport.read_file(f"{self.record.folder}/server.log", max_bytes=1024 * 1024)
        except (SpecconsoleError, TimeoutError):
            return ""
        lines = said.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else ""

    def _result(self, ended: str) -> Result:
        conditions = replace(self.shape.conditions, client_host=str(self._run.get("client_host", "")))
        wall_s = self._run.get("wall_s", self.record.spec.requested_at_s if self.record.spec is not None else 0.0)
        return Result(
            result_id=self.shape.result_id,
            name=self.shape.name,
            started_at_s=float(wall_s),
            ended_at_s=None if self._end is None else self._end.get("wall_s"),
            conditions=conditions,
            points=tuple(self._measured[index] for index in sorted(self._measured)),
            ended=ended,
            note=self.shape.note,
            until_ci_ratio=self.shape.until_ci_ratio,
        )

    def _publish(self) -> None:
        state = "stopping" if self.stopping else "measuring" if self._run else "starting"
        view = self._view(state)
        if view != self.view:
            self.view = view
            self._changed(view)

    def _view(self, state: str) -> BenchView:
        done = self._progress
        last = self._measured[max(self._measured)] if self._measured else None
        return BenchView(
            bench_id=self.shape.result_id,
            name=self.shape.name,
            launch_id=self.shape.launch_id,
            host=self._transport.host,
            state=state,
            workload=self.shape.workload,
            load=done.load,
            points_done=len(done.closed),
            points=len(self.shape.points),
            requests_done=done.requests_done,
            requests=sum(point.requests + point.warmup for point in self.shape.points),
            failed=done.failed,
            in_flight=done.in_flight,
            tok_s=done.tok_s,
            accept_length=last.acceptance.accept_length if last is not None else None,
            spent_s=done.at_s,
            eta_s=done.left_s(),
            problem=self._problem,
        )
