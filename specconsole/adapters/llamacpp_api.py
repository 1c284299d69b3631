"""llama.cpp's server over HTTP (b10434-b11549, tools/server)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specconsole.adapters.server_api import complete_openai, requests_on_page, try_json
from specconsole.core.engines.llamacpp import effective
from specconsole.core.launching.effective import Account, Effective, Said, judge
from specconsole.core.measuring.counters import NAMES
from specconsole.ports import HttpClient

_NAMES = NAMES["llamacpp"]


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
        return await requests_on_page(http, host, port, _NAMES)

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

    def grace_s(self, wanted_s: float, settings: Mapping[str, Any], *, loading: bool) -> float:
        return wanted_s
