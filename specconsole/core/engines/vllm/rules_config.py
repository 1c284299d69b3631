"""vLLM: what stands inside `--speculative-config`.

vLLM drafts chains only: SGLang's (steps k, topk 1, draft tokens k + 1) is `num_speculative_tokens` k here.
"""

from __future__ import annotations

import difflib
import json
from itertools import pairwise

from specconsole.core.engines.vllm.config import (
    BATCH_SIZES,
    KEYS,
    METHODS,
    NEEDS_MODEL,
    OLD_KEYS,
    OLD_METHODS,
    SHORTS,
    config_fix,
    method,
    speculative_config,
    written_table,
)
from specconsole.core.launching.rules import Asked, Check, Verdict

_KEY = ("speculative_config",)
_NEWEST = ("draft_lm_head_quantization", "xpress_topc")
_OLD_NAMES = {"steps": "num_speculative_tokens", "draft_model": "model", "speculative_model": "model",
              "tensor_parallel_size": "draft_tensor_parallel_size"}  # fmt: skip


def unreadable(asked: Asked) -> Verdict | None:
    value = asked.get("speculative_config")
    if not isinstance(value, str):
        return None
    try:
        if isinstance(json.loads(value), dict):
            return None
        why = "it is no object"
    except ValueError as error:
        why = str(error)
    return Verdict("error", f"--speculative-config can't be read as JSON: {why}", ("speculative_config",))


def unknown_keys(asked: Asked) -> Verdict | None:
    config = speculative_config(asked) or {}
    unknown = [k for k in config if k not in (*KEYS, *OLD_KEYS) and not k.startswith("fly_")]
    if not unknown:
        return None
    meant = {k: _OLD_NAMES.get(k) or next(iter(difflib.get_close_matches(k, KEYS, n=1, cutoff=0.6)), None)
             for k in unknown}  # fmt: skip
    changes = {**dict.fromkeys(unknown), **{new: config[k] for k, new in meant.items() if new and new not in config}}
    text = f"unknown keys are refused: {', '.join(unknown)}"
    if guesses := [f"{k} -> {new}" for k, new in meant.items() if new]:
        text += f" (meant: {', '.join(guesses)})"
    return Verdict("error", text, _KEY, fix=config_fix(asked, **changes))


def old_keys(asked: Asked) -> Verdict | None:
    old = [k for k in speculative_config(asked) or {} if k in OLD_KEYS]
    if not old:
        return None
    return Verdict("error", f"{', '.join(old)}: gone after 0.20", _KEY, fix=config_fix(asked, **dict.fromkeys(old)))


def new_keys(asked: Asked) -> Verdict | None:
    new = [k for k in speculative_config(asked) or {} if k in _NEWEST or k.startswith("fly_")]
    if not new:
        return None
    text = f"{', '.join(new)}: newer than this version"
    return Verdict("error", text, _KEY, fix=config_fix(asked, **dict.fromkeys(new)))


def unknown_method(asked: Asked) -> Verdict | None:
    value = (speculative_config(asked) or {}).get("method")
    if value is None or value in (*METHODS, "[ngram]") or str(value).endswith("_mtp"):
        return None
    close = difflib.get_close_matches(str(value).lower(), METHODS, n=1, cutoff=0.6)
    text = f"method {value!r} is unknown; known: {', '.join(METHODS[:11])}"
    return Verdict("error", text, _KEY, fix=config_fix(asked, method=close[0]) if close else None)


def old_methods(asked: Asked) -> Verdict | None:
    value = (speculative_config(asked) or {}).get("method")
    if value not in OLD_METHODS:
        return None
    return Verdict("error", f"method {value} is gone after 0.32", _KEY)


def mtp_names(asked: Asked) -> Verdict | None:
    value = (speculative_config(asked) or {}).get("method")
    if not isinstance(value, str) or not value.endswith("_mtp"):
        return None
    return Verdict("note", f"method {value} is an old name of mtp", _KEY, fix=config_fix(asked, method="mtp"))


def method_guessed(asked: Asked) -> Verdict | None:
    config = speculative_config(asked)
    if config is None or config.get("method") or not config.get("model"):
        return None
    name = str(config["model"]).lower()
    words = (("eagle3", "eagle3"), ("eagle-", "eagle"), ("dflash", "dflash"), ("dspark", "dspark"))
    guess = next((kind for word, kind in words if word in name), None)
    said = f"`{guess}` by the model's name" if guess else "from the draft's configuration, else draft_model"
    return Verdict("note", f"no method is set: vLLM takes {said}", _KEY,
                   fix=config_fix(asked, method=guess) if guess else None)  # fmt: skip


def model_missing(asked: Asked) -> Verdict | None:
    config = speculative_config(asked)
    if config is None or config.get("model") or config.get("method") not in NEEDS_MODEL:
        return None
    return Verdict("error", f"method {config['method']} needs `model`, the draft's path", _KEY)


def tokens_missing(asked: Asked) -> Verdict | None:
    config = speculative_config(asked)
    if config is None:
        return None
    tokens, kind = config.get("num_speculative_tokens"), method(asked)
    if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0:
        return None
    # mtp's default is the model's own, suffix decoding's the depth of its tree; a speculators checkpoint says it too.
    if tokens is None and (kind in ("mtp", "suffix", None) or config.get(BATCH_SIZES)):
        return None
    text = f"num_speculative_tokens must be a whole number over 0, not {tokens!r}"
    return Verdict("error", text, _KEY, fix=config_fix(asked, num_speculative_tokens=3))


def twice(asked: Asked) -> Verdict | None:
    table = written_table(asked) or {}
    both = [short for short, key in SHORTS if asked.given(short) and key in table]
    if not both:
        return None
    names = ", ".join(f"--{short.replace('_', '-')}" for short in both)
    return Verdict("error", f"{names} and the same key in the JSON", (*_KEY, *both), fix=dict.fromkeys(both))


def shorts_too_new(asked: Asked) -> Verdict | None:
    given = {short: key for short, key in SHORTS if asked.given(short)}
    if not given:
        return None
    names = ", ".join(f"--{short.replace('_', '-')}" for short in given)
    table = {**(written_table(asked) or {}), **{key: asked.get(short) for short, key in given.items()}}
    return Verdict("error", f"{names}: newer than this version", tuple(given),
                   fix={**dict.fromkeys(given), "speculative_config": table})  # fmt: skip


def draft_parallel(asked: Asked) -> Verdict | None:
    size = (speculative_config(asked) or {}).get("draft_tensor_parallel_size")
    target = int(asked.number("tensor_parallel_size") or 1)
    if size is None or size in (1, target):
        return None
    text = f"draft_tensor_parallel_size must be 1 or the target's {target}, not {size}"
    return Verdict("error", text, (*_KEY, "tensor_parallel_size"),
                   fix=config_fix(asked, draft_tensor_parallel_size=target))  # fmt: skip


def per_batch_with_dp(asked: Asked) -> Verdict | None:
    if not (speculative_config(asked) or {}).get(BATCH_SIZES) or (asked.number("data_parallel_size") or 1) <= 1:
        return None
    return Verdict("overridden", "numbers of tokens per batch size are switched off with data parallelism",
                   (*_KEY, "data_parallel_size"), becomes={f"speculative_config.{BATCH_SIZES}": None},
                   fix=config_fix(asked, **{BATCH_SIZES: None}))  # fmt: skip


def per_batch_ranges(asked: Asked) -> Verdict | None:
    """`[[first, last, tokens], ...]`: from 1, without overlaps, tokens of 0 or more (v1/spec_decode/dynamic)."""
    config = speculative_config(asked) or {}
    value = config.get(BATCH_SIZES)
    if value is None:
        return None
    wrong = _wrong_ranges(value)
    if wrong:
        return Verdict("error", f"{BATCH_SIZES}: {wrong}", _KEY, fix=config_fix(asked, **{BATCH_SIZES: None}))
    most, asked_for = max(int(entry[2]) for entry in value), config.get("num_speculative_tokens")
    if isinstance(asked_for, int) and most > asked_for:
        return Verdict("overridden", f"numbers per batch size are cut at num_speculative_tokens {asked_for} (asked: "
                       f"{most})", _KEY, fix=config_fix(asked, num_speculative_tokens=most))  # fmt: skip
    return None


def _wrong_ranges(value: object) -> str:
    if not isinstance(value, list) or not value:
        return "a list of [first, last, tokens] is wanted"
    entries: list[tuple[int, int, int]] = []
    for entry in value:
        if not isinstance(entry, list | tuple) or len(entry) != 3 or not all(type(n) is int for n in entry):
            return f"{entry!r} is no [first, last, tokens]"
        first, last, tokens = entry
        if first < 1 or last < first or tokens < 0:
            return f"{list(entry)} is no range of batch sizes with 0 or more tokens"
        entries.append((first, last, tokens))
    entries.sort()
    if entries[0][0] != 1:
        return "the first range must start at 1"
    overlap = next((b for a, b in pairwise(entries) if b[0] <= a[1]), None)
    return f"{list(overlap)} overlaps the range before it" if overlap else ""


