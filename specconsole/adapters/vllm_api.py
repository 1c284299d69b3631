"""vLLM's server over HTTP (0.10-0.33)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specconsole.adapters.server_api import complete_openai, metric, requests_on_page, try_json, try_text
from specconsole.core.engines.vllm import effective, quirks
from specconsole.core.launching.effective import Account, Effective, Said, judge
from specconsole.core.measuring.counters import NAMES
from specconsole.ports import HttpClient

_NAMES = NAMES["vllm"]


class VllmApi:
    """Refused for the whole start; `/health` is 200 without generating, also when the engine hangs."""

    engine = "vllm"
    account_words = effective.VOCABULARY.log_words
    shallow_health = True

    def probe_costs(self, version: str | None, env: Mapping[str, str]) -> bool:
        return False

    def health_path(self, version: str | None) -> str:
        return "/health"

    async def complete(self, http: HttpClient, host: str, port: int, prompt: str, *, timeout_s: float) -> int:
        return await complete_openai(http, host, port, prompt, timeout_s=timeout_s)

    async def drop_requests(self, http: HttpClient, host: str, port: int) -> str:
        # /abort_requests exists only with VLLM_SERVER_DEV_MODE=1 (entrypoints/serve); TERM aborts by default.
        return "vLLM drops its requests at TERM"

    async def running_requests(self, http: HttpClient, host: str, port: int) -> int | None:
        return await requests_on_page(http, host, port, _NAMES)

    async def account(self, http: HttpClient | None, host: str, port: int, said: Said) -> Effective:
        version = await try_json(http, host, port, "/version")
        models = await try_json(http, host, port, "/v1/models")
        page = await try_text(http, host, port, "/metrics")
        try:
            length = models["data"][0]["max_model_len"]
        except (KeyError, IndexError, TypeError):
            length = None
        # The counters are there only where a drafter was built, and the page only with statistics on.
        known = page is not None and "vllm:" in page
        return effective.from_said(
            said,
            version=version.get("version") if isinstance(version, dict) else None,
            model_len=length if isinstance(length, int) else None,
            spec_counters_there=metric(page or "", _NAMES.drafts) is not None if known else None,
        )

    def judge(self, asked: Mapping[str, Any], found: Effective, *, drafts: bool, build: Mapping[str, str]) -> Account:
        return judge(asked, found, effective.VOCABULARY, drafts=drafts, build=build)

    async def progress(self, http: HttpClient, host: str, port: int) -> tuple[int | None, float | None]:
        page = await try_text(http, host, port, "/metrics")
        running = metric(page or "", _NAMES.running)
        return None if running is None else int(running), metric(page or "", _NAMES.generated)

    def grace_s(self, wanted_s: float, settings: Mapping[str, Any], *, loading: bool) -> float:
        return quirks.grace_s(wanted_s, settings, loading=loading)
