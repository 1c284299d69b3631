"""Asking a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from specconsole.core.launching.effective import Account, Effective, Said


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What came back from an HTTP request."""

    status: int
    body: bytes


class HttpClient(Protocol):
    """HTTP to servers of one host, through that host's transport."""

    async def get(self, host: str, port: int, path: str, *, timeout_s: float) -> HttpAnswer:
        """Raises ConnectionRefusedAtHostError, ConnectionResetAtHostError, TimeoutError, TransportError."""

    async def post_json(self, host: str, port: int, path: str, body: object, *, timeout_s: float) -> HttpAnswer:
        """As `get`."""

    def with_key(self, key: str) -> HttpClient:
        """The same client, which sends `key` as a bearer token with every request. Closed with this one."""

    def with_tls(self, ca_pem: str | None) -> HttpClient:
        """A client that speaks HTTPS and checks names and certificates, by `ca_pem` instead of the system's authorities
        where it is given. Closed by itself. Raises BadInputError for a text that holds no certificate."""

    async def aclose(self) -> None: ...


class ServerApi(Protocol):
    """How one engine is asked. The same for every launch of it; what varies comes in as arguments."""

    engine: str
    account_words: tuple[str, ...]
    """Lines of the log with one of these go into `Said.lines`."""

    def health_path(self, version: str | None) -> str:
        """The endpoint that tells least expensively whether it answers."""

    def probe_costs(self, version: str | None, env: Mapping[str, str]) -> bool:
        """True where asking for health makes the server work (SGLang generates a token)."""

    async def complete(self, http: HttpClient, host: str, port: int, prompt: str, *, timeout_s: float) -> int:
        """Asks for exactly 16 tokens and returns how many came back whole. Raises as `HttpClient`, and BadInputError
        when the answer is no completion."""

    async def drop_requests(self, http: HttpClient, host: str, port: int) -> str:
        """Asks the server to drop what it works on; one line that says what came of it."""

    @property
    def shallow_health(self) -> bool:
        """True where health is 200 although the engine behind it may stand still (vLLM)."""

    async def progress(self, http: HttpClient, host: str, port: int) -> tuple[int | None, float | None]:
        """(requests that it works on, tokens generated since its start); None for what it does not say."""

    def grace_s(self, wanted_s: float, settings: Mapping[str, Any], *, loading: bool) -> float:
        """How long TERM may take before KILL: less than `wanted_s` where waiting longer only waits for nothing.

        `loading`: it is on its way up and has not answered yet."""

    async def running_requests(self, http: HttpClient, host: str, port: int) -> int | None:
        """Requests that it works on now; None when it doesn't say."""

    async def account(self, http: HttpClient | None, host: str, port: int, said: Said) -> Effective:
        """How it runs by its own account: its log, and what its endpoints say where `http` may be asked. Never raises
        for an endpoint that is not there or does not answer. Secrets are masked."""

    def judge(self, asked: Mapping[str, Any], found: Effective, *, drafts: bool, build: Mapping[str, str]) -> Account:
        """What became of what was asked."""