def per_batch_graphs(asked: Asked) -> Verdict | None:
    if not (speculative_config(asked) or {}).get(BATCH_SIZES) or asked.env.get("VLLM_USE_V2_MODEL_RUNNER") != "0":
        return None
    key = "env.VLLM_USE_V2_MODEL_RUNNER"
    text = "with the V1 runner, numbers of tokens per batch size leave piecewise CUDA graphs only"
    return Verdict("overridden", text, (key,), fix={key: "1"})


def synthetic(asked: Asked) -> Verdict | None:
    config = speculative_config(asked) or {}
    if config.get("rejection_sample_method") != "synthetic":
        return None
    rates = dict.fromkeys(("rejection_sample_method", "synthetic_acceptance_rates", "synthetic_acceptance_length"))
    return Verdict("warning", "SIMULATED: acceptance is synthetic; no result of it is real", _KEY,
                   fix=config_fix(asked, **rates))  # fmt: skip


def synthetic_alone(asked: Asked) -> Verdict | None:
    config = speculative_config(asked) or {}
    given = [key for key in ("synthetic_acceptance_rates", "synthetic_acceptance_length") if config.get(key)]
    if not given or config.get("rejection_sample_method") == "synthetic":
        return None
    return Verdict("error", f"{given[0]} works with rejection_sample_method synthetic only", _KEY,
                   fix=config_fix(asked, **dict.fromkeys(given)))  # fmt: skip


def sample_methods(*known: str) -> Check:
    """The values of `rejection_sample_method` in these versions."""

    def check(asked: Asked) -> Verdict | None:
        value = (speculative_config(asked) or {}).get("rejection_sample_method")
        if value is None or value in known:
            return None
        text = f"rejection_sample_method {value!r} is not known here; known: {', '.join(known)}"
        return Verdict("error", text, _KEY, fix=config_fix(asked, rejection_sample_method=None))

    return check


def draft_sampling(asked: Asked) -> Verdict | None:
    value = (speculative_config(asked) or {}).get("draft_sample_method")
    if value in (None, "greedy", "probabilistic"):
        return None
    return Verdict("error", f"draft_sample_method {value!r}: greedy or probabilistic", _KEY,
                   fix=config_fix(asked, draft_sample_method=None))  # fmt: skip


def other_vocabulary(asked: Asked) -> Verdict | None:
    config = speculative_config(asked) or {}
    if not config.get("use_heterogeneous_vocab"):
        return None
    if method(asked) not in ("draft_model", None):
        return Verdict("error", "use_heterogeneous_vocab works with method draft_model only", _KEY,
                       fix=config_fix(asked, use_heterogeneous_vocab=None))  # fmt: skip
    if config.get("draft_sample_method", "greedy") != "greedy":
        return Verdict("error", "use_heterogeneous_vocab works with greedy drafts only", _KEY,
                       fix=config_fix(asked, draft_sample_method="greedy"))  # fmt: skip
    return None


def lookup_range(asked: Asked) -> Verdict | None:
    config = speculative_config(asked) or {}
    least, most = config.get("prompt_lookup_min"), config.get("prompt_lookup_max")
    if not isinstance(least, int) or not isinstance(most, int) or least <= most:
        return None
    return Verdict("error", f"prompt_lookup_min {least} is over prompt_lookup_max {most}", _KEY,
                   fix=config_fix(asked, prompt_lookup_min=most))  # fmt: skip


def suffix_package(asked: Asked) -> Verdict | None:
    if method(asked) != "suffix":
        return None
    return Verdict("note", "suffix decoding needs the package arctic-inference in the server's environment", _KEY)


def mtp_layers(asked: Asked) -> Verdict | None:
    tokens, layers = (speculative_config(asked) or {}).get("num_speculative_tokens"), asked.model_mtp_layers
    if method(asked) != "mtp" or not isinstance(tokens, int) or not layers or tokens <= layers:
        return None
    if tokens % layers:
        fits = max(layers, tokens // layers * layers)
        return Verdict("error", f"num_speculative_tokens {tokens} is no multiple of the model's {layers} MTP layers",
                       _KEY, fix=config_fix(asked, num_speculative_tokens=fits))  # fmt: skip
    return Verdict("note", f"{layers} MTP layers draft {tokens} tokens by running again: later positions are accepted "
                   "less often", _KEY)  # fmt: skip


def eagle3_targets(*starts: str) -> Check:
    """Architectures whose EAGLE-3 heads these versions run, by how their names begin."""

    def check(asked: Asked) -> Verdict | None:
        name = asked.model_architecture
        if method(asked) != "eagle3" or name is None or name.startswith(starts):
            return None
        return Verdict("error", f"EAGLE-3 on a {name} came with a later version (here: {', '.join(starts)})", _KEY)

    return check
