"""One measured request, as the load generator wrote it down, and the times that follow from it.

All moments are seconds on the client's monotonic clock since its run began. Definitions:

- **TTFT** time to first token: from the request's start (open loop: its scheduled arrival, so that waiting in our own
  queue counts) to the first content event.
- **E2E** end-to-end latency: from the same start to the last content event.
- **decode time** last content event - first content event; **decode tokens** the tokens of these later events.
- **TPOT** decode time / decode tokens of one request. None with a single event.
- **ITL** inter-token latency: the gap before an event divided by the event's tokens, once for each of these tokens;
  right also when one event carries several tokens, which it does under speculation.

Tokens are the server's own counts; where it gives one per request only, the decode tokens are spread evenly over the
later events (`per_event_tokens` is then False: ITL percentiles are smoothed, sums and TPOT are exact).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request. `error` None: a whole answer came; a failed one is counted and never averaged in."""

    point: int
    body: int
    """Line of the request file."""
    warmup: bool
    start_s: float
    end_s: float
    error: str | None
    detail: str = ""
    event_s: tuple[float, ...] = ()
    """Arrival of each content event."""
    event_tokens: tuple[int | None, ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    tokens_from: str | None = None
    """`usage`, `meta_info`, `timings`; `events` means that events were counted, for want of the server's count."""
    finish_reason: str | None = None
    spec: Mapping[str, Any] = field(default_factory=dict)
    text_sha256: str | None = None
    text: str | None = None
    log_from: int | None = None
    """Size of the server's log when the request started (`log_to`: ended); None where it was not at hand."""
    log_to: int | None = None

    @property
    def per_event_tokens(self) -> bool:
        """Whether the server said how many tokens each event brought."""
        return bool(self.event_tokens) and None not in self.event_tokens

    @property
    def ttft_s(self) -> float | None:
        return self.event_s[0] - self.start_s if self.event_s else None

    @property
    def e2e_s(self) -> float | None:
        return self.event_s[-1] - self.start_s if self.event_s else None

    @property
    def decode_time_s(self) -> float | None:
        return self.event_s[-1] - self.event_s[0] if len(self.event_s) > 1 else None

    @property
    def decode_tokens(self) -> int | None:
        """Tokens after the first event; None with a single event or without any count.

        Without counts per event the first event is taken to bring one token (the prefill's), as every engine's own
        client does.
        """
        if len(self.event_s) < 2 or self.completion_tokens is None:
            return None
        first = self.event_tokens[0]
        left = self.completion_tokens - (first if first is not None and first > 0 else 1)
        return left if left > 0 else None

    @property
    def tpot_s(self) -> float | None:
        time_s, tokens = self.decode_time_s, self.decode_tokens
        return time_s / tokens if time_s is not None and tokens else None

    def token_gaps(self) -> Iterable[tuple[float, float]]:
        """(seconds per token, number of tokens) of each event after the first; see ITL above."""
        tokens = self.decode_tokens
        if tokens is None:
            return
        even = tokens / (len(self.event_s) - 1)
        for index in range(1, len(self.event_s)):
            gap_s = self.event_s[index] - self.event_s[index - 1]
            count = self.event_tokens[index] if self.per_event_tokens else even
            if count:
                yield gap_s / count, float(count)

    def tokens_between(self, from_s: float, to_s: float) -> float:
        """Output tokens that arrived in (from_s, to_s]."""
        if self.completion_tokens is None:
            return 0.0
        decode = self.decode_tokens or 0
        even = decode / (len(self.event_s) - 1) if len(self.event_s) > 1 else 0.0
        total = 0.0
        for index, at_s in enumerate(self.event_s):
            if from_s < at_s <= to_s:
                if self.per_event_tokens:
                    total += self.event_tokens[index] or 0
                else:
                    total += self.completion_tokens - decode if index == 0 else even
        return total


def parse_request(raw: Mapping[str, Any]) -> RequestRecord | None:
    """A `request` line of the load generator; None for another kind of line or one that lacks what it must have."""
    if raw.get("kind") != "request":
        return None
    started, sent = raw.get("started_s"), raw.get("sent_s")
    if not isinstance(started, int | float):
        return None
    base_s = sent if isinstance(sent, int | float) else started
    flat = raw.get("events") or []
    scheduled = raw.get("scheduled_s")
    end = raw.get("end_s")
    return RequestRecord(
        point=int(raw.get("point", 0)),
        body=int(raw.get("body", 0)),
        warmup=bool(raw.get("warmup")),
        start_s=float(scheduled if isinstance(scheduled, int | float) else started),
        end_s=float(end if isinstance(end, int | float) else base_s),
        error=raw.get("error"),
        detail=str(raw.get("detail") or ""),
        event_s=tuple(base_s + micros / 1e6 for micros in flat[0::2]),
        event_tokens=tuple(flat[1::2]),
        prompt_tokens=raw.get("prompt_tokens"),
        completion_tokens=raw.get("completion_tokens"),
        cached_tokens=raw.get("cached_tokens"),
        tokens_from=raw.get("tokens_from"),
        finish_reason=raw.get("finish_reason"),
        spec=raw.get("spec") or {},
        text_sha256=raw.get("text_sha256"),
        text=raw.get("text"),
        log_from=raw.get("log_from"),
        log_to=raw.get("log_to"),
    )


def parse_lines(lines: Iterable[bytes | str]) -> Iterable[dict[str, Any]]:
    """JSON lines as objects; an unfinished or broken line (the run is still writing, or was cut) is left out."""
    for line in lines:
        try:
            raw = json.loads(line)
        except ValueError:
            continue
        if isinstance(raw, dict):
            yield raw
