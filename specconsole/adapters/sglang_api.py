"""SGLang's server over HTTP (0.4.6-0.5.23, srt/entrypoints/http_server.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specconsole.adapters.server_api import complete_openai, requests_on_page, try_json
from specconsole.core.engines.sglang import effective, quirks
from specconsole.core.launching.effective import Account, Effective, Said, judge
from specconsole.core.measuring.counters import NAMES
from specconsole.errors import SpecconsoleError
from specconsole.ports import HttpClient

_NAMES = NAMES["sglang"]


class SglangApi:
    """`/health` generates a token and takes a second; 503 from HTTP up to the end of the warm-up."""

    engine = "sglang"
    account_words = effective.VOCABULARY.log_words
    shallow_health = False

    def probe_costs(self, version: str | None, env: Mapping[str, str]) -> bool:
        return quirks.health_generates(version, env.get("SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION"))

    def health_path(self, version: str | None) -> str:
        return quirks.health_path(version)

    async def complete(self, http: HttpClient, host: str, port: int, prompt: str, *, timeout_s: float) -> int:
        return await complete_openai(http, host, port, prompt, timeout_s=timeout_s)

    async def drop_requests(self, http: HttpClient, host: str, port: int) -> str:
        # Without this TERM drains without a time limit.
        try:
            answer = await http.post_json(host, port, "/abort_request", {"abort_all": True}, timeout_s=3.0)
        except (SpecconsoleError, TimeoutError) as error:
            return f"requests could not be dropped ({type(error).__name__})"
        return "requests dropped" if answer.status == 200 else f"requests not dropped (HTTP {answer.status})"

    async def running_requests(self, http: HttpClient, host: str, port: int) -> int | None:
        return await requests_on_page(http, host, port, _NAMES)

    async def account(self, http: HttpClient | None, host: str, port: int, said: Said) -> Effective:
        # Goes through the scheduler, and so blocks when that hangs. `/get_server_info` before 0.5.6.
        info = await try_json(http, host, port, "/server_info") or await try_json(http, host, port, "/get_server_info")
        return effective.from_said(said, info if isinstance(info, dict) else None)

    def judge(self, asked: Mapping[str, Any], found: Effective, *, drafts: bool, build: Mapping[str, str]) -> Account:
        return judge(asked, found, effective.VOCABULARY, drafts=drafts, build=build)

    async def progress(self, http: HttpClient, host: str, port: int) -> tuple[int | None, float | None]:
        return None, None

    def grace_s(self, wanted_s: float, settings: Mapping[str, Any], *, loading: bool) -> float:
        return wanted_s
