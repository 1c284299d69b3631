"""Does a launch answer? Asked step by step, and proven only when all of it holds: the listener is a process of this
launch, health says 200, and a request of 16 tokens came back whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specconsole.core.launching.asking import timeout_s
from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.views.launch import HealthAnswer
from specconsole.errors import (
    BadInputError,
    ConnectionRefusedAtHostError,
    ConnectionResetAtHostError,
    SpecconsoleError,
    TransportError,
)
from specconsole.ports import HttpClient, Launcher, ServerApi

Prove = Literal["nothing", "owner", "request"]

_TOKENS = 16
_COMPLETION_TIMEOUT_S = 120.0
"""The first request of a server may compile kernels."""
_AGAIN_TIMEOUT_S = 30.0
"""One that has answered before brings 16 tokens in this time even when it is busy, or it is no server to use."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of one question."""

    health: HealthAnswer
    detail: str = ""
    proven: bool = False


class Answers:
    """Asks one launch."""

    def __init__(self, launcher: Launcher, http: HttpClient, api: ServerApi) -> None:
        self._launcher = launcher
        self._http = http
        self._api = api

    def costs(self, record: LaunchRecord, version: str | None) -> bool:
        """Whether asking makes the server work."""
        spec = record.spec
        return self._api.probe_costs(version, spec.env if spec is not None else {})

    async def ask(self, record: LaunchRecord, *, version: str | None, prove: Prove) -> Asked:
        """One question. `prove`: what follows when health is 200: the port's owner, and a request as well."""
        spec = record.spec
        if spec is None or spec.port is None:
            return Asked("not-asked", "its port is not known")
        host = spec.reach_address
        path = spec.health_path or self._api.health_path(version)
        limit = timeout_s(costs=self.costs(record, version), configured_s=spec.health_timeout_s)
        try:
            answer = await self._http.get(host, spec.port, path, timeout_s=limit)
        except (SpecconsoleError, TimeoutError) as error:
            return _failed(error, f"GET {path}", limit)
        if answer.status == 503:
            return Asked("503", _short(answer.body))
        if answer.status != 200:
            return Asked("http-error", f"GET {path}: HTTP {answer.status}")
        if prove == "nothing":
            return Asked("200")
        return await self._prove(record, host, spec.port, request=prove == "request")

    @property
    def shallow(self) -> bool:
        """Whether health says nothing of the engine behind it."""
        return self._api.shallow_health

    async def progress(self, record: LaunchRecord) -> tuple[int | None, float | None]:
        """(requests that it works on, tokens that it has generated) by its counters; None for what it doesn't say."""
        spec = record.spec
        if spec is None or spec.port is None:
            return None, None
        return await self._api.progress(self._http, spec.reach_address, spec.port)

    async def again(self, record: LaunchRecord) -> Asked:
        """Another request of 16 tokens, of a server that has answered before."""
        spec = record.spec
        if spec is None or spec.port is None:
            return Asked("not-asked", "its port is not known")
        prompt = spec.health_prompt or ""
        try:
            await self._api.complete(self._http, spec.reach_address, spec.port, prompt, timeout_s=_AGAIN_TIMEOUT_S)
        except (SpecconsoleError, TimeoutError) as error:
            failed = _failed(error, "a request", _AGAIN_TIMEOUT_S)
            return Asked(failed.health, f"health is 200, but {failed.detail}")
        return Asked("200", "tokens came back", proven=True)

    async def _prove(self, record: LaunchRecord, host: str, port: int, *, request: bool) -> Asked:
        try:
            ours = await self._launcher.owns_listener(record, port)
        except (TransportError, TimeoutError):
            return Asked("link-down")
        except SpecconsoleError as error:
            return Asked("200", error.what)
        if ours is False:
            return Asked("200", f"port {port} belongs to another process than this launch's")
        if ours is None:
            return Asked("200", f"who holds port {port} can't be seen from this account")
        if not request:
            return Asked("200", "a request came back earlier", proven=True)
        prompt = record.spec.health_prompt if record.spec is not None else None
        try:
            tokens = await self._api.complete(self._http, host, port, prompt or "", timeout_s=_COMPLETION_TIMEOUT_S)
        except BadInputError as error:
            return Asked("200", error.what)
        except (SpecconsoleError, TimeoutError) as error:
            failed = _failed(error, "a request", _COMPLETION_TIMEOUT_S)
            return Asked(failed.health, f"health is 200, but {failed.detail}")
        if tokens < _TOKENS:
            return Asked("200", f"a request came back with {tokens} of {_TOKENS} tokens")
        return Asked("200", f"{tokens} tokens came back", proven=True)


def _failed(error: SpecconsoleError | TimeoutError, what: str, limit_s: float) -> Asked:
    if isinstance(error, TimeoutError):
        return Asked("timeout", f"{what}: no answer within {limit_s:.0f} s")
    if isinstance(error, ConnectionRefusedAtHostError):
        return Asked("refused", error.what)
    if isinstance(error, ConnectionResetAtHostError):
        return Asked("reset", f"{what}: {error.what}")
    if isinstance(error, TransportError):
        return Asked("link-down", error.what)
    return Asked("http-error", error.what)


def _short(body: bytes) -> str:
    text = body[:120].decode("utf-8", "replace")
    return "".join(c if c.isprintable() else " " for c in text).strip()
