"""Where a start's GPU memory went, by the server's own words: before the weights, after them, after the KV pool, after
the graphs. Of several ranks the one that has least left counts, since it is the one that runs out.

SGLang prints GiB as GB (`utils/common.py`, `get_available_gpu_memory`, 0.4.6 to 0.5.23).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from specconsole.core.reading.events import Line

# `Load weight begin. avail mem=139.09 GB`
_BEGIN = re.compile(r"^Load weight begin\.? avail mem=([\d.]+) GB")
# `Load weight end. elapsed=1.47 s, type=LlamaForCausalLM, avail mem=133.30 GB, mem usage=5.79 GB.`
_LOADED = re.compile(r"^Load weight end\..*avail mem=([\d.]+) GB")
# `Memory pool end. avail mem=0.60 GB`
_POOL = re.compile(r"^Memory pool end\. avail mem=([\d.]+) GB")
# `KV Cache is allocated. dtype: torch.bfloat16, #tokens: 2172666, K size: 66.30 GB, V size: 66.30 GB`
_TOKENS = re.compile(r"KV Cache is allocated\..*#tokens: (\d{1,12})")
# `Capture target decode CUDA graph begin. backend=full, ..., avail mem=0.40 GB`, `... end. ..., avail mem=0.22 GB.`
_CAPTURE = re.compile(r"^Capture .*graphs? (begin|end)\b.*avail mem=([\d.]+) GB")
# vLLM: `Model loading took 14.99 GiB memory and 5.1 seconds`, `Available KV cache memory: -1.20 GiB`,
# `Graph capturing finished in 21 secs, took 0.93 GiB`, `GPU KV cache size: 412,345 tokens`,
# `Explicitly set (1.0/23.54) GiB for KV cache on node 0.` (CPU)
_VLLM_WEIGHTS = re.compile(r"^Model loading took ([\d.]+) ?GiB")
_VLLM_KV = re.compile(r"^Available KV cache memory: (-?[\d.]+) GiB")
_VLLM_GRAPHS = re.compile(r"^Graph capturing finished in [\d.]+ secs, took ([\d.]+) GiB")
_VLLM_TOKENS = re.compile(r"KV cache size: ([\d,]{1,15}) tokens")
_VLLM_CPU = re.compile(r"^Explicitly set \(([\d.]+)/([\d.]+)\) GiB for KV cache")


@dataclass(slots=True)
class Budgets:
    """In GiB; None: not said. Plain data, part of the reader's checkpoint."""

    before_gib: float | None = None
    """Free before the first weights."""
    loaded_gib: float | None = None
    """Free after all weights so far."""
    pooled_gib: float | None = None
    """Free after the KV pool."""
    capture_gib: float | None = None
    """Free when the capture that goes on (or the last one) began."""
    captured_gib: float | None = None
    """Free after the last capture that ended."""
    total_gib: float | None = None
    weights_said_gib: float | None = None
    kv_said_gib: float | None = None
    """What the KV cache gets; below 0 when nothing is left for it."""
    kv_tokens: int | None = None

    @property
    def weights_gib(self) -> float | None:
        if self.weights_said_gib is not None:
            return self.weights_said_gib
        return None if self.before_gib is None or self.loaded_gib is None else self.before_gib - self.loaded_gib

    @property
    def kv_gib(self) -> float | None:
        if self.kv_said_gib is not None:
            return self.kv_said_gib
        return None if self.loaded_gib is None or self.pooled_gib is None else self.loaded_gib - self.pooled_gib

    @property
    def graphs_gib(self) -> float | None:
        if self.pooled_gib is None or self.captured_gib is None:
            return None
        return max(0.0, self.pooled_gib - self.captured_gib)

    def see(self, line: Line) -> None:
        """A line that means something to its dialect."""
        text = line.text
        if "GB" not in text and "GiB" not in text and "tokens" not in text:
            return
        if found := _BEGIN.match(text):
            if self.loaded_gib is None:
                self.before_gib = _least(self.before_gib, found[1])
        elif found := _LOADED.match(text):
            self.loaded_gib = _least(self.loaded_gib, found[1])
        elif found := _POOL.match(text):
            self.pooled_gib = _least(self.pooled_gib, found[1])
        elif found := _CAPTURE.match(text):
            if found[1] == "begin":
                self.capture_gib = float(found[2])
            else:
                self.captured_gib = _least(self.captured_gib, found[2])
        elif found := _TOKENS.search(text) or _VLLM_TOKENS.search(text):
            self.kv_tokens = self.kv_tokens or int(found[1].replace(",", ""))
        else:
            self._vllm(text)

    def _vllm(self, text: str) -> None:
        if found := _VLLM_WEIGHTS.match(text):
            self.weights_said_gib = max(self.weights_said_gib or 0.0, float(found[1]))
        elif found := _VLLM_KV.match(text):
            self.kv_said_gib = _least(self.kv_said_gib, found[1])
        elif found := _VLLM_CPU.match(text):
            self.kv_said_gib, self.total_gib = float(found[1]), float(found[2])
        elif found := _VLLM_GRAPHS.match(text):
            self.captured_gib = None if self.captured_gib is None else self.captured_gib - float(found[1])

    def text(self) -> str:
        """`weights 5.8, KV pool 132.7 of 139.1 GiB`; "" when nothing is known."""
        parts = [
            f"{name} {size:.1f}"
            for name, size in (("weights", self.weights_gib), ("KV pool", self.kv_gib), ("graphs", self.graphs_gib))
            if size is not None
        ]
        if not parts:
            return ""
        whole = f" of {self.before_gib:.1f}" if self.before_gib is not None else ""
        return f"{', '.join(parts)}{whole} GiB"


def _least(known: float | None, told: str) -> float:
    return float(told) if known is None else min(known, float(told))
