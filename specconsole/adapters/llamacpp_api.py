"""llama.cpp's server over HTTP (b10434-b11549, tools/server)."""

from __future__ import annotations

from specconsole.adapters.server_api import complete_openai, metric
from specconsole.errors import SpecconsoleError
from specconsole.ports import HttpClient


class LlamacppApi:
    """`/health` is 503 while the model loads and 200 after; it costs nothing."""

    engine = "llamacpp"
    probe_costs = False

    def health_path(self, version: str | None) -> str:
        return "/health"

    async def complete(self, http: HttpClient, host: str, port: int, prompt: str, *, timeout_s: float) -> int:
        return await complete_openai(http, host, port, prompt, timeout_s=timeout_s)

    async def drop_requests(self, http: HttpClient, host: str, port: int) -> str:
        # A stream that is open keeps the process after TERM until its client goes; there is no call to end it.
        return "llama.cpp has no way to drop requests"

    async def running_requests(self, http: HttpClient, host: str, port: int) -> int | None:
        try:
            answer = await http.get(host, port, "/metrics", timeout_s=3.0)
        except (SpecconsoleError, TimeoutError):
            return None
        if answer.status != 200:
            return None
        text = answer.body.decode("utf-8", "replace")
        processing = metric(text, "llamacpp:requests_processing")
        deferred = metric(text, "llamacpp:requests_deferred")
        return None if processing is None else int(processing + (deferred or 0))
