"""A finished response read as a token stream: when each event came, how many tokens it brought, what the server said.

Tokens come from the server's own counts wherever it gives them: per event (`usage` of continuous usage statistics,
SGLang's `meta_info.completion_tokens`, llama.cpp's `tokens`) or for the whole request (`usage`, `timings`). Only where
neither exists are content events counted, and the record says so (`tokens_from`). One event may bring several tokens:
under speculation it usually does.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Dict, List, Optional, Tuple

from .wire import Response

# SGLang /generate, 0.4.6 to 0.5.23 (tokenizer_manager.py): what a request says of its own speculation.
SGLANG_SPEC_KEYS = (
    "spec_verify_ct",
    "spec_accept_length",
    "spec_accept_rate",
    "spec_num_correct_drafts",
    "spec_num_proposed_drafts",
    "spec_accept_token_num",
    "spec_draft_token_num",
    "spec_correct_drafts_histogram",
    "spec_accept_histogram",
)


class TokenStream:
    """What one response was. Times are `time.perf_counter()` seconds of the client."""

    def __init__(self) -> None:
        self.error: Optional[str] = None
        self.detail = ""
        self.events: List[Tuple[float, Optional[int]]] = []
        """(arrival time, tokens of this event or None when the server gives no count per event), content only."""
        self.prompt_tokens: Optional[int] = None
        self.completion_tokens: Optional[int] = None
        self.cached_tokens: Optional[int] = None
        self.tokens_from: Optional[str] = None
        """`usage`, `meta_info`, `timings`, `events` (counted by us: one per event) or None (nothing known)."""
        self.finish_reason: Optional[str] = None
        self.spec: Dict[str, Any] = {}
        self.timings: Dict[str, Any] = {}
        self.text = ""
        self.ended = False
        """True when the server's own end came (`[DONE]`, a final event, or a whole non-stream answer)."""

    @property
    def text_sha256(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


def read_stream(response: Response) -> TokenStream:
    """Reads one response of any of the four APIs. Never raises: what is wrong stands in `error` and `detail`."""
    stream = TokenStream()
    if response.status is None:
        stream.error, stream.detail = "bad-response", response.body[:200].decode("utf-8", "replace")
        return stream
    if response.status != 200:
        stream.error = "http-%d" % response.status
        stream.detail = response.body[:500].decode("utf-8", "replace")
        return stream
    if "text/event-stream" in response.headers.get("content-type", "") or response.body.lstrip()[:5] == b"data:":
        _read_events(response, stream)
    else:
        last_s = response.marks[-1][1] if response.marks else 0.0
        _take(stream, response.body, last_s)
        stream.ended = response.complete
    if stream.error is None and not stream.ended:
        stream.error, stream.detail = "truncated", "the stream stopped before the server's own end"
    _settle_tokens(stream)
    return stream


def _read_events(response: Response, stream: TokenStream) -> None:
    body, marks = response.body, response.marks
    position = mark = 0
    while position < len(body):
        end = body.find(b"\n", position)
        if end < 0:
            if not response.complete:
                return  # an event cut in its middle
            end = len(body)
        line = body[position:end].strip()
        # The event is there when its last byte is: the first mark that reaches past its line.
        while mark < len(marks) - 1 and marks[mark][0] < end:
            mark += 1
        position = end + 1
        if not line.startswith(b"data:"):
            if line.startswith(b"error:"):
                stream.error, stream.detail = "server-error", line[6:500].decode("utf-8", "replace").strip()
            continue
        payload = line[5:].strip()
        if payload == b"[DONE]":
            stream.ended = True
            continue
        _take(stream, payload, marks[mark][1] if marks else 0.0)


def _take(stream: TokenStream, payload: bytes, at_s: float) -> None:
    try:
        event = json.loads(payload)
    except ValueError:
        stream.error = stream.error or "bad-json"
        stream.detail = stream.detail or payload[:200].decode("utf-8", "replace")
        return
    if not isinstance(event, dict):
        return
    if event.get("error"):
        stream.error = "server-error"
        stream.detail = json.dumps(event["error"])[:500]
        return
    before = stream.completion_tokens
    if isinstance(event.get("meta_info"), dict):
        text = _take_sglang(stream, event)
    elif isinstance(event.get("choices"), list):
        text = _take_openai(stream, event)
    else:
        text = _take_llamacpp(stream, event)
    if isinstance(event.get("timings"), dict):
        stream.timings = event["timings"]
    if text is None:
        return
    counted = stream.completion_tokens
    stream.events.append((at_s, counted - (before or 0) if counted is not None else None))


def _take_openai(stream: TokenStream, event: Dict[str, Any]) -> Optional[str]:
    usage = event.get("usage")
    if isinstance(usage, dict):
        stream.prompt_tokens = _count(usage.get("prompt_tokens"), stream.prompt_tokens)
        stream.completion_tokens = _count(usage.get("completion_tokens"), stream.completion_tokens)
        stream.tokens_from = "usage"
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict):
            stream.cached_tokens = _count(details.get("cached_tokens"), stream.cached_tokens)
    text: Optional[str] = None
    for choice in event["choices"]:
        if not isinstance(choice, dict):
            continue
        if choice.get("finish_reason"):
            stream.finish_reason = str(choice["finish_reason"])
        delta = choice.get("delta") or choice.get("message") or choice
        pieces = [delta.get(key) for key in ("content", "reasoning_content", "reasoning", "text")]
        joined = "".join(piece for piece in pieces if isinstance(piece, str))
        if joined or (isinstance(usage, dict) and _grew(stream, usage)):
            text = (text or "") + joined
    if text is not None:
        stream.text += text
    metrics = event.get("metrics")
    # vLLM 0.33 with --per-request-spec-decode-metrics.
    if isinstance(metrics, dict) and isinstance(metrics.get("speculative_decoding"), dict):
        stream.spec = metrics["speculative_decoding"]
    _take_meta(stream, event.get("meta_info"))
    return text


