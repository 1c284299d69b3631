"""The load generator beside httpx and aiohttp on one paced server, in one run: CPU per event and added TTFT.

64 streams x 50 events/s and 256 x 20, started over the first second at the same seeded moments. Prints each client's
CPU per streamed event, the events that it received of those sent, and p50 and p99 of its time to first token: the
server answers the first event at once, so that time is delay of the client's own making (and the server's few
microseconds). aiohttp is no dependency and is measured where it is installed.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CASES = ((64, 50.0), (256, 20.0))
SECONDS = 4.0


def starts(streams: int) -> list[float]:
    """Arrivals over about a second: the same Poisson moments as the load generator's open loop with seed 0."""
    source = random.Random(0)
    moments, at_s = [], 0.0
    for _ in range(streams):
        moments.append(at_s)
        at_s += source.expovariate(streams)
    return moments


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def with_httpx(port: int, streams: int, events: int) -> tuple[int, list[float]]:
    import httpx

    seen, first = 0, []
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(timeout=60, limits=limits, trust_env=False) as client:

        async def one(wait_s: float) -> None:
            nonlocal seen
            await asyncio.sleep(wait_s)
            start_s = time.perf_counter()
            async with client.stream("POST", f"http://127.0.0.1:{port}/v1/completions", json={"n": 1}) as answer:
                got = 0
                async for line in answer.aiter_lines():
                    if line.startswith("data: {"):
                        if got == 0:
                            first.append(time.perf_counter() - start_s)
                        got += 1
                        json.loads(line[6:])
            seen += got - 1

        await asyncio.gather(*[one(wait_s) for wait_s in starts(streams)])
    return seen, first


async def with_aiohttp(port: int, streams: int, events: int) -> tuple[int, list[float]]:
    import aiohttp

    seen, first = 0, []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one(wait_s: float) -> None:
            nonlocal seen
            await asyncio.sleep(wait_s)
            start_s = time.perf_counter()
            async with session.post(f"http://127.0.0.1:{port}/v1/completions", json={"n": 1}) as answer:
                got = 0
                async for line in answer.content:
                    if line.startswith(b"data: {"):
                        if got == 0:
                            first.append(time.perf_counter() - start_s)
                        got += 1
                        json.loads(line[6:])
            seen += got - 1

        await asyncio.gather(*[one(wait_s) for wait_s in starts(streams)])
    return seen, first


def with_loadgen(port: int, streams: int, events: int) -> tuple[int, list[float], float, float]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "requests.jsonl").write_text('{"n": 1}\n')
        plan = {
            "version": 1, "host": "127.0.0.1", "port": port, "api": "completions", "requests": "requests.jsonl",
            "points": [{"rate_per_s": streams, "requests": streams}],
        }  # fmt: skip
        Path(folder, "plan.json").write_text(json.dumps(plan))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "loadgen", "plan.json", "out.jsonl"],
            cwd=folder, env={"PYTHONPATH": str(ROOT / "specconsole")}, check=True,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        lines = [json.loads(line) for line in Path(folder, "out.jsonl").read_text().splitlines()]
    (end,) = [line for line in lines if line["kind"] == "point-end"]
    requests = [line for line in lines if line["kind"] == "request"]
    seen = sum(len(r["events"]) // 2 for r in requests)
    both_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seen, [r["first_event_s"] - r["started_s"] for r in requests], end["cpu_s"], both_s


def measure(name: str, port: int, streams: int, events: int) -> tuple[float, str]:
    if name == "specconsole":
        seen, first, cpu_s, both_s = with_loadgen(port, streams, events)
        extra = f" (with start-up and decoding child {both_s / seen * 1e6:5.1f})"
    else:
        call = with_httpx if name == "httpx" else with_aiohttp
        start_s = time.process_time()
        seen, first = asyncio.run(call(port, streams, events))
        cpu_s, extra = time.process_time() - start_s, ""
    sent = streams * events
    per_event_us = cpu_s / seen * 1e6
    return per_event_us, (
        f"  {name:<12} {per_event_us:6.1f} us/event   received {seen}/{sent}   added TTFT "
        f"p50 {percentile(first, 0.5) * 1e3:6.2f} ms  p99 {percentile(first, 0.99) * 1e3:6.2f} ms{extra}"
    )


def main() -> None:
    names = ["specconsole", "httpx"] + (["aiohttp"] if importlib.util.find_spec("aiohttp") else [])
    for streams, rate in CASES:
        events = int(rate * SECONDS)
        print(f"{streams} streams x {rate:g} events/s, {events} events each")
        cost: dict[str, float] = {}
        for name in names:
            server = subprocess.Popen(
                [sys.executable, str(ROOT / "benchmarks" / "_paced_server.py"), str(rate), str(events)],
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert server.stdout is not None
            try:
                cost[name], text = measure(name, int(server.stdout.readline()), streams, events)
                print(text)
            finally:
                server.kill()
                server.wait()
        for name in names[1:]:
            print(f"  CPU per event: {name} / specconsole = {cost[name] / cost['specconsole']:.1f}")
        if "aiohttp" not in names:
            print("  aiohttp is not installed: not measured")


if __name__ == "__main__":
    main()
