"""SGLang: names that came, changed and went between releases (0.4.6, 0.5.3, 0.5.8, 0.5.12, 0.5.15, 0.5.19, 0.5.23)."""

from __future__ import annotations

import difflib

from specconsole.core.engines.sglang.asked import algorithm
from specconsole.core.launching.rules import Asked, Check, Verdict

# First sampled release that takes it.
ALGORITHMS = {
    "EAGLE": (0, 4), "EAGLE3": (0, 4), "NEXTN": (0, 4), "STANDALONE": (0, 5, 3), "NGRAM": (0, 5, 3),
    "DFLASH": (0, 5, 12), "DSPARK": (0, 5, 19), "UNO": (0, 5, 23),
}  # fmt: skip
_GRAPH_SIZES = {"cuda_graph_max_bs": "cuda_graph_max_bs_decode", "cuda_graph_bs": "cuda_graph_bs_decode"}
_NGRAM_OLD = (
    "speculative_ngram_min_match_window_size", "speculative_ngram_max_match_window_size",
    "speculative_ngram_branch_length",
)  # fmt: skip


def algorithm_of_version(asked: Asked) -> Verdict | None:
    """A plug-in may bring an algorithm of its own, so a name that no release has is a warning."""
    name = algorithm(asked)
    if name is None or asked.version is None:
        return None
    first = ALGORITHMS.get(name)
    if first is not None and asked.version >= first:
        return None
    if first is not None:
        since = ".".join(map(str, first))
        return Verdict("error", f"{name} came with {since}", ("speculative_algorithm",), fix=_nearest(name, asked))
    return Verdict("warning", f"{name} is no algorithm of SGLang's own: a plug-in must bring it",
                   ("speculative_algorithm",), fix=_nearest(name, asked))  # fmt: skip


def _nearest(name: str, asked: Asked) -> dict[str, object] | None:
    known = [one for one, first in ALGORITHMS.items() if asked.version is None or asked.version >= first]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return {"speculative_algorithm": close[0]} if close else None


def graph_sizes(*, gone: bool) -> Check:
    """`--cuda-graph-max-bs` and `--cuda-graph-bs`: an alias that warns, then ambiguous to argparse (status 2)."""

    def check(asked: Asked) -> Verdict | None:
        old = asked.given(*_GRAPH_SIZES)
        if not old:
            return None
        fix: dict[str, object] = dict.fromkeys(old)
        fix.update({_GRAPH_SIZES[key]: asked.get(key) for key in old if not asked.given(_GRAPH_SIZES[key])})
        names = ", ".join(f"--{key.replace('_', '-')}" for key in old)
        why = "no longer parsed (ambiguous option)" if gone else "an old name that warns"
        return Verdict("error" if gone else "warning", f"{names}: {why}", old, fix=fix)

    return check


def graph_sizes_too_new(asked: Asked) -> Verdict | None:
    new = {value: key for key, value in _GRAPH_SIZES.items()}
    given = asked.given(*new)
    if not given:
        return None
    fix: dict[str, object] = dict.fromkeys(given)
    fix.update({new[key]: asked.get(key) for key in given})
    names = ", ".join(f"--{key.replace('_', '-')}" for key in given)
    return Verdict("error", f"{names}: newer than this version", given, fix=fix)


def old_switches(asked: Asked) -> Verdict | None:
    """They work and warn in 0.5.23."""
    fix: dict[str, object] = {}
    old = asked.given("disable_cuda_graph", "enable_dp_attention")
    if "disable_cuda_graph" in old:
        fix |= {"disable_cuda_graph": None, "cuda_graph_backend_decode": "disabled",
                "cuda_graph_backend_prefill": "disabled"}  # fmt: skip
    if "enable_dp_attention" in old:
        size = int(asked.number("dp_size") or 1)
        fix |= {"enable_dp_attention": None, "attn_dp_size": size}
    if not fix:
        return None
    return Verdict("note", f"{', '.join('--' + key.replace('_', '-') for key in old)} works, and has a newer name", old,
                   fix=fix)  # fmt: skip


def piecewise(first_gone: str, *, on: bool) -> Check:
    key = "enable_piecewise_cuda_graph" if on else "disable_piecewise_cuda_graph"

    def check(asked: Asked) -> Verdict | None:
        if not asked.given(key):
            return None
        text = f"--{key.replace('_', '-')} {first_gone}"
        return Verdict("error", text, (key,), fix={key: None})

    return check


def beta_spec(asked: Asked) -> Verdict | None:
    if not asked.given("enable_beta_spec"):
        return None
    return Verdict("error", "--enable-beta-spec was of 0.5.3 to 0.5.5 only", ("enable_beta_spec",),
                   fix={"enable_beta_spec": None})  # fmt: skip


def ngram_names(asked: Asked) -> Verdict | None:
    given = asked.given(*_NGRAM_OLD)
    if not given:
        return None
    fix: dict[str, object] = dict.fromkeys(given)
    if window := asked.get("speculative_ngram_max_match_window_size"):
        fix["speculative_ngram_max_trie_depth"] = window
    return Verdict("error", f"{', '.join('--' + key.replace('_', '-') for key in given)}: gone since 0.5.10", given,
                   fix=fix)  # fmt: skip


def not_yet(*keys: str) -> Check:
    """Settings that these versions do not have."""

    def check(asked: Asked) -> Verdict | None:
        given = asked.given(*keys)
        if not given:
            return None
        names = ", ".join(f"--{key.replace('_', '-')}" for key in given)
        return Verdict("error", f"{names}: newer than this version", given, fix=dict.fromkeys(given))

    return check


def skip_mlp_sync(asked: Asked) -> Verdict | None:
    key = "speculative_skip_dp_mlp_sync"
    if not asked.given(key) or algorithm(asked) in ("EAGLE", "NEXTN"):
        return None
    return Verdict("error", "--speculative-skip-dp-mlp-sync works with EAGLE only", (key,), fix={key: None})
