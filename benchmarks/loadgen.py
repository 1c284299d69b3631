"""The load generator beside other clients on one paced server, in one run: CPU per event and added TTFT.

64 streams x 50 events/s and 256 x 20, started over the first second at Poisson moments. Prints each client's CPU per
streamed event, the events that it received of those sent, and p50 and p99 of its time to first token: the server
answers the first event at once, so that time is delay of the client's own making (and of the server's turn). Ours and
the two libraries do `ROUNDS` rounds; the whole programs of `_foreign_clients.py` do one, where they are installed.
aiohttp is taken from where vLLM is installed when this environment lacks it.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _foreign_clients import ForeignClient, installed_clients, write_tokenizer

ROOT = Path(__file__).resolve().parents[1]
CASES = ((64, 50.0), (256, 20.0))
SECONDS = 4.0
ROUNDS = 3
BODY = {"model": "m", "prompt": "one", "stream": True, "stream_options": {"include_usage": True}}
Figures = tuple[int, list[float], float, str]
"""Events, times to first token in seconds, CPU seconds, a remark."""


def starts(streams: int, seed: int) -> list[float]:
    """Arrivals over about a second."""
    source = random.Random(seed)
    moments, at_s = [], 0.0
    for _ in range(streams):
        moments.append(at_s)
        at_s += source.expovariate(streams)
    return moments


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def with_httpx(port: int, streams: int, seed: int) -> tuple[int, list[float]]:
    import httpx

    seen, first = 0, []
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(timeout=60, limits=limits, trust_env=False) as client:

        async def one(wait_s: float) -> None:
            nonlocal seen
            await asyncio.sleep(wait_s)
            start_s = time.perf_counter()
            async with client.stream("POST", f"http://127.0.0.1:{port}/v1/completions", json=BODY) as answer:
                got = 0
                async for line in answer.aiter_lines():
                    if line.startswith("data: {"):
                        if got == 0:
                            first.append(time.perf_counter() - start_s)
                        got += 1
                        json.loads(line[6:])
            seen += got - 1

        await asyncio.gather(*[one(wait_s) for wait_s in starts(streams, seed)])
    return seen, first


async def with_aiohttp(port: int, streams: int, seed: int) -> tuple[int, list[float]]:
    aiohttp: Any = importlib.import_module("aiohttp")
    seen, first = 0, []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one(wait_s: float) -> None:
            nonlocal seen
            await asyncio.sleep(wait_s)
            start_s = time.perf_counter()
            async with session.post(f"http://127.0.0.1:{port}/v1/completions", json=BODY) as answer:
                got = 0
                async for line in answer.content:
                    if line.startswith(b"data: {"):
                        if got == 0:
                            first.append(time.perf_counter() - start_s)
                        got += 1
                        json.loads(line[6:])
            seen += got - 1

        await asyncio.gather(*[one(wait_s) for wait_s in starts(streams, seed)])
    return seen, first


def library_figures(name: str, port: int, streams: int) -> Figures:
    """In this process, which does nothing else."""
    call = with_httpx if name == "httpx" else with_aiohttp
    first: list[float] = []
    seen, cpu_s = 0, 0.0
    for seed in range(ROUNDS):
        start_s = time.process_time()
        got, times = asyncio.run(call(port, streams, seed))
        cpu_s += time.process_time() - start_s
        seen, first = seen + got, first + times
    return seen, first, cpu_s, ""


def with_library(name: str, port: int, streams: int) -> Figures:
    python = sys.executable if importlib.util.find_spec(name) else str(ROOT / ".venv-vllm" / "bin" / "python")
    done = subprocess.run([python, __file__, name, str(port), str(streams)], capture_output=True, text=True, check=True)
    seen, first, cpu_s, remark = json.loads(done.stdout)
    return seen, first, cpu_s, remark


def with_loadgen(port: int, streams: int) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "requests.jsonl").write_text(json.dumps(BODY) + "\n")
        points = [{"rate_per_s": streams, "requests": streams, "seed": seed} for seed in range(ROUNDS)]
        plan = {
            "version": 1, "host": "127.0.0.1", "port": port, "api": "completions", "requests": "requests.jsonl",
            "points": points,
        }  # fmt: skip
        Path(folder, "plan.json").write_text(json.dumps(plan))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "loadgen", "plan.json", "out.jsonl"],
            cwd=folder, env={"PYTHONPATH": str(ROOT / "specconsole")}, check=True,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        lines = [json.loads(line) for line in Path(folder, "out.jsonl").read_text().splitlines()]
    requests = [line for line in lines if line["kind"] == "request"]
    ends = [line for line in lines if line["kind"] == "point-end"]
    seen = sum(len(r["events"]) // 2 for r in requests)
    both_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    first = [r["first_event_s"] - r["started_s"] for r in requests]
    remark = f" (with start-up and the child that decodes {both_s / seen * 1e6:.1f})"
    return seen, first, sum(end["cpu_s"] for end in ends), remark


@contextmanager
def paced_server(rate: float, events: int) -> Iterator[int]:
    server = subprocess.Popen(
        [sys.executable, str(ROOT / "benchmarks" / "_paced_server.py"), str(rate), str(events)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    try:
        yield int(server.stdout.readline())
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def show(name: str, us: float, seen: str, p50_s: float, p99_s: float, remark: str = "") -> None:
    print(
        f"  {name:<13}{us:7.1f} us/event   {seen:<13}  added TTFT p50 {p50_s * 1e3:7.2f} ms  p99 {p99_s * 1e3:7.2f} ms"
        f"{remark}", flush=True,
    )  # fmt: skip


def measure(name: str, streams: int, rate: float, events: int) -> float:
    with paced_server(rate, events) as port:
        seen, first, cpu_s, remark = (
            with_loadgen(port, streams) if name == "specconsole" else with_library(name, port, streams)
        )
    us = cpu_s / seen * 1e6
    show(name, us, f"{seen}/{ROUNDS * streams * events}", percentile(first, 0.5), percentile(first, 0.99), remark)
    return us


def measure_foreign(client: ForeignClient, streams: int, rate: float, events: int) -> float | None:
    seen = []
    for many in (2, events):
        with paced_server(rate, many) as port, tempfile.TemporaryDirectory() as folder:
            try:
                seen.append(client.run(port, streams, many, Path(folder)))
            except (RuntimeError, subprocess.TimeoutExpired, KeyError, ValueError) as error:
                print(f"  {client.name:<13} did not run: {str(error)[:150]}")
                return None
    us = (seen[1].cpu_s - seen[0].cpu_s) / (streams * (events - 2)) * 1e6
    show(client.name, us, "", seen[1].ttft_p50_s, seen[1].ttft_p99_s)
    return us


def main() -> None:
    vllm = ROOT / ".venv-vllm" / "bin" / "python"
    has_aiohttp = importlib.util.find_spec("aiohttp") is not None or vllm.exists()
    with tempfile.TemporaryDirectory() as folder:
        clients = installed_clients(Path(folder))
        if clients:
            write_tokenizer(Path(folder))
        for streams, rate in CASES:
            events = int(rate * SECONDS)
            print(f"{streams} streams x {rate:g} events/s, {events} events each")
            cost: dict[str, float] = {}
            for name in ("specconsole", "httpx", *(("aiohttp",) if has_aiohttp else ())):
                cost[name] = measure(name, streams, rate, events)
            for client in clients:
                us = measure_foreign(client, streams, rate, events)
                if us is not None:
                    cost[client.name] = us
            print("  CPU per event against ours: " + ", ".join(
                f"{name} {us / cost['specconsole']:.1f}" for name, us in cost.items() if name != "specconsole"
            ))  # fmt: skip
    missing = {"vllm bench", "sglang bench", "guidellm"} - {client.name for client in clients}
    if missing:
        print(f"not installed and not measured: {', '.join(sorted(missing))}")


if __name__ == "__main__":
    if len(sys.argv) == 4:
        sys.stdout.write(json.dumps(library_figures(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
    else:
        main()
