"""Will a GGUF model fit? Weights and KV cache of llama.cpp's server, on GPUs and on the host, from the file's head.

llama.cpp (b10434 `llama-server --help`): `--n-gpu-layers` says how many of the layers, and the output layer behind
them, lie on GPUs; left out, `--fit` offloads what fits with 1 GiB spare on each. The context is for all slots together
(log of b10434: `n_ctx_slot`); a KV cache of other types is smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specconsole.core.launching.engine_settings import settings_of
from specconsole.core.launching.gguf_header import GgufHead
from specconsole.core.launching.model_files import Model
from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.profile import Profile

_GIB = 1024**3
_MARGIN_BYTES = _GIB
"""What `--fit` leaves free on each device (`--fit-target`, 1024 MiB)."""
# ggml's blocks of 32 values: bytes a value.
_WIDTHS = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "q8_0": 34 / 32, "q5_1": 24 / 32, "q5_0": 22 / 32, "q4_1": 20 / 32,
           "q4_0": 18 / 32, "iq4_nl": 18 / 32}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DeviceRoom:
    """Free memory of one GPU that the server may take."""

    index: int
    free_bytes: int


def token_bytes(profile: Profile, head: GgufHead | None) -> float | None:
    """KV bytes of one token of context; None where the head does not say (recurrent models among them)."""
    if head is None:
        return None
    layers, width, heads = (head.number(key) for key in ("block_count", "embedding_length", "attention.head_count"))
    groups = head.number("attention.head_count_kv") or heads
    if not layers or not width or not heads or not groups:
        return None
    settings = settings_of(profile)
    total = 0.0
    for cache, length in (("cache_type_k", "attention.key_length"), ("cache_type_v", "attention.value_length")):
        size = head.number(length) or width // heads
        total += size * _WIDTHS.get(str(settings.get(cache, "f16")).lower(), 2.0)
    return layers * groups * total


def context_of(profile: Profile, head: GgufHead | None) -> int:
    """Tokens of context that the server makes room for: all that is asked, else the model's own; 0: not known.

    More than a slot may use is taken as well: the log says `capping` after the cache was made (b10434).
    """
    value = settings_of(profile).get("ctx_size")
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    return (head.number("context_length") if head is not None else None) or 0


def kv_bytes(profile: Profile, head: GgufHead | None) -> int:
    """The KV cache whole; 0 where it is not known."""
    return int((token_bytes(profile, head) or 0.0) * context_of(profile, head))


def context_that_fits(profile: Profile, head: GgufHead | None, room_bytes: float) -> int | None:
    """The longest context, a multiple of 256, whose KV cache fits; None where nothing over 0 does."""
    each = token_bytes(profile, head)
    if not each or room_bytes <= 0:
        return None
    fits = int(room_bytes / each) // 256 * 256
    return fits if 0 < fits < context_of(profile, head) else None


def judge_devices(profile: Profile, target: Model, draft: Model, rooms: Sequence[DeviceRoom]) -> Finding | None:
    """A GGUF model on the GPUs that are there; None where nothing is to lie on them, or the weights are unknown."""
    settings = settings_of(profile)
    layers = target.gguf.number("block_count") if target.gguf is not None else None
    if target.weights_bytes is None or not layers or settings.get("device") == "none" or not rooms:
        return None
    asked = _layers_asked(settings.get("n_gpu_layers"))
    if asked == 0:
        return None
    whole = layers + 1
    count = whole if asked is None else min(asked, whole)
    each = (target.weights_bytes + kv_bytes(profile, target.gguf)) / whole
    beside = (draft.weights_bytes or 0) + kv_bytes(profile, draft.gguf)
    free = sum(max(0, room.free_bytes - _MARGIN_BYTES) for room in rooms)
    fits = max(0, min(whole, int((free - beside) / each)))
    parts = f"weights {target.weights_bytes / _GIB:.1f}, KV {kv_bytes(profile, target.gguf) / _GIB:.1f}"
    parts += f", draft {beside / _GIB:.1f}" if beside else ""
    where = f"{len(rooms)} GPUs have {sum(room.free_bytes for room in rooms) / _GIB:.1f} GiB free"
    text = f"{count} of {whole} layers take {(each * count + beside) / _GIB:.1f} GiB (GiB: {parts}); {where}"
    if count <= fits:
        return Finding("memory", "ok", text, name="estimate")
    source = "b10434 llama-server --help: --n-gpu-layers, --fit"
    if asked is None and str(settings.get("fit", "on")).lower() != "off":
        shorter = context_that_fits(profile, target.gguf, free - beside - target.weights_bytes)
        fix = {"ctx_size": shorter} if shorter is not None else None
        tries = f"--set ctx_size={shorter} for all of them" if shorter is not None else "a smaller quantisation"
        said = f"about {fits} of {whole} layers will fit on the GPUs, the rest runs on the CPU: {text}"
        return Finding("memory", "warning", said, tries, "estimate", fix, source)
    return Finding("memory", "stop", text, f"--set n_gpu_layers={fits}", "estimate", {"n_gpu_layers": fits}, source)


def _layers_asked(value: object) -> int | None:
    """A number of layers; None: all of them, or as many as fit."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return int(value) if isinstance(value, str) and value.isdigit() else None
