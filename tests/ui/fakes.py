"""A scripted board and commands for the window's tests: what the services would say, without any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from specconsole.core.launching.effective import Account, Effective, SettingReport, Speculation
from specconsole.core.reading.model import (
    Advice,
    EtaRange,
    Failure,
    Metrics,
    Progress,
    RankReading,
    Reading,
    ReadingWarning,
    ServerFacts,
    TimelineEntry,
)
from specconsole.core.views.host import GpuView, HostView
from specconsole.core.views.launch import LaunchView
from specconsole.core.views.result import ResultRow, ResultsView
from specconsole.errors import SpecconsoleError
from specconsole.services.board import Board
from specconsole.services.commands import (
    AttachOrder,
    FoundServer,
    LaunchOrder,
    LineSource,
    ProfileSummary,
    StopPlan,
)
from specconsole.services.form_desk import FormCommands
from specconsole.services.history_commands import HistoryCommands
from specconsole.services.holder_commands import HolderCommands
from specconsole.services.measuring_commands import MeasuringCommands
from specconsole.ui.formatters import safe

NOW_WALL_S = 1_795_961_731.0
NOW_MONO_S = 5_000.0


class BytesLines:
    """A LineSource over bytes in memory, or a file's."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = data
        self.generation = 0
        self.marks: tuple[tuple[int, str], ...] = ()
        self._starts: list[int] = []
        self._indexed = 0
        self._index()

    def _index(self) -> None:
        if not self._starts and self.data:
            self._starts.append(0)
        place = self.data.find(b"\n", self._indexed)
        while place >= 0:
            if place + 1 < len(self.data):
                self._starts.append(place + 1)
            self._indexed = place + 1
            place = self.data.find(b"\n", self._indexed)

    def append(self, data: bytes) -> None:
        was_complete = not self.data or self.data.endswith(b"\n")
        before = len(self.data)
        self.data += data
        if was_complete and data:
            self._starts.append(before)
            self._indexed = before
        self._index()

    def replace(self, data: bytes) -> None:
        """As after a truncation on the host."""
        self.data, self._starts, self._indexed = data, [], 0
        self.generation += 1
        self._index()

    @property
    def line_count(self) -> int:
        return len(self._starts)

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    def lines(self, start: int, stop: int) -> list[str]:
        found = []
        for number in range(max(0, start), min(stop, len(self._starts))):
            end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self.data)
            raw = self.data[self._starts[number] : end].rstrip(b"\n")
            raw = raw.rstrip(b"\r").rsplit(b"\r", 1)[-1]
            found.append(safe(raw.decode("utf-8", "replace")))
        return found

    def mark_lines(self) -> tuple[tuple[int, str], ...]:
        return self.marks

    def blocks(self, start: int) -> Iterator[tuple[int, bytes]]:
        number, starts, data = start, list(self._starts), self.data
        while number < len(starts):
            stop = number
            while stop < len(starts) and starts[stop] - starts[number] < 1 << 20:
                stop += 1
            end = starts[stop] if stop < len(starts) else len(data)
            yield number, data[starts[number] : end]
            number = stop


