"""What the three engines' HTTP interfaces have in common: a completion of exactly 16 tokens, and reading JSON."""

from __future__ import annotations

import json
from typing import Any

from specconsole.core.measuring.counters import EngineMetricNames
from specconsole.errors import BadInputError, SpecconsoleError
from specconsole.ports import HttpAnswer, HttpClient

PROBE_TOKENS = 16
"""Long enough for a draft to be proposed and verified several times."""
PROMPT = "Count from one to twenty: one, two, three,"


def parse_json(answer: HttpAnswer, what: str) -> Any:
    """The body of a 200. Raises BadInputError for another status or what is no JSON."""
    if answer.status != 200:
        text = answer.body[:200].decode("utf-8", "replace").strip()
        raise BadInputError(f"{what}: HTTP {answer.status} {text}")
    try:
        return json.loads(answer.body)
    except ValueError:
        raise BadInputError(f"{what}: the answer is no JSON") from None


async def served_model(http: HttpClient, host: str, port: int, *, timeout_s: float) -> str:
    """The first id of /v1/models, which all three engines have; vLLM refuses a wrong name with 404."""
    data = parse_json(await http.get(host, port, "/v1/models", timeout_s=timeout_s), "/v1/models")
    try:
        return str(data["data"][0]["id"])
    except (KeyError, IndexError, TypeError):
        raise BadInputError("/v1/models names no model") from None


async def complete_openai(http: HttpClient, host: str, port: int, prompt: str, *, timeout_s: float) -> int:
    """POST /v1/completions; `usage` says how many tokens came, whatever the text. Returns that number."""
    model = await served_model(http, host, port, timeout_s=min(timeout_s, 10.0))
    body = {
        "model": model,
        "prompt": prompt or PROMPT,
        "max_tokens": PROBE_TOKENS,
        "temperature": 0,
        # An end-of-sequence token would end it early: SGLang, vLLM and llama.cpp all take this one.
        "ignore_eos": True,
        "stream": False,
    }
    data = parse_json(await http.post_json(host, port, "/v1/completions", body, timeout_s=timeout_s), "/v1/completions")
    try:
        tokens = data["usage"]["completion_tokens"]
    except (KeyError, TypeError):
        raise BadInputError("/v1/completions: the answer has no `usage`") from None
    if not isinstance(tokens, int):
        raise BadInputError("/v1/completions: `usage` is no number")
    return tokens


async def try_json(http: HttpClient | None, host: str, port: int, path: str, *, timeout_s: float = 5.0) -> Any:
    """The body of a 200 as JSON; None for anything else: an account is as long as what could be learned."""
    if http is None:
        return None
    try:
        return parse_json(await http.get(host, port, path, timeout_s=timeout_s), path)
    except (SpecconsoleError, TimeoutError):
        return None


async def try_text(http: HttpClient | None, host: str, port: int, path: str, *, timeout_s: float = 5.0) -> str | None:
    """The same for plain text."""
    if http is None:
        return None
    try:
        answer = await http.get(host, port, path, timeout_s=timeout_s)
    except (SpecconsoleError, TimeoutError):
        return None
    return answer.body.decode("utf-8", "replace") if answer.status == 200 else None


async def requests_on_page(http: HttpClient, host: str, port: int, names: EngineMetricNames) -> int | None:
    """Requests that run or wait, by two metrics of /metrics; None where the page or the first metric is not there."""
    text = await try_text(http, host, port, "/metrics", timeout_s=3.0)
    at_work = None if text is None else metric(text, names.running)
    return None if text is None or at_work is None else int(at_work + (metric(text, names.queued) or 0))


def metric(text: str, name: str) -> float | None:
    """The sum of a Prometheus metric over its labels; None when it is not there."""
    found: float | None = None
    for line in text.splitlines():
        if line.startswith(name) and line[len(name) : len(name) + 1] in ("{", " "):
            try:
                found = (found or 0.0) + float(line.rsplit(" ", 1)[1])
            except ValueError:
                continue
    return found
