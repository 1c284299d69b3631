"""How a launch really runs, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specconsole.core.launching.effective import Account, Effective, SettingReport, Speculation


def account_lines(account: Account | None) -> list[str]:
    """`runs with: ...`, then what is not as it was asked; [] when nothing is known."""
    if account is None:
        return []
    found = account.effective
    lines = [f"speculation: {speculation_text(found.speculation)}"]
    if account.speculation_off:
        lines.append("! a draft was asked for, and the server runs without speculation")
    facts = _facts(found)
    if facts:
        lines.append("runs with: " + ", ".join(facts))
    if found.build:
        lines.append("build: " + ", ".join(f"{name} {value}" for name, value in found.build.items()))
    lines += [_report(report) for report in account.reports if report.state in ("overridden", "ignored")]
    chosen = [f"{r.key} {_short(r.effective)}" for r in account.reports if r.state == "defaulted"]
    if chosen:
        lines.append("chosen by the server: " + ", ".join(chosen))
    unknown = [report.key for report in account.reports if report.state == "unknown"]
    if unknown:
        lines.append("the server does not say: " + ", ".join(unknown))
    return lines


def account_note(account: Account | None) -> str:
    """What is not as it was asked, in a few words; "" when all is, or nothing is known."""
    if account is None:
        return ""
    if account.speculation_off:
        return "runs without speculation"
    count = sum(1 for report in account.reports if report.state in ("overridden", "ignored"))
    return f"{count} setting{'s' if count > 1 else ''} not as asked" if count else ""


def speculation_text(found: Speculation) -> str:
    """`EAGLE3, 3 steps, top-k 1, 4 draft tokens (by its resolved arguments)`."""
    if found.on is None:
        return "unknown"
    source = f" (by its {found.source})" if found.source else ""
    if not found.on:
        return f"off{source}"
    parts = [found.algorithm or "on"]
    for value, text in (
        (found.num_steps, "{} steps"),
        (found.topk, "top-k {}"),
        (found.draft_tokens, "{} draft tokens"),
    ):
        if value is not None:
            parts.append(text.format(value))
    made_up = f"; acceptance is made up: {found.simulated}" if found.simulated else ""
    return ", ".join(parts) + source + made_up


def _facts(found: Effective) -> list[str]:
    graphs = {True: "CUDA graphs on", False: "no CUDA graphs", None: ""}[found.cuda_graphs]
    draft = f" (draft {found.draft_attention_backend})" if found.draft_attention_backend else ""
    facts = [
        f"{found.attention_backend} attention{draft}" if found.attention_backend else "",
        graphs,
        f"context {found.context:,}" if found.context is not None else "",
        f"{found.kv_tokens:,} KV tokens" if found.kv_tokens is not None else "",
        f"at most {found.running_cap} requests at once" if found.running_cap is not None else "",
        f"{found.dp_size} data-parallel ranks" if found.dp_size is not None and found.dp_size > 1 else "",
    ]
    return [fact for fact in facts if fact]


def _report(report: SettingReport) -> str:
    if report.state == "ignored":
        return f"! {report.key}: asked {_short(report.asked)}, the server knows no such setting"
    return f"! {report.key}: asked {_short(report.asked)}, runs with {_short(report.effective)}"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
