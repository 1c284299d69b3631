"""The server that a benchmark is about: a launch, or any OpenAI-compatible server by its URL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from specconsole.core.launching.effective import Account
from specconsole.core.launching.server_key import server_key
from specconsole.core.measuring.result import Conditions
from specconsole.core.views.launch import LaunchView
from specconsole.errors import BadInputError, NotFoundError, RefusedError, SpecconsoleError
from specconsole.ports import HttpClient
from specconsole.services.launch import LaunchWatch

ASK_TIMEOUT_S = 15.0
_OWNERS = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llamacpp"}
"""`owned_by` of /v1/models: each of the three names itself there."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to send, and what is known of who answers."""

    name: str
    address: str
    port: int
    engine: str
    launch_id: str = ""
    key: str = field(default="", repr=False)
    """Bearer token; "" without one."""
    account: Account | None = None
    version: str | None = None
    command: str = ""
    model: str | None = None
    draft_model: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    tls: bool = False
    """Whether it speaks HTTPS."""
    ca_pem: str | None = None
    """The authorities that its certificate is checked by; None: the system's of where the run is."""
    log_path: str = ""
    """On its host; "" when unknown."""
    probes: Mapping[str, str] = field(default_factory=dict)
    """Numbers that its profile has read from its log."""
    environment: str | None = None
    """The server's own Python environment, whose interpreter may serve."""

    def conditions(self) -> Conditions:
        """As far as the server alone decides them."""
        found = self.account.effective if self.account is not None else None
        speculation = found.speculation if found is not None else None
        build = dict(found.build) if found is not None else {}
        return Conditions(
            engine=self.engine,
            version=self.version or build.get("version"),
            build=build,
            model=self.model,
            draft_model=self.draft_model,
            settings=dict(found.settings) if found is not None else {},
            command=self.command,
            num_steps=speculation.num_steps if speculation is not None else None,
            speculative=speculation.on if speculation is not None else None,
            dp_size=(found.dp_size or 1) if found is not None else 1,
            running_cap=found.running_cap if found is not None else None,
            simulated=(speculation.simulated if speculation is not None else "") or _dial(self.env),
        )


def _dial(env: Mapping[str, str]) -> str:
    """SGLang's switch that makes acceptance up (`SGLANG_SIMULATE_ACC_LEN`, environ.py 0.5.4 on; `SIMULATE_ACC_LEN`)."""
    for name in ("SGLANG_SIMULATE_ACC_LEN", "SIMULATE_ACC_LEN"):
        if env.get(name) not in (None, "", "-1", "0"):
            return f"{name}={env[name]}"
    return ""


def target_of_launch(watch: LaunchWatch, view: LaunchView, secrets: Mapping[str, str]) -> Target:
    """Raises RefusedError when it does not answer."""
    spec = watch.record.spec
    if spec is None or spec.port is None:
        raise NotFoundError("where it answers is not known", where=view.launch_id)
    if view.state != "answers":
        raise RefusedError(f"it does not answer ({view.state})", where=view.name, try_="launch --wait")
    reading = watch.reading
    return Target(
        name=spec.profile,
        address=spec.reach_address,
        port=spec.port,
        engine=spec.engine,
        launch_id=spec.launch_id,
        key=server_key(secrets, spec.settings),
        account=view.account,
        version=reading.server.version if reading is not None else None,
        command=view.command,
        model=spec.model,
        draft_model=spec.draft_model,
        env=spec.env,
        log_path=view.log_path or "",
        probes=dict(spec.probes),
        environment=spec.environment,
    )


def parse_url(text: str) -> tuple[str, str, int]:
    """Scheme, address and port of `http://HOST:PORT` or `https://HOST:PORT`. Raises BadInputError."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInputError("is no http:// or https:// URL", where=text, try_="http://127.0.0.1:30000")
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise BadInputError("the port is no number from 1 to 65535", where=text) from None
    if parts.path.rstrip("/") not in ("", "/v1") or parts.query or parts.username:
        good = f"{parts.scheme}://{parts.hostname}:{port}"
        raise BadInputError("only SCHEME://HOST:PORT is taken", where=text, try_=good)
    return parts.scheme, parts.hostname, port


async def target_of_url(url: str, http: HttpClient, key: str, ca_pem: str | None = None) -> Target:
    """Asks what answers there; `http` speaks its scheme. Raises BadInputError, TransportError."""
    scheme, address, port = parse_url(url)
    models = await list_models(http.with_key(key) if key else http, address, port)
    owner = next((str(m.get("owned_by", "")) for m in models), "")
    return Target(
        name=f"{address}:{port}",
        address=address,
        port=port,
        engine=_OWNERS.get(owner.lower(), "other"),
        key=key,
        tls=scheme == "https",
        ca_pem=ca_pem,
        model=str(models[0].get("root") or models[0]["id"]) if models else None,
    )


async def list_models(http: HttpClient, address: str, port: int) -> list[dict[str, Any]]:
    """/v1/models. Raises BadInputError with the server's word when it has none, TransportError."""
    where = f"{address}:{port}/v1/models"
    try:
        answer = await http.get(address, port, "/v1/models", timeout_s=ASK_TIMEOUT_S)
    except TimeoutError:
        raise SpecconsoleError(f"no answer within {ASK_TIMEOUT_S:.0f} s", where=where) from None
    if answer.status in (401, 403):
        raise BadInputError(f"HTTP {answer.status}: it wants a key", where=where, try_="--key-file FILE")
    try:
        found = json.loads(answer.body)["data"]
        models = [dict(one) for one in found if isinstance(one, dict) and "id" in one]
    except (ValueError, KeyError, TypeError):
        text = answer.body[:120].decode("utf-8", "replace").strip()
        raise BadInputError(f"HTTP {answer.status}, no list of models: {text}", where=where) from None
    if not models:
        raise BadInputError("it serves no model", where=where)
    return models


async def model_name(http: HttpClient, target: Target, wanted: str | None) -> str:
    """The name to ask for. Raises BadInputError, naming those that are there."""
    models = await list_models(http, target.address, target.port)
    names = list(
        dict.fromkeys(name for one in models for name in (str(one["id"]), *map(str, one.get("aliases") or ())))
    )
    if wanted is None:
        return names[0]
    if wanted not in names:
        raise BadInputError(f"no model named {wanted}", where=target.name, try_=" or ".join(names[:8]))
    return wanted


async def has_metrics(http: HttpClient, target: Target) -> bool:
    """Whether /metrics answers with a page."""
    try:
        answer = await http.get(target.address, target.port, "/metrics", timeout_s=ASK_TIMEOUT_S)
    except (SpecconsoleError, TimeoutError):
        return False
    return answer.status == 200