def _grew(stream: TokenStream, usage: Dict[str, Any]) -> bool:
    """Tokens that decode to no text (special tokens, half a character) are tokens all the same."""
    seen = sum(tokens or 0 for _, tokens in stream.events)
    now = usage.get("completion_tokens")
    return isinstance(now, int) and bool(stream.events) and stream.events[-1][1] is not None and now > seen


def _take_sglang(stream: TokenStream, event: Dict[str, Any]) -> Optional[str]:
    meta = event["meta_info"]
    before = stream.completion_tokens or 0
    stream.prompt_tokens = _count(meta.get("prompt_tokens"), stream.prompt_tokens)
    stream.completion_tokens = _count(meta.get("completion_tokens"), stream.completion_tokens)
    stream.cached_tokens = _count(meta.get("cached_tokens"), stream.cached_tokens)
    stream.tokens_from = "meta_info"
    _take_meta(stream, meta)
    reason = meta.get("finish_reason")
    if reason:
        stream.finish_reason = str(reason.get("type")) if isinstance(reason, dict) else str(reason)
        if stream.finish_reason == "abort":
            stream.error, stream.detail = "server-error", json.dumps(reason)[:500]
    text = event.get("text")
    if isinstance(text, str):
        stream.text = text  # SGLang repeats the whole text in each event
    return "" if (stream.completion_tokens or 0) > before else None


def _take_meta(stream: TokenStream, meta: Any) -> None:
    if isinstance(meta, dict):
        stream.spec.update({key: meta[key] for key in SGLANG_SPEC_KEYS if meta.get(key) is not None})


def _take_llamacpp(stream: TokenStream, event: Dict[str, Any]) -> Optional[str]:
    """llama.cpp /completion: `content` and `tokens` an event, the last one with `stop` and the totals."""
    if event.get("stop") is True:
        stream.prompt_tokens = _count(event.get("tokens_evaluated"), stream.prompt_tokens)
        stream.completion_tokens = _count(event.get("tokens_predicted"), stream.completion_tokens)
        stream.cached_tokens = _count(event.get("tokens_cached"), None)
        stream.tokens_from = "timings" if stream.completion_tokens is not None else stream.tokens_from
        stream.finish_reason = str(event.get("stop_type") or "stop")
        stream.ended = True
    content = event.get("content")
    if not isinstance(content, str) or (not content and not event.get("tokens")):
        return None
    stream.text += content
    return content


def _settle_tokens(stream: TokenStream) -> None:
    timings = stream.timings
    if stream.completion_tokens is None and isinstance(timings.get("predicted_n"), int):
        stream.completion_tokens = timings["predicted_n"]
        stream.tokens_from = "timings"
    if stream.prompt_tokens is None and isinstance(timings.get("prompt_n"), int):
        stream.prompt_tokens = timings["prompt_n"] + int(timings.get("cache_n") or 0)
    if stream.cached_tokens is None and isinstance(timings.get("cache_n"), int):
        stream.cached_tokens = timings["cache_n"]
    for key in ("draft_n", "draft_n_accepted"):
        if isinstance(timings.get(key), int):
            stream.spec[key] = timings[key]
    if stream.completion_tokens is None and stream.events:
        stream.completion_tokens = len(stream.events)
        stream.tokens_from = "events"


def _count(value: Any, otherwise: Optional[int]) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise
