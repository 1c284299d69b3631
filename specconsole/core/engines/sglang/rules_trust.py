"""SGLang: what makes a start unsafe, its results untrue, or its log unreadable."""

from __future__ import annotations

from specconsole.core.engines.sglang.asked import algorithm, eagle_like
from specconsole.core.launching.rules import Asked, Check, Verdict


def lossy_thresholds(asked: Asked) -> Verdict | None:
    keys = ("speculative_accept_threshold_single", "speculative_accept_threshold_acc")
    low = [key for key in keys if (value := asked.number(key)) is not None and value < 1.0]
    if not low:
        return None
    return Verdict("warning", "an accept threshold under 1 changes the text: speculation is no longer lossless",
                   tuple(low), fix=dict.fromkeys(low, 1.0))  # fmt: skip


def simulated(asked: Asked) -> Verdict | None:
    value = asked.env.get("SGLANG_SIMULATE_ACC_LEN", "")
    try:
        on = float(value) > 0
    except ValueError:
        on = False
    if not on:
        return None
    return Verdict("warning", f"SIMULATED: acceptance is set to {value} by hand; no result of it is real",
                   ("env.SGLANG_SIMULATE_ACC_LEN",), fix={"env.SGLANG_SIMULATE_ACC_LEN": None})  # fmt: skip


def context_beyond_draft(asked: Asked) -> Verdict | None:
    if algorithm(asked) not in ("EAGLE", "EAGLE3", "STANDALONE") or asked.draft_positions is None:
        return None
    context = asked.number("context_length") or asked.model_positions
    if context is None or context <= asked.draft_positions:
        return None
    if asked.env_true("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"):
        return None
    return Verdict(
        "error",
        f"context {int(context)} is beyond the draft's {asked.draft_positions} positions: refused after the target's "
        "weights are loaded (or take a copy of the draft that knows more: check --write-config-copy DIR)",
        ("context_length", "speculative_draft_model_path"),
        fix={"env.SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"},
    )


def api_key_argument(asked: Asked) -> Verdict | None:
    given = asked.given("api_key", "admin_api_key")
    if not given:
        return None
    return Verdict("error", "the key would show in `ps` and in the server's own log line of its arguments", given,
                   fix=dict.fromkeys(given))  # fmt: skip


def context_beyond_old(asked: Asked) -> Verdict | None:
    verdict = context_beyond_draft(asked)
    if verdict is None:
        return None
    text = f"the draft knows {asked.draft_positions} positions: beyond them these versions only warn"
    return Verdict("warning", text, verdict.keys, fix={"context_length": asked.draft_positions})


def memory_kept_back(*, eagle_gb: int, standalone_gb: int) -> Check:
    """What a speculative server takes off the KV pool's share by itself, in GB."""

    def check(asked: Asked) -> Verdict | None:
        if not eagle_like(asked) or asked.given("mem_fraction_static"):
            return None
        size = standalone_gb if algorithm(asked) == "STANDALONE" else eagle_gb
        text = f"without --mem-fraction-static the server keeps back {size} GB more under speculation"
        return Verdict("note", f"{text}: set it for the baseline too, or its pool is larger", ("mem_fraction_static",))

    return check


def log_config(asked: Asked) -> Verdict | None:
    if not asked.env.get("SGLANG_LOGGING_CONFIG_PATH"):
        return None
    key = "env.SGLANG_LOGGING_CONFIG_PATH"
    text = "SGLANG_LOGGING_CONFIG_PATH changes the log's form: phases and decode lines may not be read"
    return Verdict("warning", text, (key,), fix={key: None})


def metrics_off(asked: Asked) -> Verdict | None:
    if asked.get("enable_metrics"):
        return None
    return Verdict("note", "without --enable-metrics there is no /metrics: counts come from answers and the log only",
                   ("enable_metrics",), fix={"enable_metrics": True})  # fmt: skip
