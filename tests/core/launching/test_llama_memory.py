"""llama.cpp's memory out of a GGUF head, reckoned by hand for a model of known sizes."""

from __future__ import annotations

import pytest

from specconsole.core.launching.gguf_header import GgufHead
from specconsole.core.launching.llama_memory import DeviceRoom, context_that_fits, judge_devices, kv_bytes, token_bytes
from specconsole.core.launching.model_check import judge_host_memory
from specconsole.core.launching.model_files import Model
from specconsole.core.launching.preflight import HostMemory
from specconsole.core.launching.profile import Profile

GIB = 1 << 30
# Llama 3 8B: 32 layers x 8 KV heads x 128 x 2 x 2 bytes = 128 KiB a token.
HEAD = GgufHead(
    {"general.architecture": "llama", "llama.block_count": 32, "llama.embedding_length": 4096,
     "llama.attention.head_count": 32, "llama.attention.head_count_kv": 8, "llama.context_length": 8192},
    291, None,
)  # fmt: skip
TARGET = Model(weights_bytes=16 * GIB, gguf=HEAD)
NOTHING = Model()


def profile(**args: object) -> Profile:
    return Profile("p", "llamacpp", args=dict(args))  # type: ignore[arg-type]  # values as TOML gives them


def test_kv_bytes_by_hand() -> None:
    assert token_bytes(profile(), HEAD) == 128 * 1024
    assert kv_bytes(profile(), HEAD) == GIB
    # All slots share the context; what is beyond the model's own is taken as well.
    assert kv_bytes(profile(ctx_size=4096, parallel=4), HEAD) == GIB // 2
    assert kv_bytes(profile(ctx_size=1 << 17), HEAD) == 16 * GIB
    assert kv_bytes(profile(cache_type_k="q8_0", cache_type_v="q8_0"), HEAD) == GIB * 34 // 64
    assert kv_bytes(profile(cache_type_k="q4_0"), HEAD) == GIB // 2 + GIB * 18 // 128
    assert token_bytes(profile(), GgufHead({"general.architecture": "mamba", "mamba.block_count": 9}, 1, None)) is None


@pytest.mark.parametrize(
    ("args", "free_gib", "severity", "fix"),
    [
        ({}, [24], "ok", None),
        ({}, [10, 10], "ok", None),  # 17 GiB of 18 that may be taken
        # Weights alone fit, so a shorter context lets all layers lie there: 1/2 GiB of KV are 4096 tokens.
        ({}, [17.5], "warning", {"ctx_size": 4096}),
        ({}, [9], "warning", None),
        ({"n_gpu_layers": 99}, [9], "stop", {"n_gpu_layers": 15}),  # 8 GiB / (17/33)
        ({"n_gpu_layers": 15}, [9], "ok", None),
        ({"n_gpu_layers": "all", "fit": "off"}, [9], "stop", {"n_gpu_layers": 15}),
    ],
)
def test_layers_on_gpus(args: dict[str, object], free_gib: list[float], severity: str, fix: object) -> None:
    rooms = [DeviceRoom(n, int(size * GIB)) for n, size in enumerate(free_gib)]
    found = judge_devices(profile(**args), TARGET, NOTHING, rooms)
    assert found is not None
    assert (found.severity, found.fix) == (severity, fix), found.text
    if fix:
        again = judge_devices(profile(**{**args, **fix}), TARGET, NOTHING, rooms)  # type: ignore[dict-item]  # a table
        assert again is not None
        assert again.severity == "ok"


def test_nothing_on_gpus_is_judged_by_the_host() -> None:
    rooms = [DeviceRoom(0, GIB)]
    for args in ({"n_gpu_layers": 0}, {"device": "none"}):
        assert judge_devices(profile(**args), TARGET, NOTHING, rooms) is None
    assert judge_devices(profile(), TARGET, NOTHING, []) is None
    assert judge_devices(profile(), Model(), NOTHING, rooms) is None


def test_a_context_that_the_host_can_hold_is_offered() -> None:
    memory = HostMemory(total_bytes=17 * GIB - 1, available_bytes=16 * GIB + GIB // 4)
    found = judge_host_memory(profile(), TARGET, NOTHING, memory)
    assert found is not None
    assert (found.severity, found.fix) == ("stop", {"ctx_size": 1792})
    again = judge_host_memory(profile(ctx_size=1792), TARGET, NOTHING, memory)
    assert again is not None
    assert again.severity == "ok"
    assert context_that_fits(profile(), HEAD, 100) is None
    none = judge_host_memory(profile(), TARGET, NOTHING, HostMemory(total_bytes=GIB, available_bytes=GIB))
    assert none is not None
    assert (none.severity, none.fix) == ("stop", None)