@dataclass
class FakeCommands:
    """Records what was asked; answers as scripted."""

    read_only: bool = False
    read_only_hosts: tuple[str, ...] = ()
    measuring: MeasuringCommands | None = None
    history: HistoryCommands | None = None
    form: FormCommands | None = None
    holders: HolderCommands | None = None
    sources: dict[str, LineSource] = field(default_factory=dict)
    cannot: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    errors: dict[str, SpecconsoleError] = field(default_factory=dict)
    plan: StopPlan | None = None
    found: tuple[FoundServer, ...] = ()
    profile_list: tuple[ProfileSummary, ...] = (
        ProfileSummary("baseline", "sglang", "Qwen3-32B, no draft", {"tp_size": 8, "mem_fraction_static": 0.88}),
        ProfileSummary("eagle3-topk1", "sglang", "Qwen3-32B + EAGLE-3", {"speculative_num_steps": 3}, host="gpu-b"),
        ProfileSummary("broken", "vllm", "", problem="profiles/broken.toml, line 3: not TOML"),
    )

    def can(self, what: str) -> str:
        return self.cannot.get(what, "")

    def why_no_change(self, host: str) -> str:
        if self.read_only:
            return "this console is read-only"
        return f"{host} is read-only (hosts.toml)" if host in self.read_only_hosts else ""

    def line_source(self, launch_id: str) -> LineSource | None:
        return self.sources.get(launch_id)

    async def profiles(self) -> Sequence[ProfileSummary]:
        return self.profile_list

    async def known_hosts(self) -> Sequence[str]:
        return ("gpu-c", "gpu-a")

    async def add_host(self, name: str) -> None:
        self._call("add_host", name)

    async def remove_host(self, name: str) -> None:
        self._call("remove_host", name)

    async def reconnect(self, name: str) -> None:
        self._call("reconnect", name)

    async def trust_key(self, host: str, fingerprint: str) -> None:
        self._call("trust_key", (host, fingerprint))

    async def answer(self, question_id: str, text: str | None) -> None:
        self._call("answer", (question_id, text))

    async def found_servers(self, host: str) -> Sequence[FoundServer]:
        return self.found

    async def launch(self, order: LaunchOrder) -> str:
        self._call("launch", order)
        return "new"

    def agree_to_key_argument(self, profile: str) -> None:
        self._call("agree_to_key_argument", profile)
        self.errors.pop("launch", None)

    async def relaunch(self, launch_id: str, overrides: Mapping[str, Any]) -> str:
        self._call("relaunch", (launch_id, dict(overrides)))
        return "again"

    async def stop_plan(self, launch_id: str) -> StopPlan:
        return self.plan or StopPlan(launch_id, "ada@desk", True, ("pid 812 (ada): python -m sglang",), 0, 0)

    async def stop(self, launch_id: str, progress: Any) -> None:
        progress("TERM sent")
        self._call("stop", launch_id)

    async def attach(self, order: AttachOrder) -> str:
        self._call("attach", order)
        return "adopted"

    async def forget(self, launch_id: str) -> None:
        self._call("forget", launch_id)

    async def collect_evidence(self, launch_id: str, progress: Any) -> Path:
        self._call("collect_evidence", launch_id)
        return Path("evidence") / launch_id

    def _call(self, name: str, value: Any) -> None:
        self.calls.append((name, value))
        if name in self.errors:
            raise self.errors[name]


def entry(phase: Any, line_no: int, seconds: float | None, part: Any = None) -> TimelineEntry:
    return TimelineEntry(phase, part, float(line_no), seconds, line_no)


def reading(phase: Any = "weights", **changes: Any) -> Reading:
    base = Reading(
        engine="sglang", phase=phase, part="target" if phase == "weights" else None, progress=None, ready_eta_s=None,
        failure=None, warnings=(), metrics=None, server=ServerFacts(), timeline=(entry(phase, 1, 20.0),), suspect=None,
        ranks=(), starts=1, basis="whole", lines=100, bytes=10_000,
    )  # fmt: skip
    return replace(base, **changes)


def gpu(index: int, util: float | None = 97.0, used_gib: float = 91.0, **changes: Any) -> GpuView:
    values: dict[str, Any] = {
        "index": index, "name": "NVIDIA RTX PRO 6000", "util_pct": util, "memory_used_bytes": int(used_gib * 2**30),
        "memory_total_bytes": 96 * 2**30, "temperature_c": 71.0 - index, "power_w": 480.0, "power_limit_w": 600.0,
    }  # fmt: skip
    return GpuView(**(values | changes))


