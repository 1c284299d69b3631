"""Target, draft, context and memory of one launch, judged from files and GPUs before any weight loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specconsole.core.engines.vllm import cpu_memory as vllm_on_cpu
from specconsole.core.engines.vllm.config import config_fix, speculative_config
from specconsole.core.launching.draft_check import check_draft
from specconsole.core.launching.draft_facts import DraftFacts, longest_context
from specconsole.core.launching.draft_names import check_own_heads
from specconsole.core.launching.engine_settings import ENGINE_FLAGS, settings_of, spelled
from specconsole.core.launching.findings import fix_text, of_draft
from specconsole.core.launching.llama_memory import DeviceRoom, context_that_fits, judge_devices, kv_bytes
from specconsole.core.launching.memory import GIB, MemoryQuestion, estimate_memory, kv_shape
from specconsole.core.launching.model_files import Model
from specconsole.core.launching.preflight import Finding, HostMemory, Severity
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.rules import Asked

# What the engines' own rules say already, with the version that it holds for.
_BY_RULES = ("context", "draft-context")
_VLLM_METHODS = {"eagle3": "EAGLE3", "eagle": "EAGLE", "draft_model": "DRAFT_MODEL"}
_LLAMA_VOCABULARY_SLACK = 128
"""llama.cpp common/speculative.cpp, SPEC_VOCAB_MAX_SIZE_DIFFERENCE."""


def draft_path(profile: Profile) -> str | None:
    """Where the draft is, whichever setting says it."""
    if profile.engine == "vllm":
        config = speculative_config(Asked(settings_of(profile))) or {}
        path = config.get("model")
    else:
        flags = ENGINE_FLAGS.get(profile.engine)
        path = settings_of(profile).get(flags.draft) if flags is not None and flags.draft else profile.draft_model
    return path if isinstance(path, str) and path else None


def draft_setting(profile: Profile, path: str) -> dict[str, Any]:
    """The settings that take another draft, spelled as the profile spells them."""
    if profile.engine == "vllm":
        return config_fix(Asked(settings_of(profile)), model=path)
    flags = ENGINE_FLAGS.get(profile.engine)
    return spelled(profile, {flags.draft: path}) if flags is not None and flags.draft else {"draft_model": path}


def target_path(profile: Profile) -> str | None:
    """Where the model is."""
    flags = ENGINE_FLAGS.get(profile.engine)
    path = settings_of(profile).get(flags.model) if flags is not None else profile.model
    return path if isinstance(path, str) and path else None


def algorithm(profile: Profile) -> str | None:
    """The kind of speculation in SGLang's words; None where it is none that a draft is checked for."""
    settings = settings_of(profile)
    if profile.engine == "sglang":
        value = settings.get("speculative_algorithm")
        return str(value).upper() if value else None
    if profile.engine == "vllm":
        return _VLLM_METHODS.get(str((speculative_config(Asked(settings)) or {}).get("method")))
    return None


def context_asked(profile: Profile) -> int | None:
    """The context length that is set; None where that is left to the server."""
    flags = ENGINE_FLAGS.get(profile.engine)
    value = settings_of(profile).get(flags.context) if flags is not None else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def judge_context(profile: Profile, target: Model) -> tuple[Finding, ...]:
    """SGLang's context against the target's own (vLLM and llama.cpp have rules for it)."""
    context, longest = context_asked(profile), longest_context(target.config) if target.config else None
    if profile.engine != "sglang" or context is None or longest is None or context <= longest:
        return ()
    if profile.env.get("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", "").lower() in ("1", "true", "yes", "on"):
        return ()
    text = f"context {context} is beyond the model's {longest} positions"
    return (Finding("rule", "stop", text, f"--set context_length={longest}", "context", {"context_length": longest},
                    "0.5.23 configs/model_config.py:1299"),)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DraftMaps:
    """What of a draft and its target's tokenizer was read besides heads. None: not there, or not read."""

    d2t: Sequence[int] | None = None
    t2d: Sequence[bool] | None = None
    common_tokens: Sequence[int] | None = None


