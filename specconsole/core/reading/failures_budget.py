"""What to change when memory ran out: values, each computed from what this start printed, with the sum that makes it.

A value is only given where every number of its sum is known; otherwise the text says which budget ran out, and nothing
is set. Shares are rounded to hundredths, always to the safe side.
"""

from __future__ import annotations

import math
import re
from typing import Any

from specconsole.core.reading.model import Advice, Phase
from specconsole.core.reading.where import Where

SPARE_GIB = 1.0
"""Left over after a change: what torch and the driver take beside what they were asked for."""
_LEAST_SHARE, _MOST_SHARE = 0.1, 0.97
_CONTEXT_GIB = 1.0
"""CUDA context and libraries of a process, beside its weights."""
_MOST_GPUS = 64

# `Tried to allocate 3.56 GiB. GPU 0 has a total capacity of 139.80 GiB of which 2.78 GiB is free.` (torch 2.2 on)
_OOM = re.compile(
    r"Tried to allocate ([\d.]+) ([KMG]iB).*?total capacity of ([\d.]+) GiB of which ([\d.]+) ([KMG]iB) is free",
    re.DOTALL,
)
_OTHERS = re.compile(r"Process (\d+) has ([\d.]+) ([KMG]iB) memory in use")
_OWN = re.compile(r"this process has ([\d.]+) ([KMG]iB) memory in use")
# `CUDA out of memory occurred when warming up sampler with 1024 dummy requests.` (vLLM gpu_model_runner.py)
_DUMMY = re.compile(r"warming up sampler with (\d{1,6}) dummy requests")
UNITS = {"KiB": 1 / 1024 / 1024, "MiB": 1 / 1024, "GiB": 1.0}
_WHAT = {
    "weights": "The weights ran out of room",
    "graph-capture": "Graph capture ran out of room",
    "compile": "Graph capture ran out of room",
    "kv-cache": "The KV pool ran out of room",
}
_OTHERWISE = {
    "weights": "more GPUs, a smaller or quantised model, or a draft less",
    "graph-capture": "a smaller static share, or fewer and smaller graph sizes",
    "kv-cache": "a smaller static share, or a shorter context",
}


def held_by_others(text: str) -> bool:
    """Whether an out-of-memory message of torch says that other processes hold most of what is used."""
    others = sum(float(size) * UNITS[unit] for _, size, unit in _OTHERS.findall(text))
    own = _OWN.search(text)
    return own is not None and others > float(own[1]) * UNITS[own[2]] and others > 1.0


def holders_text(text: str) -> str:
    """`pid 11723 holds 136.5 GiB`; "" where the message names nobody."""
    return ", ".join(
        f"pid {pid} holds {float(size) * UNITS[unit]:.1f} GiB" for pid, size, unit in _OTHERS.findall(text)
    )


def share_of(where: Where) -> tuple[str, float | None]:
    """The engine's static memory share: its setting and this start's value, None where it is not known."""
    if where.engine == "vllm":
        value = where.facts.args.get("gpu_memory_utilization", _default_utilization(where.facts.version))
        return "gpu_memory_utilization", _number(value)
    return "mem_fraction_static", _number(where.facts.args.get("mem_fraction_static"))


def _default_utilization(version: str | None) -> float | None:
    """vLLM prints only what was asked for; its default is 0.92 from 0.32 on and was 0.9 (config/cache.py)."""
    found = re.match(r"v?(\d{1,4})\.(\d{1,4})", version or "")
    if found is None:
        return None
    return 0.92 if (int(found[1]), int(found[2])) >= (0, 32) else 0.9


def out_of_memory(text: str, phase: Phase | None, where: Where) -> Advice:
    """For `gpu-oom`: the budget that ran out, and the change that makes room for what was wanted."""
    what = _WHAT.get(phase or "", "Activations ran out of room")
    otherwise = _OTHERWISE.get(phase or "", "a smaller static share, or fewer running requests")
    spent = where.budgets.text()
    told = f"{what} ({spent})" if spent else what
    found = _OOM.search(text)
    if dummy := _DUMMY.search(text):
        return Advice(f"{told}: {dummy[1]} requests at once are too many for what is left (max_num_seqs).")
    if found is None or where.engine not in ("sglang", "vllm"):
        return Advice(f"{told}: {otherwise}.")
    wanted, total = float(found[1]) * UNITS[found[2]], float(found[3])
    free = float(found[4]) * UNITS[found[5]]
    if phase == "weights":
        return _more_ranks(told, otherwise, text, total, free, where)
    return _smaller_share(told, otherwise, wanted, free, total, where)


