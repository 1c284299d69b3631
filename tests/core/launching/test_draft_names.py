"""Names of tensors that loaders look for, and the commonest tokens of a tokenizer's first bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specconsole.core.launching.draft_check import check_draft
from specconsole.core.launching.draft_facts import DraftFacts
from specconsole.core.launching.draft_names import check_own_heads
from specconsole.core.launching.safetensors_header import Tensor
from specconsole.core.launching.tokenizer_head import HEAD_BYTES, common_tokens

HIDDEN = 64
LAYER = (
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj",
    "mlp.down_proj", "post_attention_layernorm",
)  # fmt: skip
TARGET = {"architectures": ["LlamaForCausalLM"], "hidden_size": HIDDEN, "vocab_size": 512, "num_hidden_layers": 8}


def tensors(*names: str) -> dict[str, Tensor]:
    """Of the shape that an EAGLE-3 layer's q_proj has, so that only names are judged."""
    return {name: Tensor("BF16", (HIDDEN, 2 * HIDDEN), 0, 0) for name in names}


def eagle3(*, without: str = "", more: tuple[str, ...] = (), config: dict[str, Any] | None = None) -> list[str]:
    names = ["norm.weight", "lm_head.weight", *more]
    names += [f"layers.0.{one}.weight" for one in (*LAYER, "hidden_norm", "input_layernorm")]
    held = tensors(*(name for name in names if name != without))
    held["fc.weight"] = Tensor("BF16", (HIDDEN, 3 * HIDDEN), 0, 0)
    if "lm_head.weight" in held:
        held["lm_head.weight"] = Tensor("BF16", (512, HIDDEN), 0, 0)
    draft = {**TARGET, "architectures": ["LlamaForCausalLMEagle3"], **(config or {})}
    return [one.check for one in check_draft(DraftFacts(TARGET, draft, tensors=held))]


def test_the_names_of_an_eagle3_head() -> None:
    assert eagle3() == []
    assert eagle3(more=("embed_tokens.weight", "fc_norm.0.weight", "aux_norm_low.weight")) == []
    assert eagle3(more=("layers.0.self_attn.rotary_emb.inv_freq", "vision.patch.weight")) == ["tensors-unknown"]
    assert eagle3(without="layers.0.hidden_norm.weight") == ["tensors-missing"]
    # Without a vocabulary of its own it takes the target's matrix; with one it can't.
    assert eagle3(without="lm_head.weight") == []
    assert "tensors-missing" in eagle3(without="lm_head.weight", config={"draft_vocab_size": 512})
    assert eagle3(without="lm_head.weight", config={"draft_vocab_size": 512, "tie_word_embeddings": True}) == []


@pytest.mark.parametrize("odd", [None, {}, "LlamaForCausalLMEagle3", [], [3], [None]])
def test_an_odd_architecture_is_a_finding_and_no_crash(odd: Any) -> None:
    assert "architecture" in eagle3(config={"architectures": odd})


def test_the_names_of_an_eagle_head() -> None:
    draft = {**TARGET, "architectures": ["LlamaForCausalLMEagle"]}
    whole = tensors("fc.weight", "embed_tokens.weight", *(f"layers.0.{one}.weight" for one in LAYER))
    for lacking, more, expected in (
        ("", (), []), ("fc.weight", (), ["tensors-missing"]), ("", ("d2t",), ["tensors-unknown"]),
    ):  # fmt: skip
        held = {name: one for name, one in whole.items() if name != lacking} | tensors(*more)
        found = check_draft(DraftFacts(TARGET, draft, tensors=held, algorithm="EAGLE"))
        assert [one.check for one in found] == expected


def test_a_target_that_is_to_draft_by_itself() -> None:
    config = {**TARGET, "architectures": ["DeepseekV3ForCausalLM"], "num_nextn_predict_layers": 1}
    whole = tensors("lm_head.weight", *(f"model.layers.8.{one}.weight" for one in ("enorm", "hnorm", "eh_proj",
                                                                                     "shared_head.norm")))  # fmt: skip
    assert list(check_own_heads(config, whole)) == []
    [lost] = check_own_heads(config, tensors("lm_head.weight", "model.layers.7.mlp.up_proj.weight"))
    assert (lost.level, "model.layers.8.enorm" in lost.text) == ("error", True)
    [plain] = check_own_heads(TARGET, whole)
    assert plain.level == "note"
    assert list(check_own_heads(TARGET, tensors("mtp.fc.weight"))) == []
    assert list(check_own_heads(config, {})) == []


def tokenizer(vocabulary: dict[str, int], kind: str = "BPE", indent: int | None = None) -> bytes:
    special = [{"id": n, "content": f"<|{n}|>"} for n in range(3)]
    model = {"type": kind, "vocab": vocabulary, "merges": []}
    return json.dumps({"added_tokens": special, "model": model}, indent=indent, ensure_ascii=bool(indent)).encode()


@pytest.mark.parametrize("indent", [None, 2])
def test_common_tokens_are_the_first_merged_ones(indent: int | None) -> None:
    singles = {chr(0x100 + n): n for n in range(256)}
    merged = {f'Ġ"é\\{n}': 300 + n for n in range(5000)}
    data = tokenizer({"<s>": 256, "x": 257} | merged, indent=indent)
    assert common_tokens(data) == tuple(range(300, 2300))
    assert common_tokens(tokenizer(singles | merged, indent=indent)[: HEAD_BYTES // 16]) is not None
    # Numbers that do not rise, other kinds, too little, and no JSON at all say nothing.
    assert common_tokens(tokenizer(dict(reversed(merged.items())), indent=indent)) is None
    assert common_tokens(tokenizer(merged, "WordPiece", indent=indent)) is None
    assert common_tokens(tokenizer({"ab": 1}, indent=indent)) is None


@given(st.binary(max_size=300))
def test_no_bytes_make_it_fall_over(data: bytes) -> None:
    assert common_tokens(data) is None
    assert common_tokens(b'{"model":{"type":"BPE","vocab":{' + data) is None
