"""What happens around a measurement stands with it: the log of its window, others' requests, a cache left full."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from specconsole.core.launching.lifecycle import ENDED
from specconsole.core.measuring.run_plan import BenchOrder
from specconsole.demo.models import ModelFiles
from specconsole.services.commands import LaunchOrder
from specconsole.wiring import open_supervisor
from tests.cli.console import write_profile
from tests.real.test_bench_llama import workload
from tests.support.llama import LlamaServer

pytestmark = [pytest.mark.real, pytest.mark.timeout(150)]
CHATTY = Path(__file__).parents[1] / "support" / "chatty_server.py"
DECODE = "[2026-11-29 14:28:19] Decode batch, #running-req: 1, accept len: 2.50, cuda graph: {}, #queue-req: 0"
LINES = [
    DECODE.format("True"),
    DECODE.format("False"),
    "Try DeepGEMM JIT Compiling for <gemm> N=128 K=64 num_groups=1 with all Ms.",
    "KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: 40",
]


@pytest.mark.parametrize(
    ("lines", "marks"),
    [
        (LINES, {"compiled-inside", "no-graph", "retractions"}),
        pytest.param(LINES[:1], set[str](), marks=pytest.mark.faults),
    ],
)
async def test_lines_of_the_window_become_marks(
    llama_models: ModelFiles, tmp_path: Path, lines: list[str], marks: set[str]
) -> None:
    said = tmp_path / "lines.json"
    said.write_text(json.dumps(lines))
    profile = write_profile(
        tmp_path, "chatty", [sys.executable, str(CHATTY), str(said)], engine="llamacpp", grace_s=5,
        model=str(llama_models.target),
    )  # fmt: skip
    async with open_supervisor(("local",)) as console:
        launch_id = await console.commands.launch(LaunchOrder(str(profile), "local"))
        try:
            await console.supervisor.wait(launch_id, lambda v: v.state == "answers" or v.state in ENDED, timeout_s=60)
            order = BenchOrder(workload(tmp_path, concurrency=[1], output_tokens=200))
            prepared, host = await console.benches.prepare_launch(launch_id, order)
            result = await console.benches.wait(await console.benches.start(prepared, host))
            assert console.benches.store is not None
            requests = (await console.benches.store.requests(result))[0]
            log = Path(console.board.launches[launch_id].log_path or "").read_bytes()
        finally:
            await console.commands.stop(launch_id, lambda _: None)
    (point,) = result.points
    assert marks <= set(point.all_marks)
    assert not (set(point.all_marks) - marks) & {"compiled-inside", "no-graph", "retractions", "other-requests"}
    # Each request knows which bytes of the log were written while it was out.
    assert [r["log_from"] <= r["log_to"] <= len(log) for r in requests] == [True] * len(requests)
    assert max(r["log_to"] for r in requests) > min(r["log_from"] for r in requests)


async def test_others_requests_are_noticed(llama: LlamaServer, tmp_path: Path) -> None:
    """The witness sends them itself."""
    async with open_supervisor(()) as console:
        order = BenchOrder(workload(tmp_path, concurrency=[1], output_tokens=150))
        prepared = await console.benches.prepare_url(llama.base_url, "local", order)
        alone = await console.benches.wait(await console.benches.start(prepared, "local"))
        measuring = asyncio.create_task(console.benches.wait(await console.benches.start(prepared, "local")))
        sent = 0
        while not measuring.done():
            answer = await asyncio.to_thread(llama.complete, "somebody else", 60)
            sent += int(answer["timings"]["predicted_n"])
        disturbed = await measuring
    assert sent > 60
    assert "other-requests" not in alone.points[0].all_marks
    assert "other-requests" in disturbed.points[0].all_marks


class _NoFlush(BaseHTTPRequestHandler):
    """An SGLang that runs requests and will not empty its cache, as far as a benchmark sees it."""

    protocol_version = "HTTP/1.1"
    flush_status = 400
    asked: list[str]

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        known = {"/v1/models": {"data": [{"id": "m", "owned_by": "sglang"}]}}
        found = known.get(self.path)
        self._answer(404 if found is None else 200, json.dumps(found or {}).encode())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.asked.append(self.path)
        if self.path == "/flush_cache":
            self._answer(self.flush_status, b"")
            return
        meta = {"prompt_tokens": 5, "completion_tokens": 0, "cached_tokens": 0}
        events = [{"text": "w" * n, "meta_info": {**meta, "completion_tokens": n}} for n in (1, 2, 3)]
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self._answer(200, text.encode(), "text/event-stream")


@contextmanager
def sglang_like(flush_status: int) -> Iterator[tuple[int, list[str]]]:
    asked: list[str] = []
    handler = type("Handler", (_NoFlush,), {"flush_status": flush_status, "asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], asked
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("status", "marked"), [(400, True), (200, False)])
async def test_a_cache_that_was_not_emptied_is_marked(tmp_path: Path, status: int, marked: bool) -> None:
    with sglang_like(status) as (port, asked):
        async with open_supervisor(()) as console:
            order = BenchOrder(workload(tmp_path, concurrency=[1], output_tokens=3))
            prepared = await console.benches.prepare_url(f"http://127.0.0.1:{port}", "local", order)
            result = await console.benches.wait(await console.benches.start(prepared, "local"))
    assert prepared.target.engine == "sglang"
    assert asked[0] == "/flush_cache", "it is asked before anything is sent"
    assert asked.count("/flush_cache") == 1
    assert result.conditions.cache == "flushed"
    (point,) = result.points
    assert point.metrics.failed == 0
    assert ("not-flushed" in point.all_marks) is marked