def hosts() -> list[HostView]:
    return [
        HostView("gpu-a", "up", as_of_s=NOW_MONO_S, gpus=tuple(gpu(n, 97.0 - n) for n in range(8)), cpu_pct=12.0,
                 cpu_count=128, disk_read_bytes_s=2.1e9, disk_name="nvme0n1",
                 memory_used_bytes=301 * 2**30, memory_total_bytes=1511 * 2**30),
        HostView("gpu-b", "key-unknown", detail="SHA256:xWq0b6T1oB6J2n1bqk8Ry7y5B3aQ5dU1m8nV0c4TtWk"),
        HostView("local", "up", as_of_s=NOW_MONO_S, gpu_note="no GPU tool on this host", cpu_pct=4.0,
                 memory_used_bytes=6 * 2**30, memory_total_bytes=24 * 2**30),
    ]  # fmt: skip


def loading() -> LaunchView:
    ranks = tuple(RankReading(f"TP{n}", "weights", 41 + n, 1.0) for n in range(8))
    return LaunchView(
        "L1", "eagle3-topk1", "gpu-a", "sglang", 30000, "loading", started_at_s=NOW_WALL_S - 45, owner="ada@desk",
        health="refused", as_of_s=NOW_MONO_S, history_note="last: 8:30",
        command="python -m sglang.launch_server --model-path Qwen3-32B --tp-size 8 --speculative-num-steps 3",
        reading=reading(
            "weights",
            progress=Progress(22, 64, "shard", 3.1, EtaRange(12, 14, 17, "bar")),
            ready_eta_s=EtaRange(420, 480, 540, "bar+history:n=7"),
            timeline=(entry("starting", 1, 12.0), entry("distributed", 8, 9.0), entry("weights", 12, 24.0, "target")),
            ranks=ranks,
            warnings=(ReadingWarning("setting-overridden", 5, "Max running requests is reset to 48"),
                      ReadingWarning("deprecated-flag", 6, "'--cuda-graph-max-bs' is deprecated")),
        ),
    )  # fmt: skip


def account() -> Account:
    found = Effective(speculation=Speculation(False, source="resolved arguments"), attention_backend="triton",
                      cuda_graphs=True, context=40_960, kv_tokens=513_024, running_cap=48,
                      build={"version": "0.5.6", "torch": "2.9.1", "cuda": "12.8"})  # fmt: skip
    return Account(found, (SettingReport("max_running_requests", 256, 48, "overridden"),
                           SettingReport("chunked_prefill_size", None, 8192, "defaulted")))  # fmt: skip


def answering() -> LaunchView:
    return LaunchView(
        "L2", "baseline", "gpu-a", "sglang", 30001, "answers", started_at_s=NOW_WALL_S - 7200, owner="ada@desk",
        health="200", answered_after_s=512.0, as_of_s=NOW_MONO_S,
        command="python -m sglang.launch_server --model-path Qwen3-32B --tp-size 8", account=account(),
        reading=reading("serving", metrics=Metrics(2.86, 773.0, 12, 3, 0.41),
                        timeline=(entry("starting", 1, 12.0), entry("weights", 10, 300.0, "target"),
                                  entry("kv-cache", 30, 4.0), entry("graph-capture", 40, 90.0, "target"),
                                  entry("ready", 60, 100.0), entry("serving", 70, 6000.0))),
    )  # fmt: skip


OOM_LINE = (
    "[2026-11-29 14:05:11 TP3] Scheduler hit an exception: torch.OutOfMemoryError: CUDA out of memory. Tried to "
    "allocate 2.38 GiB. GPU 3 has a total capacity of 94.97 GiB of which 1.06 GiB is free."
)


def failed() -> LaunchView:
    failure = Failure(
        "gpu-oom", 12, OOM_LINE, "graph-capture", "target", "TP3",
        "[2026-11-29 14:05:12] Received sigquit from a child process. It usually means the child failed.",
        Advice("Graph capture needed 2.4 GiB more than was left. Leave it 3 GiB: lower mem_fraction_static by 0.03.",
               {"mem_fraction_static": 0.85}),
    )  # fmt: skip
    return LaunchView(
        "L3", "tree-16", "gpu-a", "sglang", 30002, "failed", started_at_s=NOW_WALL_S - 9000, owner="ada@desk",
        exit_status=1, as_of_s=NOW_MONO_S,
        reading=reading("failed", failure=failure,
                        timeline=(entry("starting", 1, 12.0), entry("weights", 4, 200.0, "target"),
                                  entry("graph-capture", 8, 31.0, "target"), entry("failed", 12, None))),
    )  # fmt: skip


