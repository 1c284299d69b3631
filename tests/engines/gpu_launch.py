"""The product starts a real SGLang with EAGLE-3 on a GPU, watches it, proves that it answers, stops it; what it said
is held against the clock, the server's own endpoints and nvidia-smi, none of which it knows of.

    python tests/engines/gpu_launch.py OUT [--starts 2] [--layers 16] [--hidden 4096] [--python python3] [--cpu]

Needs a GPU host with sglang importable by `--python`. Writes OUT/run.json (the figures), OUT/table.md, and of every
start its log, what the board said over time and nvidia-smi's readings. `--cpu` rehearses it with the stand-ins.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from specconsole.core.launching.lifecycle import ENDED  # noqa: E402 - the path comes first
from specconsole.core.views.launch import LaunchView  # noqa: E402
from specconsole.demo.models import ModelShape  # noqa: E402
from specconsole.services.commands import LaunchOrder  # noqa: E402
from specconsole.wiring import Console, open_supervisor  # noqa: E402
from tests.engines import witness  # noqa: E402
from tests.engines.support.checkpoints import Checkpoints, write_checkpoints  # noqa: E402

QUERY = "index,memory.used,utilization.gpu,power.draw,temperature.gpu"


@dataclass
class Watching:
    """What was seen of one start: by the console (`told`) and by the witnesses."""

    began_s: float
    launch_id: str = ""
    port: int = 0
    phases: list[tuple[float, str]] = field(default_factory=list)
    states: list[tuple[float, str]] = field(default_factory=list)
    etas: list[tuple[float, float, float, float, str]] = field(default_factory=list)
    """(seconds since launch, low, mid, high, basis)."""
    gpu_told: list[tuple[float, float, float]] = field(default_factory=list)
    """(seconds, memory used in MiB, utilisation) as the console showed them."""
    gpu_seen: list[tuple[float, float, float]] = field(default_factory=list)
    """The same by nvidia-smi."""
    health_seen: list[tuple[float, str]] = field(default_factory=list)
    accepts_told: list[tuple[float, float]] = field(default_factory=list)

    def now_s(self) -> float:
        return round(time.monotonic() - self.began_s, 3)


class Witnesses(threading.Thread):
    """nvidia-smi and /health (which says only 503 or 200 in time here) twice a second, without product code."""

    def __init__(self, seen: Watching, *, gpu: bool) -> None:
        super().__init__(daemon=True)
        self._seen = seen
        self._gpu = gpu
        self._over = threading.Event()
        self._ready = False

    def run(self) -> None:
        while not self._over.wait(0.5):
            if self._gpu and (found := smi()) is not None:
                self._seen.gpu_seen.append((self._seen.now_s(), *found))
            if self._seen.port and not self._ready:
                status = health(self._seen.port)
                if not self._seen.health_seen or self._seen.health_seen[-1][1] != status:
                    self._seen.health_seen.append((self._seen.now_s(), status))
                self._ready = status == "200"

    def end(self) -> None:
        self._over.set()
        self.join(10)


def smi() -> tuple[float, float] | None:
    """(memory used in MiB, utilisation in %) of the first GPU; None without nvidia-smi."""
    try:
        done = subprocess.run(
            ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    parts = [part.strip() for part in done.stdout.splitlines()[0].split(",")]
    return float(parts[1]), float(parts[2])


def health(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=3) as answer:
            return str(answer.status)
    except urllib.error.HTTPError as error:
        return str(error.code)
    except OSError as error:
        return "refused" if isinstance(getattr(error, "reason", None), ConnectionRefusedError) else "no answer"


def write_profile(folder: Path, models: Checkpoints, options: argparse.Namespace) -> Path:
    command = [options.python, "-m", "sglang.launch_server"]
    lines = [
        'engine = "sglang"',
        f"model = {json.dumps(str(models.target))}",
        f"draft_model = {json.dumps(str(models.eagle3))}",
        "grace_s = 30",
    ]
    args: dict[str, Any] = {
        "served_model_name": "tiny", "enable_metrics": True, "attention_backend": "triton",
        "speculative_algorithm": "EAGLE3", "speculative_num_steps": 3, "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": 4, "cuda_graph_max_bs": 16, "mem_fraction_static": 0.6,
    }  # fmt: skip
    if options.cpu:
        command = [options.python, str(REPOSITORY / "tests/engines/support/sglang_on_cpu.py")]
        for name in ("attention_backend", "cuda_graph_max_bs", "mem_fraction_static"):
            del args[name]
    lines += [f"command = {json.dumps(command)}", "[args]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in args.items()]
    env = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONPATH": options.server_path}
    lines += ["[env]", *(f"{name} = {json.dumps(value)}" for name, value in env.items() if value)]
    path = folder / "gpu-eagle3.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


async def one_start(console: Console, profile: Path, number: int, options: argparse.Namespace) -> dict[str, Any]:
    seen = Watching(time.monotonic())
    idle = smi()
    witnesses = Witnesses(seen, gpu=not options.cpu)
    witnesses.start()
    try:
        seen.launch_id = await console.commands.launch(LaunchOrder(str(profile), "local"), say)
        spec = console.supervisor.find(seen.launch_id).record.spec
        assert spec is not None
        assert spec.port is not None
        seen.port = spec.port
        view = await console.supervisor.wait(
            seen.launch_id, lambda view: note(console, seen, view, until="answers"), timeout_s=options.limit_s
        )
        say(f"start {number}: {view.state} after {seen.now_s()} s, proven {view.answered_after_s} s")
        if view.state != "answers":
            return {"number": number, "failed": str(view.reading.failure if view.reading else view.health_detail),
                    **asdict(seen)}  # fmt: skip
        await console.supervisor.watches[seen.launch_id].account.settled()
        loaded = smi()
        figures = await traffic(console, seen)
        running = smi()
        stream = await asyncio.to_thread(witness.open_stream, seen.port, 3000) if number > 1 else None
        stopped_s = time.monotonic()
        event = await console.commands.stop_telling(seen.launch_id, lambda event: say(event.text))
        took_s = time.monotonic() - stopped_s
        if stream is not None:
            stream.close()
        after = smi()
        for _ in range(20):
            if after is None or idle is None or after[0] <= idle[0] + 64:
                break
            await asyncio.sleep(0.5)
            after = smi()
        record = console.supervisor.find(seen.launch_id).record
        session = record.process.pid if record.process is not None else None
        account = console.board.launches[seen.launch_id].account
        return {
            "number": number,
            "answered_after_s": view.answered_after_s,
            "stop_s": round(took_s, 2),
            "stop": asdict(event),
            "stream_open": number > 1,
            "left_over": witness.left_of(seen.launch_id, session),
            "memory_mib": {"before": idle, "answers": loaded, "after traffic": running, "after stop": after},
            "timeline": [asdict(entry) for entry in view.reading.timeline] if view.reading else [],
            "account": asdict(account) if account is not None else None,
            **figures,
            **asdict(seen),
        }
    finally:
        witnesses.end()


def note(console: Console, seen: Watching, view: LaunchView, *, until: str) -> bool:
    at_s = seen.now_s()
    if not seen.states or seen.states[-1][1] != view.state:
        seen.states.append((at_s, view.state))
        say(f"{view.state}")
    reading = view.reading
    if reading is not None:
        phase = f"{reading.phase}:{reading.part}" if reading.part else reading.phase
        if not seen.phases or seen.phases[-1][1] != phase:
            seen.phases.append((at_s, phase))
            say(phase)
        eta = reading.ready_eta_s
        if eta is not None and view.state != "answers":
            seen.etas.append((at_s, round(eta.low, 2), round(eta.mid, 2), round(eta.high, 2), eta.basis))
        accept = reading.metrics.accept_length if reading.metrics is not None else None
        if accept is not None and (not seen.accepts_told or seen.accepts_told[-1][1] != accept):
            seen.accepts_told.append((at_s, accept))
    host = console.board.hosts.get("local")
    if host is not None and host.gpus:
        gpu = host.gpus[0]
        told = ((gpu.memory_used_bytes or 0) / 2**20, float(gpu.util_pct or 0))
        if not seen.gpu_told or seen.gpu_told[-1][1:] != told:
            seen.gpu_told.append((at_s, *told))
    return view.state == until or view.state in ENDED


async def traffic(console: Console, seen: Watching) -> dict[str, Any]:
    """Eight long requests, four at a time; the console's accept length against the server's counters."""
    before = await asyncio.to_thread(witness.counters, seen.port)
    shown = len(seen.accepts_told)

    def work() -> int:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(4) as pool:
            return sum(pool.map(lambda _: witness.complete(seen.port, 400), range(8)))

    asked = asyncio.ensure_future(asyncio.to_thread(work))

    def until(view: LaunchView) -> bool:
        note(console, seen, view, until="")
        return asked.done()

    await console.supervisor.wait(seen.launch_id, until, timeout_s=300)
    after = await asyncio.to_thread(witness.counters, seen.port)
    told = [value for _, value in seen.accepts_told[shown:]]
    return {
        "tokens": await asked,
        "accept_length_told": round(statistics.fmean(told), 3) if told else None,
        "accept_length_counters": round(witness.accept_length("sglang", before, after), 3),
    }


def table(runs: list[dict[str, Any]]) -> str:
    """The figures for people."""
    head = (
        "start", "answers after (console)", "/health first 200 (witness)", "ETA error", "accept length, ours",
        "by its counters", "GPU memory before / answers / after stop (nvidia-smi, MiB)",
        "largest gap to nvidia-smi while steady", "stop took", "left over",
    )  # fmt: skip
    rows = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for run in runs:
        if "failed" in run:
            rows.append(f"| {run['number']} | failed: {run['failed'][:200]} |" + " |" * 8)
            continue
        real = run["answered_after_s"] or run["states"][-1][0]
        errors = [abs(mid - (real - at)) for at, _, mid, _, _ in run["etas"] if at < real]
        held = [low <= real - at <= high for at, low, _, high, _ in run["etas"] if at < real]
        eta = f"{statistics.median(errors):.1f} s, in range {sum(held) / len(held):.0%}" if errors else "first start"
        witness_s = next((at for at, status in run["health_seen"] if status == "200"), None)
        memory = run["memory_mib"]
        moments = [memory[key] for key in ("before", "answers", "after stop")]
        mib = " / ".join("-" if one is None else f"{one[0]:.0f}" for one in moments)
        gap = steady_gap(run["gpu_told"], run["gpu_seen"])
        stream = " (a stream open)" if run["stream_open"] else ""
        cells = (
            str(run["number"]),
            f"{real:.1f} s",
            "-" if witness_s is None else f"{witness_s:.1f} s",
            eta,
            str(run["accept_length_told"]),
            str(run["accept_length_counters"]),
            mib,
            "-" if gap is None else f"{gap:.0f} MiB",
            f"{run['stop_s']:.1f} s{stream}",
            str(run["left_over"] or "nothing"),
        )
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def steady_gap(told: list[Any], seen: list[Any]) -> float | None:
    """Largest difference of the console's memory figure to nvidia-smi's, in MiB, at moments around which nvidia-smi's
    had stood still for 5 s; None without any. Both are lists of (seconds since launch, MiB, utilisation)."""
    gaps = []
    for at, used, _ in seen:
        near = [other for when, other, _ in seen if at - 4 <= when <= at + 1]
        shown = [other for when, other, _ in told if when <= at]
        if told and at <= told[-1][0] and shown and len(near) > 4 and max(near) - min(near) < 1:
            gaps.append(abs(shown[-1] - used))
    return max(gaps) if gaps else None


def say(text: str) -> None:
    sys.stdout.write(f"[{time.monotonic() - BEGAN_S:7.2f}] {text}\n")
    sys.stdout.flush()


BEGAN_S = time.monotonic()


async def watch_starts(options: argparse.Namespace, out: Path) -> int:
    shape = ModelShape(
        hidden=options.hidden, layers=options.layers, head_size=min(128, options.hidden // 2), sharpness=0.4
    )
    models = write_checkpoints(Path(options.models), shape=shape, shards=64)
    say(f"models: {sum(f.stat().st_size for f in models.target.iterdir()) / 1e9:.2f} GB")
    profile = write_profile(out, models, options)
    runs: list[dict[str, Any]] = []
    for number in range(1, options.starts + 1):
        # Each start is seen by a console of its own: the second knows of the first only by the store.
        async with open_supervisor(("local",), window=True) as console:
            await console.supervisor.discovered("local")
            runs.append(await one_start(console, profile, number, options))
            for path in Path.home().glob(f".local/state/specconsole/launches/*/{runs[-1]['launch_id']}/server.log"):
                (out / f"start-{number}.log").write_bytes(path.read_bytes())
        (out / "run.json").write_text(json.dumps(runs, default=str))
        (out / "table.md").write_text(table(runs))
    say("\n" + table(runs))
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--starts", type=int, default=2)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--models", default="/tmp/specconsole-gpu-models")
    parser.add_argument("--python", default="python3")
    parser.add_argument("--server-path", default=os.environ.get("SERVER_PATH", ""), help="PYTHONPATH of the server")
    parser.add_argument("--limit-s", type=float, default=240)
    parser.add_argument("--cpu", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    chosen = parse()
    folder = Path(chosen.out)
    folder.mkdir(parents=True, exist_ok=True)
    raise SystemExit(asyncio.run(watch_starts(chosen, folder)))
