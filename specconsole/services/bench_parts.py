"""What benchmarks need from outside: built by `wiring`, handed to `services.benches`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from specconsole.core.measuring.counters import MetricSample
from specconsole.core.measuring.gpu_moment import GpuMoment
from specconsole.core.measuring.workload import Prompt, Workload
from specconsole.ports import BenchLauncher, Transport


@dataclass(frozen=True, slots=True)
class BenchParts:
    """See the module."""

    read_workload: Callable[[str], tuple[Workload, list[Prompt]]]
    """Raises NotFoundError, BadInputError with file and line."""
    workload_names: Callable[[], Sequence[str]]
    parse_page: Callable[[str], Sequence[MetricSample]]
    loadgen_zip: Callable[[], bytes]
    """The load generator as one file that any python3 can import from."""
    launcher: Callable[[Transport], BenchLauncher]
    """Of a host's benchmark runs."""
    look_at_gpus: Callable[[Transport], Awaitable[GpuMoment]]
    """Never raises; no names where there is no tool."""
    python: str
    """This console's own interpreter, for runs on this machine."""
