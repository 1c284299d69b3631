"""Acceptance over the window of one run: tokens per target step, bonus token included, from the server's own counts.

One definition for all engines. Sources, best first:

- SGLang, per request (`meta_info`): `spec_verify_ct` steps; drafts taken `spec_num_correct_drafts` (0.5.12 on),
  or completion tokens - steps - 1 before that. Its own figure, completion tokens / steps, counts the prefill's token.
- vLLM (0.10 to 0.33) and llama.cpp (b10434 on), counter differences: a decode token is either an accepted draft or
  the one token that its target step gives, so steps = decode tokens - accepted drafts; this also counts steps without
  a draft. The engine's own figure, 1 + accepted / drafts, leaves those out and stands beside it, named.
- llama.cpp, per request (`timings`): predicted_n - draft_n_accepted steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specconsole.core.measuring.requests import RequestRecord


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Acceptance of one point."""

    accept_length: float | None
    target_steps: int | None
    """Steps that brought the point's *decode* tokens; what the economics divide by."""
    accepted_drafts: int | None
    proposed_drafts: int | None
    per_position_ratio: tuple[float, ...] = ()
    """Share of drafts whose position 1, 2, ... was accepted (a position counts only if all before it did)."""
    engine_figure: float | None = None
    """What the engine itself would call acceptance length."""
    engine_figure_is: str = ""
    """How the engine makes it: `1 + accepted / drafts`, `completion tokens / verify steps`."""
    source: str = ""
    """`per request (meta_info)`, `counters (/metrics)`, `per request (timings)`; "" when nothing is known."""
    why_not: str = ""
    """Why it is unknown."""


@dataclass(frozen=True, slots=True)
class SpecCounters:
    """Speculation counters at one moment, summed over engines and data-parallel ranks."""

    drafts: float
    draft_tokens: float
    accepted_tokens: float
    generated_tokens: float | None
    per_position: tuple[float, ...] = ()

    def since(self, before: SpecCounters) -> SpecCounters | None:
        """The difference; None when a counter fell (the server was restarted in between)."""
        generated = None
        if self.generated_tokens is not None and before.generated_tokens is not None:
            generated = self.generated_tokens - before.generated_tokens
        padded = before.per_position + (0.0,) * (len(self.per_position) - len(before.per_position))
        found = SpecCounters(
            self.drafts - before.drafts,
            self.draft_tokens - before.draft_tokens,
            self.accepted_tokens - before.accepted_tokens,
            generated,
            tuple(now - then for now, then in zip(self.per_position, padded, strict=False)),
        )
        values = (found.drafts, found.draft_tokens, found.accepted_tokens, *found.per_position)
        return None if min(values) < 0 or (generated is not None and generated < 0) else found


def from_sglang_requests(records: Sequence[RequestRecord]) -> Acceptance:
    """From the `meta_info` of every measured request that succeeded."""
    good = [r for r in records if not r.warmup and r.error is None]
    if not good:
        return Acceptance(None, None, None, None, why_not="no request succeeded")
    steps = accepted = proposed = tokens = 0
    proposed_known = True
    histogram: list[int] = []
    for record in good:
        verify = _whole(record.spec, "spec_verify_ct")
        if verify is None or record.completion_tokens is None:
            return Acceptance(None, None, None, None, why_not="this server tells no verify steps per request")
        correct = _whole(record.spec, "spec_num_correct_drafts")
        if correct is None:
            correct = max(0, record.completion_tokens - verify - 1)
        steps += verify
        accepted += correct
        tokens += record.completion_tokens
        offered = _whole(record.spec, "spec_num_proposed_drafts")
        proposed_known = proposed_known and offered is not None
        proposed += offered or 0
        counts = record.spec.get("spec_correct_drafts_histogram") or record.spec.get("spec_accept_histogram") or []
        for index, count in enumerate(counts):
            histogram.extend([0] * (index + 1 - len(histogram)))
            histogram[index] += int(count)
    if steps == 0:
        return Acceptance(None, None, None, None, why_not="no verify step: speculation is off")
    total = sum(histogram)
    # histogram[k] steps took exactly k drafts: position p was accepted in all steps with k >= p.
    positions = tuple(sum(histogram[p:]) / total for p in range(1, len(histogram))) if total else ()
    return Acceptance(
        # By the tokens that came, not by the drafts that were right: a last step is cut at the limit (seen: 0.5.17).
        accept_length=(tokens - len(good)) / steps,
        target_steps=steps,
        accepted_drafts=accepted,
        proposed_drafts=proposed if proposed_known else None,
        per_position_ratio=positions,
        engine_figure=tokens / steps,
        engine_figure_is="completion tokens / verify steps",
        source="per request (meta_info)",
    )


def from_counters(delta: SpecCounters | None, decode_tokens: float | None) -> Acceptance:
    """From counter differences over the run and the decode tokens of the *same* requests (warm-up included in both).

    `delta` None: counters could not be compared. `decode_tokens` None: the server's generation counter is used, less
    nothing; the caller passes completion tokens less one prefill token a request.
    """
    if delta is None:
        return Acceptance(None, None, None, None, why_not="the counters fell: the server restarted during the run")
    if delta.drafts <= 0:
        return Acceptance(None, None, None, None, why_not="no draft was made in this run: speculation is off")
    figure = 1.0 + delta.accepted_tokens / delta.drafts
    positions = tuple(n / delta.drafts for n in delta.per_position)
    length = steps = None
    why = ""
    if decode_tokens is None or decode_tokens <= delta.accepted_tokens:
        why = "the number of decode tokens is not known"
    else:
        # A step with a draft is a step, however many of its tokens were thrown away at a text's end.
        exact = max(decode_tokens - delta.accepted_tokens, delta.drafts)
        steps, length = round(exact), decode_tokens / exact
    return Acceptance(
        accept_length=length,
        target_steps=steps,
        accepted_drafts=round(delta.accepted_tokens),
        proposed_drafts=round(delta.draft_tokens),
        per_position_ratio=positions,
        engine_figure=figure,
        engine_figure_is="1 + accepted / drafts",
        source="counters (/metrics)",
        why_not=why,
    )


def from_llamacpp_requests(records: Sequence[RequestRecord]) -> Acceptance:
    """From the `timings` of every measured request: exact steps, no number of drafts."""
    good = [r for r in records if not r.warmup and r.error is None]
    told = [(r.decode_tokens, _whole(r.spec, "draft_n"), _whole(r.spec, "draft_n_accepted")) for r in good]
    if not told or all(offered is None for _, offered, _ in told):
        return Acceptance(None, None, None, None, why_not="no draft figures in the answers: speculation is off")
    tokens = sum(t for t, _, _ in told if t is not None)
    accepted = sum(a for _, _, a in told if a is not None)
    steps = tokens - accepted
    if steps <= 0:
        return Acceptance(None, None, accepted, None, why_not="the number of decode tokens is not known")
    return Acceptance(
        accept_length=tokens / steps,
        target_steps=steps,
        accepted_drafts=accepted,
        proposed_drafts=sum(o for _, o, _ in told if o is not None),
        source="per request (timings)",
    )


def _whole(source: Mapping[str, Any], key: str) -> int | None:
    value = source.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
