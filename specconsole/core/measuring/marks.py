"""Marks: what a reader of a point must know before trusting it, each with its meaning and its consequence.

`queued`, `client-bottleneck` and the other `excluded` ones stay out of crossings and break-even, since there
the number is about something else than the draft.
"""

from __future__ import annotations

from dataclasses import dataclass

from specconsole.core.measuring.point import PointMetrics
from specconsole.core.measuring.result import CLIENT_OVERHEAD_LIMIT_PCT, ClientFigures


@dataclass(frozen=True, slots=True)
class Mark:
    mark_id: str
    sign: str
    """One or two characters for a table cell."""
    meaning: str
    excluded: bool = False
    """True: the point does not take part in crossings and break-even."""


MARKS = {
    mark.mark_id: mark
    for mark in (
        Mark(
            "no-steady-window", "~", "no steady state: fewer requests than slots, or cut short; ramp and drain are in"
        ),
        Mark("tokens-from-events", "e", "the server told no token counts: events were counted", excluded=True),
        Mark("no-usage", "u", "tokens of some answers are unknown, so there is no throughput", excluded=True),
        Mark("failures", "!", "some requests failed; they are counted and left out of every average"),
        Mark("queued", "q", "the server ran fewer at once than were asked (its running cap)", excluded=True),
        Mark("client-bottleneck", "c", "the load generator itself was over 10 % of the time", excluded=True),
        Mark("client-stalled", "s", "the load generator was held up during the point", excluded=True),
        Mark("cache-hits", "h", "over 5 % of prompt tokens came from the prefix cache"),
        Mark("not-flushed", "f", "the prefix cache could not be emptied before the point"),
        Mark("compiled-inside", "j", "kernels were compiled inside the window: first shapes are slow", excluded=True),
        Mark("other-requests", "o", "other clients' requests ran on the server", excluded=True),
        Mark("retractions", "k", "the KV pool ran full: requests were taken back and run again"),
        Mark("throttled", "t", "a GPU was throttled during the point"),
        Mark("no-graph", "g", "some decode steps ran without CUDA graphs"),
        Mark("restarted", "r", "the server was restarted during the point", excluded=True),
        Mark("tunnel", "n", "measured through the SSH tunnel, not on the host"),
        Mark("ignore-eos", "i", "tokens forced after the end of the text inflate acceptance"),
        Mark("random-tokens", "x", "random token ids: acceptance means nothing", excluded=True),
        Mark("shared-prefix", "p", "prompts share a prefix on purpose"),
        Mark("simulated", "S", "SIMULATED acceptance: drafts were accepted by a dial", excluded=False),
        Mark("cancelled", "-", "cancelled: what was measured until then"),
        Mark("imported", "m", "measured by another client, with its own definitions"),
    )
}

CACHE_HIT_LIMIT_RATIO = 0.05
QUEUED_SHARE = 0.95


def client_marks(metrics: PointMetrics, client: ClientFigures) -> tuple[str, ...]:
    """Marks that follow from the load generator's own figures."""
    found = []
    lag, gap = client.lag_p99_s, metrics.itl_s.p50
    slow = client.overhead_pct is not None and client.overhead_pct > CLIENT_OVERHEAD_LIMIT_PCT
    late = (
        client.stamped_by != "kernel"
        and lag is not None
        and gap is not None
        and lag * 100.0 > CLIENT_OVERHEAD_LIMIT_PCT * gap
        and lag > 0.001
    )
    if slow or late:
        found.append("client-bottleneck")
    if metrics.window is not None and client.stalled_s > 0.01 * metrics.window.seconds:
        found.append("client-stalled")
    return tuple(found)


def server_marks(
    metrics: PointMetrics,
    *,
    concurrency: int | None,
    running_cap_total: int | None,
    running_server_mean: float | None,
    queued_server_max: float | None,
) -> tuple[str, ...]:
    """Marks that follow from what the server said: queueing and cache hits.

    `running_cap_total` is over all data-parallel ranks; None: unknown.
    """
    found = []
    over_cap = concurrency is not None and running_cap_total is not None and concurrency > running_cap_total
    waited = (
        concurrency is not None
        and queued_server_max is not None
        and queued_server_max >= 1
        and running_server_mean is not None
        and running_server_mean < QUEUED_SHARE * concurrency
    )
    if over_cap or waited:
        found.append("queued")
    share = metrics.cached_token_share_ratio
    if share is not None and share > CACHE_HIT_LIMIT_RATIO:
        found.append("cache-hits")
    return tuple(found)


def is_excluded(marks: tuple[str, ...]) -> bool:
    """Whether a point with these marks stays out of crossings and break-even."""
    return any(MARKS[mark].excluded for mark in marks if mark in MARKS)
