"""SGLang's oddities in its life cycle, 0.4.6 to 0.5.23."""

from __future__ import annotations

from specconsole.core.launching.quirk import Quirk
from specconsole.core.launching.versions import between, parse_version, since, until

QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        "port-bound-last",
        "the port is not looked at before the model is loaded: a port that is taken costs the whole start, then "
        "`[Errno 98]`, then sometimes still `fired up`, then it hangs or ends",
        "srt/entrypoints/http_server.py; seen: 0.5.17",
    ),
    Quirk(
        "refused-while-loading",
        "no HTTP at all until everything is loaded; then 503 until the warm-up request came back",
        "srt/entrypoints/http_server.py",
    ),
    Quirk("health-shallow", "/health is 200 as soon as HTTP is up, whatever the engine does",
          "srt/entrypoints/http_server.py", until("0.4.6")),
    Quirk(
        "health-generates",
        "/health generates a token: it takes a second, writes a `Prefill batch` line, and times out on a busy server; "
        "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION=0 (from 0.5.8) makes it a plain status",
        "srt/entrypoints/http_server.py: health_generate; seen: 0.5.17",
        since("0.4.10"),
    ),
    Quirk("health-sticky", "once unhealthy, /health stays 503 although the engine recovered",
          "srt/entrypoints/http_server.py", between("0.4.10", "0.5.2")),
    Quirk("ready-endpoint", "/ready tells the status without generating", "srt/entrypoints/http_server.py",
          since("0.5.23")),
    Quirk("server-info-deprecated", "/get_server_info is what /server_info is called",
          "srt/entrypoints/http_server.py", until("0.5.5")),
    Quirk(
        "term-drains-for-ever",
        "TERM waits for every running request without a time limit: drop them first (/abort_request with abort_all)",
        "srt/managers/tokenizer_manager.py: sigterm_watchdog",
    ),
    Quirk(
        "term-in-warm-up-hangs",
        "TERM between `Uvicorn running` and `fired up` closes the port and then hangs: only KILL ends it",
        "seen: 0.5.17",
    ),
    Quirk(
        "term-of-the-group-reads-as-a-crash",
        "TERM to all of its processes ends the scheduler first: `Subprocess scheduler_0 crashed with exit code -15`, "
        "five seconds of diagnostics, KILL of its own tree; nothing hangs that way, in the warm-up neither",
        "srt/utils/watchdog.py; seen: 0.5.17 on an H200",
        since("0.5.10"),
    ),
    Quirk(
        "clean-stop-kills-itself",
        "a clean stop ends its own process tree with KILL: exit status 137 (-9) says nothing",
        "srt/utils: kill_process_tree; seen: 0.5.17",
    ),
    Quirk(
        "children-die-with-parent",
        "scheduler and detokenizer die with the main process (PR_SET_PDEATHSIG), compilers that they started do not",
        "srt/utils: kill_itself_when_parent_died",
    ),
    Quirk(
        "cap-under-speculation",
        "at most 48 requests run at once under speculation unless max_running_requests is set; under DP attention each "
        "rank takes its share of it",
        "srt/arg_groups/speculative_hook.py; srt/managers/tp_worker.py",
    ),
    Quirk(
        "draft-tokens-adjusted",
        "with top-k 1 the number of draft tokens becomes steps + 1, whatever was asked",
        "srt/arg_groups/speculative_hook.py",
    ),
    Quirk(
        "draft-without-map",
        "an EAGLE-3 draft with a smaller vocabulary and no `d2t` loads, answers, and has accept length 1.00",
        "srt/models/llama_eagle3.py; seen: 0.5.17",
    ),
    Quirk("draft-width-late", "a draft of another hidden size loads and dies in the warm-up request", "seen: 0.5.17"),
    Quirk(
        "keys-in-the-log",
        "`server_args=` and /server_info hold api_key and admin_api_key in clear",
        "srt/entrypoints/engine.py, http_server.py",
    ),
    Quirk(
        "silence-of-imports",
        "15 to 20 s without a line while it imports, and as long again in each child",
        "seen: 0.5.17",
    ),
    Quirk(
        "compilers-without-a-name",
        "inductor and nvcc workers run as `python -c ...` in the server's session: only the session and the "
        "environment tell whose they are",
        "torch/_inductor/compile_worker",
    ),
)  # fmt: skip


def health_path(version: str | None) -> str:
    """The endpoint that says whether it serves at the least cost: older releases answer 404 to /ready."""
    known = parse_version(version)
    return "/ready" if known is not None and known >= (0, 5, 23) else "/health"


def health_generates(version: str | None, env_value: str | None) -> bool:
    """Whether a question about health makes it generate. `env_value`: SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION."""
    known = parse_version(version)
    if known is not None and (known >= (0, 5, 23) or known < (0, 4, 10)):
        return False
    return (env_value or "").strip().lower() not in ("0", "false", "no")