def _smaller_share(told: str, otherwise: str, wanted: float, free: float, total: float, where: Where) -> Advice:
    key, value = share_of(where)
    rest = _rest_of_capture(free, where)
    spare = max(SPARE_GIB, rest)
    whole = where.budgets.before_gib if key == "mem_fraction_static" and where.budgets.before_gib else total
    if value is None or whole <= 0:
        return Advice(f"{told}: {otherwise}.")
    more = max(0.0, wanted - free) + spare
    lower = _down(value - more / whole)
    pool = where.budgets.kv_gib
    if lower < _LEAST_SHARE or (pool is not None and pool - (value - lower) * whole <= 0):
        return Advice(f"{told}: {otherwise}; no static share leaves {more:.1f} GiB more and a KV pool.")
    why = f"{spare:.1f} for what is still to be captured" if rest > SPARE_GIB else f"{spare:.1f} spare"
    return Advice(
        f"{told}: wanted {wanted:.2f} with {free:.2f} free, so {max(0.0, wanted - free):.2f} + {why} = {more:.2f} of "
        f"{whole:.1f} GiB: {key} {value:g} -> {lower:g}.",
        {key: lower},
    )


def _rest_of_capture(free: float, where: Where) -> float:
    """GiB that the graphs still to come take, if they take as much each as those before: the first are the largest."""
    begin, done = where.budgets.capture_gib, where.done_share
    if where.phase != "graph-capture" or begin is None or done is None or not 0.05 < done < 1.0 or begin <= free:
        return 0.0
    return (begin - free) / done * (1.0 - done)


def _more_ranks(told: str, otherwise: str, text: str, total: float, free: float, where: Where) -> Advice:
    """Weights that do not fit on one GPU: as many ranks as their size, known from the share that was loaded, needs."""
    key = "tp_size" if where.engine == "sglang" else "tensor_parallel_size"
    ranks = _number(where.facts.args.get(key)) or 1.0
    own = _OWN.search(text)
    done = where.done_share
    if own is None or done is None or done < 0.1 or where.part == "draft":
        return Advice(f"{told}: {otherwise}.")
    loaded = float(own[1]) * UNITS[own[2]]
    whole = loaded / done
    wanted = int(ranks)
    # As much as there is beside what others hold, less the context and a tenth for pool and activations.
    room = (loaded + free - _CONTEXT_GIB) * 0.9
    while room > 0 and whole * ranks / wanted > room and wanted < _MOST_GPUS:
        wanted *= 2
    if room <= 0 or wanted == int(ranks) or wanted >= _MOST_GPUS:
        return Advice(f"{told}: {otherwise}.")
    return Advice(
        f"{told}: {loaded:.1f} GiB at {done:.0%} of the weights is about {whole:.0f} GiB a GPU of {total:.0f}: "
        f"{key} {int(ranks)} -> {wanted} needs about {whole * ranks / wanted:.0f} each.",
        {key: wanted},
    )


def fewer_requests(text: str, where: Where) -> Advice | None:
    """More requests at once were asked for than there is room for, and the line says how many would do; None for
    another text."""
    # `ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (854). Each decode sequence requires one ...`
    # (vLLM config/compilation.py, hybrid models)
    if found := re.search(r"max_num_seqs \((\d{1,7})\) exceeds available Mamba cache blocks \((\d{1,7})\)", text):
        told = f"Each request needs a state block, and {found[2]} fit beside the weights"
        fits = int(found[2])
        return Advice(f"{told}: max_num_seqs {found[1]} -> {fits}.", {"max_num_seqs": fits} if fits else None)
    # `max_num_batched_tokens (64) must be greater than or equal to max_num_seqs (256).` (vLLM config/scheduler.py)
    if found := re.search(r"max_num_batched_tokens \((\d{1,9})\) must be greater .*max_num_seqs \((\d{1,7})\)", text):
        told = f"A step of {found[1]} tokens can't serve {found[2]} requests at once"
        return Advice(f"{told}: max_num_seqs {found[2]} -> {found[1]}.", {"max_num_seqs": int(found[1])})
    # `AssertionError: max_running_request is zero` (SGLang managers/tp_worker.py): the number is divided by dp_size
    if "max_running_request is zero" in text:
        asked = _number(where.facts.args.get("max_running_requests"))
        ranks = _number(where.facts.args.get("dp_size"))
        if asked is not None and ranks is not None and asked < ranks:
            told = f"{asked:g} requests over {ranks:g} data-parallel ranks leave none for each"
            return Advice(f"{told}: max_running_requests {asked:g} -> {ranks:g}.", {"max_running_requests": int(ranks)})
        return no_room_for_pool(where)
    return None


