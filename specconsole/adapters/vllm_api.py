"""vLLM's server over HTTP (0.10-0.33)."""

from __future__ import annotations

from specconsole.adapters.server_api import complete_openai, metric
from specconsole.errors import SpecconsoleError
from specconsole.ports import HttpClient


class VllmApi:
    """Refused for the whole start; `/health` is 200 without generating, also when the engine hangs."""

    engine = "vllm"
    probe_costs = False

    def health_path(self, version: str | None) -> str:
        return "/health"

    async def complete(self, http: HttpClient, host: str, port: int, prompt: str, *, timeout_s: float) -> int:
        return await complete_openai(http, host, port, prompt, timeout_s=timeout_s)

    async def drop_requests(self, http: HttpClient, host: str, port: int) -> str:
        # /abort_requests exists only with VLLM_SERVER_DEV_MODE=1 (entrypoints/serve); TERM aborts by default.
        return "vLLM drops its requests at TERM"

    async def running_requests(self, http: HttpClient, host: str, port: int) -> int | None:
        try:
            answer = await http.get(host, port, "/metrics", timeout_s=3.0)
        except (SpecconsoleError, TimeoutError):
            return None
        if answer.status != 200:
            return None
        text = answer.body.decode("utf-8", "replace")
        running = metric(text, "vllm:num_requests_running")
        waiting = metric(text, "vllm:num_requests_waiting")
        return None if running is None else int(running + (waiting or 0))