def judge_draft(profile: Profile, target: Model, draft: Model, maps: DraftMaps) -> tuple[Finding, ...]:
    """The draft against the target; () where either was not read."""
    if target.gguf is not None and draft.gguf is not None:
        return _gguf_vocabulary(target, draft)
    kind = algorithm(profile)
    if kind is None or not target.config or not draft.config:
        return ()
    found = check_draft(
        DraftFacts(
            target.config,
            draft.config,
            tensors=draft.tensors,
            d2t=maps.d2t,
            t2d=maps.t2d,
            common_tokens=maps.common_tokens,
            engine=profile.engine,
            algorithm=kind,
            context=context_asked(profile),
            target_quantised="quantization_config" in target.config,
        )
    )
    ignored = {*_BY_RULES, "vocabulary"} if _other_vocabulary(profile) else set(_BY_RULES)
    findings = tuple(of_draft(one) for one in found if one.check not in ignored)
    if all(one.severity == "note" for one in findings):
        findings += (Finding("draft", "ok", f"draft: fits the target as {kind}", name="fits"),)
    return findings


def judge_own_heads(profile: Profile, target: Model) -> tuple[Finding, ...]:
    """Where the target drafts by itself (NEXTN, MTP): whether its checkpoint has the layers for it."""
    if draft_path(profile) is not None or not target.config:
        return ()
    if profile.engine == "sglang":
        wanted = algorithm(profile) in ("NEXTN", "EAGLE")
    else:
        config = speculative_config(Asked(settings_of(profile))) or {}
        wanted = profile.engine == "vllm" and str(config.get("method") or "").endswith("mtp")
    return tuple(of_draft(one) for one in check_own_heads(target.config, target.tensors)) if wanted else ()


def _other_vocabulary(profile: Profile) -> bool:
    """vLLM maps between vocabularies where it is told to."""
    if profile.engine != "vllm":
        return False
    return bool((speculative_config(Asked(settings_of(profile))) or {}).get("use_heterogeneous_vocab"))


def _gguf_vocabulary(target: Model, draft: Model) -> tuple[Finding, ...]:
    sizes = [m.gguf.metadata.get("tokenizer.ggml.tokens") if m.gguf else None for m in (target, draft)]
    if not all(isinstance(size, int) for size in sizes) or abs(sizes[0] - sizes[1]) <= _LLAMA_VOCABULARY_SLACK:  # type: ignore[operator]  # both are whole numbers here
        return (Finding("draft", "ok", "draft: its vocabulary is as large as the target's", name="vocabulary"),)
    text = f"draft: its vocabulary has {sizes[1]} tokens, the target's {sizes[0]}: few drafts can be accepted"
    return (Finding("draft", "warning", text, name="vocabulary"),)


@dataclass(frozen=True, slots=True)
class GpuRoom:
    """Memory of one GPU, and who holds it."""

    index: int
    total_bytes: int
    free_bytes: int
    holders: tuple[str, ...] = ()
    """One text for each process that holds over 256 MiB."""


def ranks_of(profile: Profile) -> int:
    """How many processes, of a GPU each, a launch starts on this host."""
    settings = settings_of(profile)
    sizes = ("tp_size", "pp_size") if profile.engine == "sglang" else ("tensor_parallel_size", "pipeline_parallel_size")
    ranks = 1
    for key in sizes:
        ranks *= _whole(settings.get(key)) or 1
    if profile.engine == "sglang":
        ranks //= max(1, _whole(settings.get("nnodes")) or 1)
    return max(1, ranks)


def gpus_used(profile: Profile, gpus: Sequence[GpuRoom]) -> tuple[int, tuple[GpuRoom, ...]]:
    """How many GPUs a launch needs on this host, and which of those that are there it takes."""
    ranks, settings = ranks_of(profile), settings_of(profile)
    visible = profile.env.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        wanted = [part.strip() for part in visible.split(",")]
        by_index = {str(gpu.index): gpu for gpu in gpus}
        if not all(part in by_index for part in wanted):
            return ranks, ()  # by UUID, or none at all: not judged
        gpus = [by_index[part] for part in wanted]
    first = _whole(settings.get("base_gpu_id")) or 0
    return max(1, ranks), tuple(gpus[first : first + max(1, ranks)])


