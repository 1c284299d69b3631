"""llama.cpp's server over HTTP (b10434-b11549, tools/server)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specconsole.adapters.server_api import complete_openai, metric, try_json
from specconsole.core.engines.llamacpp import effective
from specconsole.core.launching.effective import Account, Effective, Said, judge
from specconsole.errors import SpecconsoleError
from specconsole.ports import HttpClient


class LlamacppApi:
    """`/health` is 503 while the model loads and 200 after; it costs nothing."""

    engine = "llamacpp"
    account_words = effective.VOCABULARY.log_words
    shallow_health = False

    def probe_costs(self, version: str | None, env: Mapping[str, str]) -> bool:
        return False

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

    async def account(self, http: HttpClient | None, host: str, port: int, said: Said) -> Effective:
        props = await try_json(http, host, port, "/props")
        slots = await try_json(http, host, port, "/slots")
        return effective.from_said(
            said,
            props if isinstance(props, dict) else None,
            slots if isinstance(slots, list) and all(isinstance(slot, dict) for slot in slots) else None,
        )

    def judge(self, asked: Mapping[str, Any], found: Effective, *, drafts: bool, build: Mapping[str, str]) -> Account:
        return judge(asked, found, effective.VOCABULARY, drafts=drafts, build=build)

    async def progress(self, http: HttpClient, host: str, port: int) -> tuple[int | None, float | None]:
        return None, None

    def grace_s(self, wanted_s: float, settings: Mapping[str, Any]) -> float:
        return wanted_s
