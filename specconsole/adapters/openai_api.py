"""Any other server that speaks the OpenAI API: `/health`, `/v1/models`, `/v1/completions`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specconsole.adapters.server_api import complete_openai
from specconsole.core.launching.effective import Account, Effective, Said, Vocabulary, judge
from specconsole.ports import HttpClient


class OpenaiApi:
    """Nothing is known of it but the common endpoints."""

    engine = "other"
    account_words: tuple[str, ...] = ()
    shallow_health = False

    def probe_costs(self, version: str | None, env: Mapping[str, str]) -> bool:
        return False

    def health_path(self, version: str | None) -> str:
        return "/health"

    async def complete(self, http: HttpClient, host: str, port: int, prompt: str, *, timeout_s: float) -> int:
        return await complete_openai(http, host, port, prompt, timeout_s=timeout_s)

    async def drop_requests(self, http: HttpClient, host: str, port: int) -> str:
        return "no known way to drop requests"

    async def running_requests(self, http: HttpClient, host: str, port: int) -> int | None:
        return None

    async def account(self, http: HttpClient | None, host: str, port: int, said: Said) -> Effective:
        return Effective(settings=dict(said.args), build={"version": said.version} if said.version else {})

    def judge(self, asked: Mapping[str, Any], found: Effective, *, drafts: bool, build: Mapping[str, str]) -> Account:
        return judge(asked, found, Vocabulary((), {}, (), complete=False), drafts=drafts, build=build)

    async def progress(self, http: HttpClient, host: str, port: int) -> tuple[int | None, float | None]:
        return None, None

    def grace_s(self, wanted_s: float, settings: Mapping[str, Any], *, loading: bool) -> float:
        return wanted_s