def judge_gpu_memory(profile: Profile, target: Model, draft: Model, gpus: Sequence[GpuRoom]) -> tuple[Finding, ...]:
    """Weights, draft, KV and graphs against what is free on the GPUs that it will take."""
    needed, used = gpus_used(profile, gpus)
    if not used and profile.env.get("CUDA_VISIBLE_DEVICES") is not None:
        return (Finding("memory", "note", "CUDA_VISIBLE_DEVICES names no GPU by its number: memory is not judged"),)
    if len(used) < needed:
        text = f"{needed} GPUs are asked for, and {len(used)} are there to take"
        return (Finding("gpu", "stop", text, "fewer ranks (tp), or another host", "count"),)
    holders = [f"GPU {gpu.index}: {one}" for gpu in used for one in gpu.holders]
    held = f"memory is held on {'; '.join(holders)}"
    found = [Finding("gpu", "warning", held, "specconsole holders shows them in full", "holders")] if holders else []
    if target.weights_bytes is None:
        return (*found, Finding("memory", "note", "the weights could not be measured: memory is not judged"))
    settings = settings_of(profile)
    tp = _whole(settings.get("tp_size" if profile.engine == "sglang" else "tensor_parallel_size")) or 1
    fullest = min(used, key=lambda gpu: gpu.free_bytes)
    speculates = algorithm(profile) is not None or bool(settings.get("speculative_config"))
    dtype = settings.get("kv_cache_dtype")
    fraction = settings.get("mem_fraction_static" if profile.engine == "sglang" else "gpu_memory_utilization")
    requests = settings.get("max_running_requests" if profile.engine == "sglang" else "max_num_seqs")
    estimate = estimate_memory(
        MemoryQuestion(
            engine="sglang" if profile.engine == "sglang" else "vllm",
            weights_bytes=target.weights_bytes,
            tp_size=tp,
            kv=kv_shape(target.config, tp_size=tp, kv_dtype=dtype if isinstance(dtype, str) else None),
            free_bytes=fullest.free_bytes,
            total_bytes=fullest.total_bytes,
            draft_weights_bytes=draft.weights_bytes or 0,
            draft_kv=kv_shape(draft.config, tp_size=tp) if draft.config else None,
            speculative=speculates,
            fraction=float(fraction) if isinstance(fraction, int | float) and not isinstance(fraction, bool) else None,
            context=context_asked(profile) or (longest_context(target.config) if target.config else None),
            requests=_whole(requests),
        )
    )
    parts = ", ".join(f"{part.name} {part.mid_bytes / GIB:.1f}" for part in estimate.parts)
    where = f"GPU {fullest.index} has {fullest.free_bytes / GIB:.1f} of {fullest.total_bytes / GIB:.1f} GiB free"
    text = f"{estimate.text} ({where}; GiB: {parts})"
    fix = estimate.fix
    tries = " ".join(f"--set {key}={value}" for key, value in (fix or {}).items())
    severity = {True: "ok", None: "warning" if fix else "ok", False: "stop"}[estimate.fits]
    return (*found, Finding("memory", severity, text, tries, "estimate", fix))  # type: ignore[arg-type]  # of the table's


def host_bytes(profile: Profile, target: Model, draft: Model) -> int | None:
    """Weights, draft and KV cache, for a server that runs on the host's CPUs; None where the weights are unknown."""
    if target.weights_bytes is None:
        return None
    kv = kv_bytes(profile, target.gguf)
    return target.weights_bytes + (draft.weights_bytes or 0) + kv