def no_room_for_pool(where: Where) -> Advice:
    """SGLang: the weights left less than the static share keeps back. A larger share, or more ranks."""
    key, value = share_of(where)
    budgets = where.budgets
    if where.engine != "sglang" or value is None or budgets.before_gib is None or budgets.loaded_gib is None:
        said = budgets.text()
        left = f" ({said})" if said else ""
        return Advice(
            f"No room was left for the KV pool after the weights{left}: a larger static share, a smaller model, or more GPUs."
        )
    before, after = budgets.before_gib, budgets.loaded_gib
    kept = before * (1.0 - value)
    told = (
        f"After the weights {after:.1f} of {before:.1f} GiB are free, and {key} {value:g} keeps {kept:.1f} of them back"
    )
    higher = math.ceil(round((1.0 - (after - SPARE_GIB) / before) * 100, 6)) / 100
    if value < higher <= _MOST_SHARE:
        pool = after - before * (1.0 - higher)
        return Advice(f"{told}: {key} {value:g} -> {higher:g} leaves {pool:.1f} GiB for the KV pool.", {key: higher})
    ranks = int(_number(where.facts.args.get("tp_size")) or 1)
    wanted = ranks
    while wanted < _MOST_GPUS and before - (before - after) * ranks / wanted < kept + SPARE_GIB:
        wanted *= 2
    if wanted in (ranks, _MOST_GPUS):
        return Advice(f"{told}: a smaller model, or more GPUs.")
    each = (before - after) * ranks / wanted
    return Advice(f"{told}: tp_size {ranks} -> {wanted} makes the weights {each:.1f} GiB each.", {"tp_size": wanted})


def pool_of_tokens(tokens: int, where: Where) -> Advice:
    """A KV pool of so few tokens that no request fits."""
    context = _number(where.facts.args.get("context_length") or where.facts.args.get("max_model_len"))
    cap = _number(where.facts.args.get("max_total_tokens"))
    if cap is not None and context is not None and cap < context:
        return Advice(
            f"The KV pool was capped at {cap:g} tokens, and one request may have {context:g}: "
            f"max_total_tokens {cap:g} -> {context:g}.",
            {"max_total_tokens": int(context)},
        )
    key, value = share_of(where)
    budgets = where.budgets
    told = f"The KV pool holds {tokens} tokens"
    known = (budgets.kv_gib, budgets.kv_tokens, budgets.before_gib, value, context)
    if any(number is None for number in known) or not budgets.kv_tokens or (budgets.kv_gib or 0) <= 0.05:
        return Advice(f"{told}: raise max_total_tokens or the static memory share.")
    assert budgets.kv_gib is not None
    assert budgets.before_gib is not None
    assert value is not None
    assert context is not None
    each = budgets.kv_gib / budgets.kv_tokens
    missing = (context - budgets.kv_tokens) * each
    higher = math.ceil(round((value + missing / budgets.before_gib) * 100, 6)) / 100
    if not value < higher <= _MOST_SHARE:
        return Advice(f"{told}: a shorter context, or more GPUs.")
    return Advice(
        f"{told}, {each * 1024:.2f} MiB each; {context:g} need {missing:.1f} GiB more of {budgets.before_gib:.1f}: "
        f"{key} {value:g} -> {higher:g}.",
        {key: higher},
    )


def shorter_context(fits: int, needed_gib: float | None, has_gib: float | None, where: Where) -> Advice:
    """vLLM's own estimate of the longest context that the KV cache holds."""
    asked = _number(where.facts.args.get("max_model_len"))
    sizes = f"needs {needed_gib:g} GiB of KV cache and {has_gib:g} are there: " if needed_gib and has_gib else ""
    old = f"{asked:g} -> " if asked is not None else ""
    return Advice(f"The context {sizes}max_model_len {old}{fits}, or more memory for the KV cache.", _set(fits))


def _set(fits: int) -> dict[str, Any]:
    return {"max_model_len": fits}


def _down(share: float) -> float:
    return math.floor(round(share * 100, 6)) / 100


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