def stalled() -> LaunchView:
    ranks = (*(RankReading(f"TP{n}", "graph-capture", 60 + n, 700.0) for n in range(3)),
             RankReading("TP3", "weights", 33, 760.0))  # fmt: skip
    return LaunchView(
        "L4", "hang-nccl", "gpu-a", "sglang", 30003, "stalled", started_at_s=NOW_WALL_S - 9500, owner="ada@desk",
        as_of_s=NOW_MONO_S, health="refused",
        reading=reading("graph-capture", silent_s=721.0, stalled=True, ranks=ranks,
                        stall_reason="silent for 12 min where 7 starts before took at most 95 s; GPUs at 100 %, "
                                     "no memory moves",
                        timeline=(entry("starting", 1, 12.0), entry("graph-capture", 8, 700.0, "target"))),
    )  # fmt: skip


def stopped() -> LaunchView:
    return LaunchView("L5", "probe-aqmedai", "gpu-a", "sglang", 30004, "stopped", started_at_s=NOW_WALL_S - 20_000,
                      exit_status=0, owner="ada@desk", as_of_s=NOW_MONO_S, reading=reading("stopped"))  # fmt: skip


def results() -> ResultsView:
    levels = (1, 4, 16, 32)
    return ResultsView(
        "chat-512", levels, 1,
        (ResultRow("baseline", ((1, 93.0), (4, 291.0), (16, 640.0), (32, 773.0)), step_ms=10.8, launch_id="L2"),
         ResultRow("eagle3", ((1, 96.0), (4, 240.0), (16, 330.0), (32, 354.0)), ((1, 1), (4, -1), (16, -1), (32, -1)),
                   2.86, 29.8, "2.8 · C<2")),
    )  # fmt: skip


LOG_HEAD = """\
[2026-11-29 14:02:20] server_args=ServerArgs(model_path='Qwen3-32B', tp_size=8, mem_fraction_static=0.88)
'--cuda-graph-max-bs' is deprecated and will be removed in a future release.
[2026-11-29 14:02:21] Using default HuggingFace chat template with detected content format: string
[2026-11-29 14:02:31 TP0] Init torch distributed begin.
[2026-11-29 14:02:31 TP4] Init torch distributed begin.
[2026-11-29 14:02:33 TP0] WARNING: Fail to set RLIMIT_NOFILE: current limit exceeds maximum limit
[2026-11-29 14:02:36 TP4] Using triton_attn as multimodal attention backend.
[2026-11-29 14:02:36 TP0] Load weight begin. avail mem=94.10 GB
Loading safetensors checkpoint shards:   0% Completed | 0/64 [00:00<?, ?it/s]\r\
Loading safetensors checkpoint shards:  34% Completed | 22/64 [00:07<00:14,  3.10it/s]
[2026-11-29 14:02:44 TP3] Traceback (most recent call last):
  File "/srv/sglang/python/sglang/srt/managers/scheduler.py", line 2713, in run_scheduler_process
"""


def log_bytes(lines: int = 240) -> bytes:
    body = "".join(
        f"[2026-11-29 14:{3 + n // 60:02d}:{n % 60:02d} TP{n % 8}] Capture cuda graph begin. "
        f"bs={n} avail mem=12.{n % 90:02d} GB\n"
        for n in range(lines)
    )
    return (LOG_HEAD + OOM_LINE + "\n" + body).encode()


def fake_world() -> tuple[Board, FakeCommands]:
    board, commands = Board(), FakeCommands()
    for host in hosts():
        board.publish_host(host)
    for view in (loading(), answering(), failed(), stopped()):
        board.publish_launch(view)
        commands.sources[view.launch_id] = BytesLines(log_bytes())
    return board, commands