def judge_host_memory(profile: Profile, target: Model, draft: Model, memory: HostMemory) -> Finding | None:
    """Weights and KV against the machine's memory, for a server that runs on its CPUs; None where that is unknown."""
    if target.weights_bytes is None or memory.total_bytes is None:
        return None
    kv = kv_bytes(profile, target.gguf)
    needed = target.weights_bytes + (draft.weights_bytes or 0) + kv
    parts = f"weights {target.weights_bytes / GIB:.2f}, draft {(draft.weights_bytes or 0) / GIB:.2f}"
    parts += f", KV {kv / GIB:.2f}" if kv else ""
    free = "" if memory.available_bytes is None else f", {memory.available_bytes / GIB:.1f} free"
    text = f"{needed / GIB:.2f} GiB are needed (GiB: {parts}); the host has {memory.total_bytes / GIB:.1f}{free}"
    if profile.engine == "vllm" and (refused := _vllm_on_cpu(profile, target, memory)) is not None:
        return refused
    room = memory.total_bytes if memory.available_bytes is None else memory.available_bytes
    if needed <= room:
        return Finding("memory", "ok", text, name="estimate")
    # With a tenth to spare: what is free now may be less then.
    shorter = context_that_fits(profile, target.gguf, (room - (needed - kv)) * 0.9)
    fix = {"ctx_size": shorter} if shorter is not None and profile.engine == "llamacpp" else None
    severity: Severity = "stop" if needed > memory.total_bytes else "warning"
    return Finding("memory", severity, text, fix_text(fix) or "a smaller model or context", "estimate", fix)


def judge_llama_devices(profile: Profile, target: Model, draft: Model, gpus: Sequence[GpuRoom]) -> tuple[Finding, ...]:
    """llama.cpp on the GPUs that it may take; () where the host's memory is what counts."""
    visible = profile.env.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        by_index = {str(gpu.index): gpu for gpu in gpus}
        gpus = [by_index[part.strip()] for part in visible.split(",") if part.strip() in by_index]
    estimate = judge_devices(profile, target, draft, [DeviceRoom(gpu.index, gpu.free_bytes) for gpu in gpus])
    if estimate is None:
        return ()
    holders = [f"GPU {gpu.index}: {one}" for gpu in gpus for one in gpu.holders]
    held = f"memory is held on {'; '.join(holders)}"
    found = [Finding("gpu", "warning", held, "specconsole holders shows them in full", "holders")] if holders else []
    return (*found, estimate)


def _vllm_on_cpu(profile: Profile, target: Model, memory: HostMemory) -> Finding | None:
    settings = settings_of(profile)
    context = context_asked(profile) or (longest_context(target.config) if target.config else None)
    tp = _whole(settings.get("tensor_parallel_size")) or 1
    shape = kv_shape(target.config, tp_size=tp) if target.config else None
    why, what = vllm_on_cpu.why_refused(
        settings,
        profile.env,
        total_bytes=memory.total_bytes,
        available_bytes=memory.available_bytes,
        kv_bytes=int(shape.bytes_per_token * context) if shape is not None and context is not None else None,
    )
    if not why:
        return None
    # Only where the size is set is it certain that it will run on the CPUs: a GPU that can't be seen is one, too.
    sure = vllm_on_cpu.kv_room_bytes(settings, profile.env) is not None
    return Finding("memory", "stop" if sure else "warning", why, what, "estimate", None, "0.32 v1/worker/cpu_worker.py")


def ports_beside(profile: Profile, port: int | None) -> Mapping[int, str]:
    """Ports besides the server's own that a start takes on this host, by what names them.

    SGLang: `--nccl-port`, `--dist-init-addr` of this host; data-parallel attention takes seven from there, or from
    port + 233 (0.4.6 to 0.5.23 server_args.py). vLLM: `--data-parallel-rpc-port`, `--master-port`.
    """
    settings = settings_of(profile)
    found: dict[int, str] = {}
    for key in ("nccl_port", "data_parallel_rpc_port", "master_port"):
        if number := _whole(settings.get(key)):
            found[number] = f"--{key.replace('_', '-')}"
    address = settings.get("dist_init_addr") or settings.get("nccl_init_addr")
    base: int | None = None
    if isinstance(address, str) and not _whole(settings.get("node_rank")):
        number_text = address.rpartition(":")[2]
        if number_text.isdigit() and 0 < int(number_text) < 65536:
            base = int(number_text)
            found[base] = "--dist-init-addr"
    if profile.engine == "sglang" and settings.get("enable_dp_attention"):
        base = base if base is not None else (port + 233 if port is not None else None)
        if base is not None:
            found |= {number: "data-parallel attention" for number in range(base, base + 7) if number not in found}
    return {number: name for number, name in found.items() if 0 < number < 65536 and number != port}


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
