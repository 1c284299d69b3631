"""NVIDIA GPUs through `nvidia-smi`: one process that streams, and short ones for what changes seldom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

from specconsole.core.hardware.gpu import GpuFacts, GpuProcess, GpuSample, GpuTick, GpuToolError, ToolTrouble
from specconsole.core.hardware.kernel_log import same_bus
from specconsole.core.hardware.nvidia_lists import (
    APPS_QUERY,
    parse_compute_apps,
    parse_gpu_list,
    parse_mig_table,
    parse_nvlink_status,
    parse_topology,
)
from specconsole.core.hardware.nvidia_query import (
    FIELDS,
    REQUIRED_FIELDS,
    STEADY_FIELDS,
    QueryStream,
    query_argv,
    with_steady,
)
from specconsole.core.hardware.nvidia_trouble import explain
from specconsole.core.hardware.values import clean, word
from specconsole.errors import RefusedError
from specconsole.ports import Completed, Transport

POLL_S = 10
"""How often a host is asked that has no channel left for a stream: a process each time, so seldom."""

_FACTS_SH = r"""
{
echo '#driver'; "$1" --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1
echo '#topology'; "$1" topo -m 2>/dev/null
echo '#nvlink'; "$1" nvlink --status 2>/dev/null
echo '#list'; "$1" -L 2>/dev/null
[ "$2" = mig ] && { echo '#table'; "$1" 2>/dev/null; }
echo '#end'
} </dev/null
"""


class NvidiaProbe:
    """`nvidia-smi` of one host (a `GpuProbe`)."""

    tool = "nvidia-smi"
    note = ""

    def __init__(self, transport: Transport, path: str = "nvidia-smi") -> None:
        self._transport = transport
        self._path = path
        self._fields = FIELDS
        self._steady_fields = STEADY_FIELDS
        self._known: dict[str, GpuSample] = {}
        self._lost: set[str] = set()

    async def ticks(self, every_s: int) -> AsyncGenerator[GpuTick, None]:
        """One `nvidia-smi -l`; started again without a field that the driver refuses, or without a lost GPU."""
        if not self._known:
            await self.snapshot()
        while True:
            trouble: ToolTrouble | None = None
            stream = QueryStream(self._fields)
            argv = query_argv(self._path, every_s=every_s, fields=self._fields, only=self._only())
            try:
                async with self._transport.stream(argv) as output:
                    while data := await output.read():
                        for item in stream.feed(data):
                            if isinstance(item, GpuTick):
                                yield self._remember(item)
                            else:
                                trouble = item
            except RefusedError:
                # The host allows no further session channel (a small MaxSessions).
                yield await self.snapshot()
                await asyncio.sleep(max(POLL_S, every_s))
                continue
            for item in stream.finish():
                trouble = item if isinstance(item, ToolTrouble) else trouble
            self._go_on_or_raise(trouble or ToolTrouble("other", "nvidia-smi ended by itself"))

    async def snapshot(self) -> GpuTick:
        while True:
            fields = (*self._fields, *self._steady_fields)
            stream = QueryStream(fields)
            argv = query_argv(self._path, fields=fields, only=self._only())
            answer = await self._run(argv)
            found = [*stream.feed(answer.stdout), *stream.feed(b"\n"), *stream.feed(answer.stderr), *stream.finish()]
            ticks = [item for item in found if isinstance(item, GpuTick)]
            if ticks:
                return self._remember(ticks[-1])
            troubles = [item for item in found if isinstance(item, ToolTrouble)]
            self._go_on_or_raise(troubles[0] if troubles else _unexplained(answer))

    async def processes(self) -> tuple[GpuProcess, ...]:
        answer = await self._run([self._path, APPS_QUERY, "--format=csv,noheader,nounits"])
        text = answer.stdout.decode("utf-8", "replace")
        if not answer.ok:
            trouble = explain(clean(text.strip() or answer.stderr.decode("utf-8", "replace").strip()))
            if trouble is not None and trouble.kind == "no-devices":
                return ()
            raise GpuToolError(trouble or _unexplained(answer), where=self._transport.host)
        return parse_compute_apps(text)

    async def facts(self) -> GpuFacts:
        await self.snapshot()  # the power limit and MIG mode may have changed
        mig = any(gpu.mig for gpu in self._known.values())
        try:
            answer = await self._transport.run_sh(_FACTS_SH, [self._path, "mig" if mig else ""], timeout_s=60.0)
        except TimeoutError:
            raise GpuToolError(_slow(60.0), where=self._transport.host) from None
        parts = _sections(answer.stdout.decode("utf-8", "replace"))
        _, named = parse_gpu_list(parts.get("list", ""))
        return GpuFacts(
            tool=self.tool,
            driver=word(parts.get("driver", "").strip()),
            topology=parse_topology(parts.get("topology", "")),
            nvlinks=parse_nvlink_status(parts.get("nvlink", "")),
            mig_devices=parse_mig_table(parts.get("table", ""), named),
        )

    async def _run(self, argv: list[str], timeout_s: float = 30.0) -> Completed:
        try:
            return await self._transport.run(argv, timeout_s=timeout_s, max_output_bytes=1024 * 1024)
        except TimeoutError:
            raise GpuToolError(_slow(timeout_s), where=self._transport.host) from None

    def _remember(self, tick: GpuTick) -> GpuTick:
        gpus = tuple(with_steady(gpu, self._known.get(gpu.uuid)) for gpu in tick.gpus)
        self._known |= {gpu.uuid: gpu for gpu in gpus}
        return replace(tick, gpus=gpus)

    def _only(self) -> list[str]:
        """Without a lost GPU nvidia-smi still answers for the others, when it is asked for them by name."""
        return [uuid for uuid in self._known if uuid not in self._lost] if self._lost else []

    def _go_on_or_raise(self, trouble: ToolTrouble) -> None:
        if trouble.kind == "bad-field" and trouble.field not in REQUIRED_FIELDS:
            asked = (*self._fields, *self._steady_fields)
            self._fields = tuple(field for field in self._fields if field != trouble.field)
            self._steady_fields = tuple(field for field in self._steady_fields if field != trouble.field)
            if trouble.field in asked:
                return
        if trouble.kind == "device-lost":
            lost = {uuid for uuid, gpu in self._known.items() if same_bus(gpu.bus_id, trouble.bus_id)} - self._lost
            if lost and len(self._lost) + len(lost) < len(self._known):
                self._lost |= lost
                return
        self._lost.clear()  # a later try sees GPUs that came back
        raise GpuToolError(trouble, where=self._transport.host)


def _slow(timeout_s: float) -> ToolTrouble:
    return ToolTrouble(
        "slow",
        f"nvidia-smi did not answer in {timeout_s:.0f} s",
        "turn persistence mode on; look for Xid lines in dmesg",
    )


def _unexplained(answer: Completed) -> ToolTrouble:
    said = clean((answer.stderr or answer.stdout).decode("utf-8", "replace").strip().split("\n")[0])[:200]
    status = "unknown" if answer.exit_status is None else answer.exit_status
    return ToolTrouble("other", f"nvidia-smi failed (exit status {status}): {said or 'nothing said'}")


def _sections(text: str) -> dict[str, str]:
    parts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            current = parts.setdefault(line[1:], [])
        else:
            current.append(line)
    return {name: "\n".join(lines) for name, lines in parts.items()}
