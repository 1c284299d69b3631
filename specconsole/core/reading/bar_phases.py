"""Which phase a progress bar belongs to, by its text; and progress that is told in words, as a bar."""

from __future__ import annotations

import re

from specconsole.core.reading.bars import Bar
from specconsole.core.reading.events import Count
from specconsole.core.reading.model import Part, Phase

# Words in a bar's text -> phase; the first that fits. Texts: SGLang 0.4.6 to 0.5.23, vLLM 0.10 to 0.33,
# transformers 4.40 to 5.19, huggingface_hub 0.20 to 1.x, modelscope.
BAR_PHASES: tuple[tuple[tuple[str, ...], Phase, Part | None], ...] = (
    (("fetching", "download", "pulling ", "reconstructing"), "download", None),
    (("draft extend",), "graph-capture", "draft-extend"),
    (("capturing draft", "capturing eagle", "capturing prefill cuda", "capturing decode cuda", "capturing speculator"), "graph-capture", "draft"),
    (("captur", "cuda graph", "[bcg]"), "graph-capture", None),
    (("shard", "runai", "fastsafetensor", "instanttensor", "loading weight", "loading safetensors", "loading checkpoint", "loading pt", "load weight", "loading layers", "loading model", "loading tensors"), "weights", None),
    (("warmup", "warm-up", "autotun", "deepgemm", "deep_gemm", "compil", "jit", "tuning"), "compile", None),
)  # fmt: skip
# `model-00001-of-00004.safetensors:  25%|##  | 1.24G/4.98G [01:10<03:30, 17.8MB/s]`: the hub names its bars by file.
_FILE_NAME = re.compile(r"\.(?:safetensors|bin|gguf|pt|pth|json|model|txt|py|msgpack|h5|onnx)$", re.IGNORECASE)


def bar_phase(bar: Bar) -> tuple[Phase | None, Part | None]:
    """What a bar's text says of the phase; (None, None) for a bar without a telling text."""
    low = bar.desc.lower()
    if bar.unit == "byte" and _FILE_NAME.search(low):
        return "download", None
    for words, phase, part in BAR_PHASES:
        if any(word in low for word in words):
            return phase, part
    return None, None


def told_bar(count: Count) -> Bar:
    """Progress told in words, as the bar that it is."""
    return Bar(
        desc=count.phase, done=count.done, total=count.total, unit=count.unit, percent=None, elapsed_s=None,
        remaining_s=None, printed_rate_per_s=None, start=0, end=0, finished=True,
    )  # fmt: skip
