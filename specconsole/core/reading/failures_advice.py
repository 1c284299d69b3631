"""What to try after a failure; `set` only holds values that this start's own numbers support."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from specconsole.core.reading.failures_budget import (
    fewer_requests,
    held_by_others,
    holders_text,
    no_room_for_pool,
    out_of_memory,
    pool_of_tokens,
    shorter_context,
)
from specconsole.core.reading.model import Advice, FailureClass, Phase
from specconsole.core.reading.where import Where

__all__ = ["advise", "held_by_others"]


def advise(failure_class: FailureClass, text: str, phase: Phase | None, where: Where) -> Advice | None:
    """Advice for a cause; None where there is nothing better to say than the line itself."""
    maker = _MAKERS.get(failure_class)
    return maker(text, phase, where) if maker else None


def _kv(text: str, _phase: Phase | None, where: Where) -> Advice:
    # `... (3.05 GiB KV cache is needed, which is larger than the available KV cache memory (1.0 GiB). ... the estimated
    # maximum model length is 130944.` (vLLM's own estimate)
    if match := re.search(r"estimated maximum model length is (\d{1,12})", text):
        sizes = re.search(r"\(([\d.]+) GiB KV cache is needed.*?available KV cache memory \(([\d.]+) GiB", text)
        needed, has = (float(sizes[1]), float(sizes[2])) if sizes else (None, None)
        return shorter_context(int(match[1]), needed, has, where)
    # `larger than the maximum number of tokens that can be stored in KV cache (20480)`
    if match := re.search(r"can be stored in KV cache \((\d{1,12})\)", text):
        return shorter_context(int(match[1]), None, None, where)
    if match := re.search(r"exceeds the maximum allowed length \((\d{1,12}) tokens", text):
        return pool_of_tokens(where.budgets.kv_tokens or int(match[1]), where)
    return fewer_requests(text, where) or no_room_for_pool(where)


def _busy(text: str, _phase: Phase | None, _where: Where) -> Advice:
    holders = holders_text(text)
    named = f" ({holders})" if holders else ""
    what = f"Another process holds this GPU's memory{named}: find it and stop it, or take another GPU."
    # `Free memory on device (12.30/79.11 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB)`
    if match := re.search(r"\(([\d.]+)/([\d.]+) GiB\) on startup", text):
        share = math.floor(float(match[1]) / float(match[2]) * 100) / 100
        if share >= 0.1:
            fits = f"{what} {match[1]} of {match[2]} GiB are free: gpu_memory_utilization {share:g} fits in."
            return Advice(fits, {"gpu_memory_utilization": share})
    return Advice(what)


def _host(text: str, _phase: Phase | None, _where: Where) -> Advice:
    if match := re.search(r"\(([\d.]+)/([\d.]+) GiB\) on startup", text):
        share = math.floor(float(match[1]) / float(match[2]) * 100) / 100
        return Advice(
            f"Ask for no more memory than was free at start, {match[1]} of {match[2]} GiB: "
            f"gpu_memory_utilization {share:g}.",
            {"gpu_memory_utilization": share},
        )
    if re.search(r"/shm\b|\(shm\)|shared memory", text):  # `shmem-rss:0kB` of the kernel's OOM killer is not meant
        size = re.search(r"\(size (\d{1,15})\)", text)
        missing = f": a segment of {int(size[1]) / 2**20:.1f} MiB did not fit" if size else ""
        return Advice(
            f"Shared memory (/dev/shm) is full{missing}. Give the container more: --shm-size, or an emptyDir of medium "
            "Memory there."
        )
    return Advice("The host ran out of memory: raise the limit of the cgroup or job, or load fewer shards at once.")


def _context(text: str, _phase: Phase | None, where: Where) -> Advice:
    derived = re.search(r"greater than the derived (?:max_model_len|context_length) \(?(?:[^()]*=)?(\d{1,12})", text)
    key = "max_model_len" if "max_model_len" in text or where.engine == "vllm" else "context_length"
    what = "Ask for no more context than the model was made for"
    if "Target model's context_length" in text:
        what = "The draft was made for less context: lower the server's, or allow the override for the draft"
    asked = re.search(r"(?:User-specified|Target model's) (?:max_model_len|context_length) \((\d{1,12})\)", text)
    change = f": {key} {asked[1]} -> {derived[1]}" if derived and asked else ""
    return Advice(f"{what}{change}.", {key: int(derived[1])} if derived else None)


def _text(text: str) -> Callable[[str, Phase | None, Where], Advice]:
    return lambda _text, _phase, _where: Advice(text)


def _draft(text: str, _phase: Phase | None, _where: Where) -> Advice:
    """No setting makes a draft fit that was made for another target; the sizes say which one it was made for."""
    what = "The draft does not fit this target or this loader"
    # `mat1 and mat2 shapes cannot be multiplied (7x12288 and 6144x2048)`: what it got, and what it was made for
    if match := re.search(r"cannot be multiplied \(\d+x(\d{1,9}) and (\d{1,9})x\d+\)", text):
        return Advice(f"{what}: it gets {match[1]} numbers a token from the target and was made for {match[2]}.")
    # `size mismatch for x: copying a param with shape torch.Size([32000, 4096]) from checkpoint, the shape in current
    # model is torch.Size([128256, 4096])`
    if match := re.search(r"torch\.Size\(\[([\d, ]{1,40})\]\).*?torch\.Size\(\[([\d, ]{1,40})\]\)", text):
        return Advice(f"{what}: its files hold [{match[1]}] where this target wants [{match[2]}].")
    return Advice(f"{what}: check hidden size, vocabulary and architecture.")


def _port(text: str, _phase: Phase | None, _where: Where) -> Advice:
    match = re.search(r"(?:port[:= ]+|, )(\d{2,5})\b", text)
    which = f"Port {match[1]}" if match else "The port"
    who = f"specconsole holders --port {match[1]}" if match else "specconsole holders"
    return Advice(f"{which} is held by another process ({who} names it): stop that one or take another port.")


def _argument(text: str, _phase: Phase | None, where: Where) -> Advice:
    if fewer := fewer_requests(text, where):
        return fewer
    if "invalid device ordinal" in text:
        return Advice("More ranks than visible GPUs: lower the parallel sizes or widen CUDA_VISIBLE_DEVICES.")
    if match := re.search(r"unrecognized arguments: (.+)", text):
        return Advice(f"This version does not know {match[1].strip()}: look it up in its --help.")
    if match := re.search(r"use (--\S+)", text):
        return Advice(f"Use {match[1]} instead.")
    return Advice("This version refuses the value or the combination that the line names.")


_MAKERS: dict[FailureClass, Callable[[str, Phase | None, Where], Any]] = {
    "gpu-oom": out_of_memory,
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
    "draft-mismatch": _draft,
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
