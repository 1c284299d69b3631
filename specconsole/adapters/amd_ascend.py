"""Tools that can't stream (amd-smi, rocm-smi, npu-smi): asked again and again, the slower the tool the seldomer.

Written after recorded outputs; never run by us on such hardware, and `note` says so on the screen.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator

from specconsole.core.hardware import amd, ascend
from specconsole.core.hardware.gpu import GpuFacts, GpuProcess, GpuTick, GpuToolError, ToolTrouble
from specconsole.core.hardware.values import clean
from specconsole.ports import Transport

_SHARE = 20
"""A tool may run for one twentieth of the time: amd-smi and rocm-smi are Python programs of up to a second each."""
_LEAST_S = 5.0


class _PolledProbe:
    tool = ""
    note = ""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self._path = path
        self._took_s = 0.0

    async def ticks(self, every_s: int) -> AsyncGenerator[GpuTick, None]:
        while True:
            yield await self.snapshot()
            await asyncio.sleep(max(_LEAST_S, float(every_s), _SHARE * self._took_s))

    async def snapshot(self) -> GpuTick:
        raise NotImplementedError

    async def processes(self) -> tuple[GpuProcess, ...]:
        raise NotImplementedError

    async def facts(self) -> GpuFacts:
        return GpuFacts(tool=self.tool, notes=(self.note,))

    async def _output(self, *args: str) -> str:
        began = time.monotonic()
        try:
            answer = await self._transport.run([self._path, *args], timeout_s=60.0)
        except TimeoutError:
            raise self._error("slow", f"{self.tool} did not answer in 60 s") from None
        self._took_s = time.monotonic() - began
        text = answer.stdout.decode("utf-8", "replace")
        if not answer.ok and not text.strip():
            said = clean(answer.stderr.decode("utf-8", "replace").strip().split("\n")[0])[:200]
            raise self._error("other", f"{self.tool} failed: {said or 'nothing said'}")
        return text

    def _error(self, kind: str, text: str) -> GpuToolError:
        return GpuToolError(ToolTrouble("slow" if kind == "slow" else "other", text), where=self._transport.host)

    def _tick(self, tick: GpuTick | None) -> GpuTick:
        if tick is None:
            raise self._error("other", f"{self.tool} answered something that is not understood")
        return tick


class AmdSmiProbe(_PolledProbe):
    """`amd-smi` of ROCm 6 and 7."""

    tool = "amd-smi"
    note = amd.NOTE

    def __init__(self, transport: Transport, path: str = "amd-smi") -> None:
        super().__init__(transport, path)
        self._static: str | None = None
        self._uuids: dict[int, str] = {}

    async def snapshot(self) -> GpuTick:
        if self._static is None:
            self._static = await self._output(*amd.STATIC_ARGS)
        tick = self._tick(amd.parse_amd_smi(await self._output(*amd.METRIC_ARGS), self._static))
        self._uuids = {gpu.index: gpu.uuid for gpu in tick.gpus}
        return tick

    async def processes(self) -> tuple[GpuProcess, ...]:
        return amd.parse_amd_processes(await self._output(*amd.PROCESS_ARGS), self._uuids)


class RocmSmiProbe(_PolledProbe):
    """`rocm-smi`, where there is no amd-smi. Which GPU a process uses it can't tell, so it lists none."""

    tool = "rocm-smi"
    note = amd.NOTE + "; rocm-smi does not tell which GPU a process uses"

    async def snapshot(self) -> GpuTick:
        return self._tick(amd.parse_rocm_smi(await self._output(*amd.ROCM_ARGS)))

    async def processes(self) -> tuple[GpuProcess, ...]:
        return ()


class NpuSmiProbe(_PolledProbe):
    """`npu-smi info` of Ascend hosts: figures and processes come in one answer."""

    tool = "npu-smi"
    note = ascend.NOTE

    async def snapshot(self) -> GpuTick:
        return self._tick(ascend.parse_npu_smi(await self._output("info")))

    async def processes(self) -> tuple[GpuProcess, ...]:
        return ascend.parse_npu_processes(await self._output("info"))
