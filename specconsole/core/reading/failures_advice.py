"""What to try after a failure; `set` only holds values that this start's own numbers support."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from specconsole.core.reading.model import Advice, FailureClass, Phase
from specconsole.core.reading.where import Where

_MARGIN_GIB = 1.0
_STEP = 0.02

# `Tried to allocate 3.56 GiB. GPU 0 has a total capacity of 139.80 GiB of which 2.78 GiB is free.` (torch 2.2 on)
_OOM = re.compile(
    r"Tried to allocate ([\d.]+) ([KMG]iB).*?total capacity of ([\d.]+) GiB of which ([\d.]+) ([KMG]iB) is free",
    re.DOTALL,
)
_OTHERS = re.compile(r"Process \d+ has ([\d.]+) ([KMG]iB) memory in use")
_OWN = re.compile(r"this process has ([\d.]+) ([KMG]iB) memory in use")
_UNITS = {"KiB": 1 / 1024 / 1024, "MiB": 1 / 1024, "GiB": 1.0}


def held_by_others(text: str) -> bool:
    """Whether an out-of-memory message of torch says that other processes hold most of what is used."""
    others = sum(float(size) * _UNITS[unit] for size, unit in _OTHERS.findall(text))
    own = _OWN.search(text)
    return own is not None and others > float(own[1]) * _UNITS[own[2]] and others > 1.0


def advise(failure_class: FailureClass, text: str, phase: Phase | None, where: Where) -> Advice | None:
    """Advice for a cause; None where there is nothing better to say than the line itself."""
    maker = _MAKERS.get(failure_class)
    return maker(text, phase, where) if maker else None


def _memory_key(where: Where) -> tuple[str, float | None]:
    if where.engine == "vllm":
        value = where.facts.args.get("gpu_memory_utilization", 0.92 if where.facts.version else None)
        return "gpu_memory_utilization", value if isinstance(value, int | float) else None
    value = where.facts.args.get("mem_fraction_static")
    return "mem_fraction_static", value if isinstance(value, int | float) else None


def _gpu_oom(text: str, phase: Phase | None, where: Where) -> Advice:
    what = {
        "weights": "The weights do not fit: more GPUs (tensor parallel), a smaller or quantised model, or a draft less.",
        "graph-capture": "Graphs need room beside the KV pool: a smaller static share, or fewer and smaller graph sizes.",
        "kv-cache": "The pool and what comes after it do not fit together: a smaller static share, or a shorter context.",
    }.get(phase or "", "A smaller static memory share leaves room for activations; so do fewer running requests.")
    match = _OOM.search(text)
    key, value = _memory_key(where)
    if match is None or value is None or where.engine not in ("sglang", "vllm") or phase == "weights":
        return Advice(what)
    wanted, total = float(match[1]) * _UNITS[match[2]], float(match[3])
    free = float(match[4]) * _UNITS[match[5]]
    less = max(_STEP, (wanted - free + _MARGIN_GIB) / total) if total > 0 else _STEP
    lower = math.floor((value - less) * 100) / 100
    return Advice(what, {key: lower} if lower > 0.1 else None)


def _kv(text: str, _phase: Phase | None, where: Where) -> Advice:
    # `... the estimated maximum model length is 130944.` (vLLM's own estimate)
    if match := re.search(r"estimated maximum model length is (\d{1,12})", text):
        return Advice(
            "Lower the context to what fits, or give the KV cache more memory.", {"max_model_len": int(match[1])}
        )
    # `larger than the maximum number of tokens that can be stored in KV cache (20480)`
    if match := re.search(r"can be stored in KV cache \((\d{1,12})\)", text):
        return Advice(
            "Lower the context to what fits, or give the KV cache more memory.", {"max_model_len": int(match[1])}
        )
    if "exceeds the maximum allowed length" in text:
        return Advice("The KV pool holds hardly any token: raise max_total_tokens or the static memory share.")
    key, value = _memory_key(where)
    higher = round(min(0.97, value + 0.05), 2) if value is not None else None
    return Advice(
        "No room was left for the KV pool after the weights: a larger static share, a smaller model, or more GPUs.",
        {key: higher} if higher is not None and value is not None and higher > value else None,
    )


def _busy(text: str, _phase: Phase | None, _where: Where) -> Advice:
    what = "Another process holds this GPU's memory: find it and stop it, or take another GPU."
    # `Free memory on device (12.30/79.11 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB)`
    if match := re.search(r"\(([\d.]+)/([\d.]+) GiB\) on startup", text):
        share = math.floor(float(match[1]) / float(match[2]) * 100) / 100
        return Advice(what, {"gpu_memory_utilization": share} if share >= 0.1 else None)
    return Advice(what)


def _host(text: str, _phase: Phase | None, _where: Where) -> Advice:
    if match := re.search(r"\(([\d.]+)/([\d.]+) GiB\) on startup", text):
        share = math.floor(float(match[1]) / float(match[2]) * 100) / 100
        return Advice("Ask for no more memory than was free at start.", {"gpu_memory_utilization": share})
    if re.search(r"/shm\b|\(shm\)|shared memory", text):  # `shmem-rss:0kB` of the kernel's OOM killer is not meant
        return Advice(
            "Give the container more shared memory (--shm-size, or an emptyDir of medium Memory at /dev/shm)."
        )
    return Advice("The host ran out of memory: raise the limit of the cgroup or job, or load fewer shards at once.")


def _context(text: str, _phase: Phase | None, where: Where) -> Advice:
    derived = re.search(r"greater than the derived (?:max_model_len|context_length) \(?(?:[^()]*=)?(\d{1,12})", text)
    key = "max_model_len" if "max_model_len" in text or where.engine == "vllm" else "context_length"
    what = "Ask for no more context than the model was made for"
    if "Target model's context_length" in text:
        what = "The draft was made for less context: lower the server's, or allow the override for the draft"
    return Advice(f"{what}.", {key: int(derived[1])} if derived else None)


def _text(text: str) -> Callable[[str, Phase | None, Where], Advice]:
    return lambda _text, _phase, _where: Advice(text)


def _port(text: str, _phase: Phase | None, _where: Where) -> Advice:
    match = re.search(r"(?:port[:= ]+|, )(\d{2,5})\b", text)
    which = f"Port {match[1]}" if match else "The port"
    return Advice(f"{which} is held by another process: stop that one or take another port.")


def _argument(text: str, _phase: Phase | None, _where: Where) -> Advice:
    if "invalid device ordinal" in text:
        return Advice("More ranks than visible GPUs: lower the parallel sizes or widen CUDA_VISIBLE_DEVICES.")
    if match := re.search(r"unrecognized arguments: (.+)", text):
        return Advice(f"This version does not know {match[1].strip()}: look it up in its --help.")
    if match := re.search(r"use (--\S+)", text):
        return Advice(f"Use {match[1]} instead.")
    return Advice("This version refuses the value or the combination that the line names.")


_MAKERS: dict[FailureClass, Callable[[str, Phase | None, Where], Any]] = {
    "gpu-oom": _gpu_oom,
    "kv-cache-too-small": _kv,
    "gpu-busy": _busy,
    "host-memory": _host,
    "context-too-long": _context,
    "port-in-use": _port,
    "bad-argument": _argument,
    "killed": _text(
        "Ended from outside, no cause in the log: look at dmesg, the journal and the limits of the job or pod."
    ),
    "model-not-found": _text(
        "Check the path or the repository's name, its access rights, and whether the host may go online."
    ),
    "checkpoint-corrupt": _text(
        "Compare the files with the repository (size, checksum) and fetch the named one again."
    ),
    "unsupported-model": _text("This build does not know the architecture or quantisation: a newer version may."),
    "draft-mismatch": _text(
        "The draft does not fit this target or this loader: check hidden size, vocabulary and architecture."
    ),
    "import-error": _text("Install the missing library, or the build of it that matches the others."),
    "jit-build-failed": _text("A kernel did not compile: check the compiler, its headers and CUDA_HOME on the host."),
    "driver-mismatch": _text("Driver, toolkit and compiled kernels do not fit this GPU: compare their versions."),
    "collective-failure": _text(
        "Start once more with NCCL_DEBUG=INFO; the first NCCL WARN of any rank names the reason."
    ),
    "network": _text(
        "The nodes cannot reach each other: check addresses, firewall and the interface names given to NCCL and Gloo."
    ),
    "hang": _text(
        "Compare the ranks' last lines: one that is behind holds the others; try without CUDA graphs to narrow it down."
    ),
    "gpu-hardware": _text("The device itself reported an error: look at dmesg and take the GPU out of use."),
    "device-error": _text("Run once with CUDA_LAUNCH_BLOCKING=1 to find the kernel; try without CUDA graphs."),
}
