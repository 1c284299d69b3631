"""Drafts that fit and drafts that don't, as files on disk: written by the test, read by the product's own reader."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specconsole.core.launching.draft_check import check_draft
from specconsole.core.launching.draft_facts import DraftFacts, longest_context
from specconsole.core.launching.draft_maps import decode_int64
from specconsole.core.launching.safetensors_header import CorruptHeaderError, parse_header

HIDDEN, VOCABULARY, SMALL, LAYERS = 64, 512, 128, 8
KEPT = sorted([*range(0, 200, 2), *range(300, 328)])
OFFSETS = [target - index for index, target in enumerate(KEPT)]

TARGET = {
    "architectures": ["LlamaForCausalLM"], "hidden_size": HIDDEN, "vocab_size": VOCABULARY,
    "num_hidden_layers": LAYERS, "max_position_embeddings": 4096,
}  # fmt: skip
DRAFT = {
    "architectures": ["LlamaForCausalLMEagle3"], "hidden_size": HIDDEN, "vocab_size": VOCABULARY,
    "draft_vocab_size": SMALL, "num_hidden_layers": 1, "max_position_embeddings": 4096,
}  # fmt: skip


def tensors_of_a_draft() -> dict[str, tuple[str, list[int], bytes | None]]:
    layer = {
        "self_attn.q_proj.weight": [HIDDEN, 2 * HIDDEN], "self_attn.k_proj.weight": [HIDDEN, 2 * HIDDEN],
        "self_attn.v_proj.weight": [HIDDEN, 2 * HIDDEN], "self_attn.o_proj.weight": [HIDDEN, HIDDEN],
        "mlp.gate_proj.weight": [2 * HIDDEN, HIDDEN], "mlp.up_proj.weight": [2 * HIDDEN, HIDDEN],
        "mlp.down_proj.weight": [HIDDEN, 2 * HIDDEN], "hidden_norm.weight": [HIDDEN],
        "input_layernorm.weight": [HIDDEN], "post_attention_layernorm.weight": [HIDDEN],
    }  # fmt: skip
    found: dict[str, tuple[str, list[int], bytes | None]] = {
        "fc.weight": ("BF16", [HIDDEN, 3 * HIDDEN], None),
        "norm.weight": ("BF16", [HIDDEN], None),
        "lm_head.weight": ("BF16", [SMALL, HIDDEN], None),
        "d2t": ("I64", [SMALL], struct.pack(f"<{SMALL}q", *OFFSETS)),
        "t2d": ("BOOL", [VOCABULARY], bytes(i in set(KEPT) for i in range(VOCABULARY))),
    }
    found.update({f"midlayer.{name}": ("BF16", shape, None) for name, shape in layer.items()})
    return found


def write_file(path: Path, tensors: dict[str, tuple[str, list[int], bytes | None]]) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, (dtype, shape, data) in tensors.items():
        size = {"BF16": 2, "I64": 8, "BOOL": 1}[dtype]
        for side in shape:
            size *= side
        data = bytes(size) if data is None else data
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + body)


def facts_from(path: Path, **change: Any) -> DraftFacts:
    data = path.read_bytes()
    header = parse_header(data, len(data))
    maps: dict[str, Any] = {}
    if (d2t := header.tensors.get("d2t")) is not None:
        maps["d2t"] = decode_int64(data[header.data_start + d2t.start : header.data_start + d2t.end])
    if (t2d := header.tensors.get("t2d")) is not None:
        maps["t2d"] = [b != 0 for b in data[header.data_start + t2d.start : header.data_start + t2d.end]]
    shape: dict[str, Any] = {
        "target_config": TARGET,
        "draft_config": DRAFT,
        "tensors": header.tensors,
        **maps,
        **change,
    }
    return DraftFacts(**shape)


def test_a_draft_that_fits_has_nothing_against_it(tmp_path: Path) -> None:
    write_file(tmp_path / "d", tensors_of_a_draft())
    for engine in ("sglang", "vllm"):
        assert check_draft(facts_from(tmp_path / "d", engine=engine)) == ()


def changed(name: str, entry: tuple[str, list[int], bytes | None] | None) -> dict[str, Any]:
    tensors = tensors_of_a_draft()
    if entry is None:
        del tensors[name]
    else:
        tensors[name] = entry
    return tensors


@pytest.mark.parametrize(
    ("tensors", "change", "check"),
    [
        (changed("d2t", None), {}, "d2t-missing"),
        (changed("d2t", ("I64", [SMALL], struct.pack(f"<{SMALL}q", *KEPT))), {}, "d2t-absolute"),
        (changed("d2t", ("I64", [SMALL], bytes(8 * SMALL))), {}, "d2t-zeros"),
        (changed("d2t", ("I64", [SMALL - 1], struct.pack(f"<{SMALL - 1}q", *OFFSETS[1:]))), {}, "d2t-size"),
        (changed("t2d", ("BOOL", [VOCABULARY], bytes(VOCABULARY))), {}, "maps-disagree"),
        (changed("t2d", ("BOOL", [VOCABULARY + 8], bytes(VOCABULARY + 8))), {}, "t2d-size"),
        (changed("fc.weight", ("BF16", [HIDDEN, 2 * HIDDEN], None)), {}, "fc-shape"),
        (changed("fc.weight", None), {}, "tensors-missing"),
        (changed("midlayer.hidden_norm.weight", None), {}, "tensors-missing"),
        (changed("midlayer.self_attn.q_proj.weight", ("BF16", [HIDDEN, HIDDEN], None)), {}, "q-shape"),
        (changed("lm_head.weight", ("BF16", [VOCABULARY, HIDDEN], None)), {}, "head-shape"),
        (tensors_of_a_draft(), {"target_config": {**TARGET, "hidden_size": 128}}, "hidden-size"),
        (tensors_of_a_draft(), {"target_config": {**TARGET, "vocab_size": 600}}, "vocabulary"),
        (tensors_of_a_draft(), {"target_config": {**TARGET, "num_hidden_layers": 4}}, "tapped-layers"),
        (tensors_of_a_draft(), {"draft_config": {**DRAFT, "max_position_embeddings": 2048}}, "draft-context"),
        (tensors_of_a_draft(), {"context": 8192}, "context"),
        (tensors_of_a_draft(), {"algorithm": "EAGLE"}, "architecture"),
        (tensors_of_a_draft(), {"algorithm": "STANDALONE"}, "architecture"),
        (tensors_of_a_draft(), {"draft_config": {**DRAFT, "architectures": ["LlamaForCausalLM"]}}, "architecture"),
        (tensors_of_a_draft(), {"common_tokens": list(range(1, 200, 2))}, "coverage"),
        (tensors_of_a_draft(), {"target_quantised": True}, "quantisation"),
    ],
)
def test_what_does_not_fit_is_named(
    tmp_path: Path, tensors: dict[str, Any], change: dict[str, Any], check: str
) -> None:
    write_file(tmp_path / "d", tensors)
    assert check in [finding.check for finding in check_draft(facts_from(tmp_path / "d", **change))]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda b: b[:-10], "10 bytes are missing"),
        (lambda b: b + b"xx", "2 bytes too many"),
        (lambda b: b[:5], "only 5 bytes long"),
        (lambda b: b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 9\n", "git-lfs pointer"),
        (lambda b: struct.pack("<Q", 1 << 40) + b[8:], "claims 1099511627776 bytes"),
        (lambda b: b[:8] + b"}" + b[9:], "no JSON"),
    ],
)
def test_a_damaged_file_is_told_from_its_head(tmp_path: Path, damage: Any, says: str) -> None:
    write_file(tmp_path / "d", tensors_of_a_draft())
    data = damage((tmp_path / "d").read_bytes())
    with pytest.raises(CorruptHeaderError, match=says):
        parse_header(data[:100_000], len(data))


@given(st.binary(max_size=200), st.integers(0, 1000))
def test_no_bytes_raise_anything_else(data: bytes, size: int) -> None:
    for head in (data, struct.pack("<Q", max(2, len(data))) + data, struct.pack("<Q", 20) + b'{"a": {"shape": [1]}}'):
        try:
            found = parse_header(head, size)
        except CorruptHeaderError:
            continue
        assert found.data_start + found.data_bytes == size


def test_context_with_rope_scaling() -> None:
    assert longest_context({"max_position_embeddings": 4096}) == 4096
    assert (
        longest_context({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 4.0}}) == 16384
    )
    assert longest_context({"text_config": {"hidden_size": 1, "max_position_embeddings": 99}}) == 99
    assert longest_context({}) is None
