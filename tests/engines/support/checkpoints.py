"""Writes a tiny target, draft and EAGLE-3 head as Hugging Face folders of safetensors shards; nothing is downloaded.

The weights, the vocabulary and the built-in agreement are the demo's (`specconsole.demo.models`), under the names that
vLLM and SGLang load; so all three engines walk the same cycle of words, and a draft is wrong at the same places.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specconsole.demo.models import ModelShape, build_tensors, successor_tables
from specconsole.demo.vocabulary import (
    BOS_ID,
    CHAT_TEMPLATE,
    EOS_ID,
    PAD_ID,
    SPECIAL_TOKENS,
    Vocabulary,
    build_vocabulary,
)

SHAPE = ModelShape(layers=8)
"""An EAGLE-3 head taps layers 2, L/2 and L-3 of its target: below seven layers two of them are one, and vLLM 0.32
starts with it and dies at the first request."""
_NAMES = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip

Tensors = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Folders that `--model` and `--speculative-...-model` take."""

    target: Path
    draft: Path
    eagle3: Path


def write_checkpoints(folder: Path, *, shape: ModelShape = SHAPE, shards: int = 32) -> Checkpoints:
    """Writes all three into `folder`, the target in `shards` files, or leaves them when they are there."""
    found = Checkpoints(folder / "target", folder / "draft", folder / "eagle3")
    if (folder / "whole").exists():
        return found
    vocabulary = build_vocabulary()
    successor, wrong = successor_tables(vocabulary, shape)
    embedding = np.random.default_rng(shape.seed).standard_normal((vocabulary.size, shape.hidden), dtype=np.float32)
    draft_shape = replace(shape, layers=shape.draft_layers)
    target = hugging_face_names(build_tensors(shape, embedding, successor, seed=shape.seed + 1))
    draft = hugging_face_names(build_tensors(draft_shape, embedding, wrong, seed=shape.seed + 2))
    write_folder(found.target, config(shape, vocabulary), target, vocabulary, shape, shards=shards)
    write_folder(found.draft, config(draft_shape, vocabulary), draft, vocabulary, shape)
    write_eagle3(found.eagle3, shape, vocabulary, embedding, wrong)
    (folder / "whole").touch()
    return found


def write_eagle3(
    path: Path,
    shape: ModelShape,
    vocabulary: Vocabulary,
    embedding: NDArray[np.float32],
    successor: NDArray[np.int64],
    *,
    draft_vocabulary: int | None = None,
    hidden_in_config: int | None = None,
) -> None:
    """One head. `draft_vocabulary` cuts its output to that many tokens and leaves out `d2t`, the map back that it then
    needs; `hidden_in_config` writes a head of another width than the target's."""
    hidden = hidden_in_config or shape.hidden
    if hidden != shape.hidden:
        random = np.random.default_rng(shape.seed)
        embedding = random.standard_normal((vocabulary.size, hidden), dtype=np.float32)
    tensors = eagle3_tensors(hidden, shape.sharpness, embedding, successor, seed=shape.seed + 3)
    settings = config(replace(shape, hidden=hidden, layers=1), vocabulary) | {
        "architectures": ["LlamaForCausalLMEagle3"],
        "draft_vocab_size": draft_vocabulary or vocabulary.size,
    }
    if draft_vocabulary:
        tensors["lm_head.weight"] = tensors["lm_head.weight"][-draft_vocabulary:]
    write_folder(path, settings, tensors, vocabulary, shape)


def eagle3_tensors(
    hidden: int, sharpness: float, embedding: NDArray[np.float32], successor: NDArray[np.int64], *, seed: int
) -> Tensors:
    """One layer whose attention hands on the embedding of the last token, so that the output matrix decides."""
    random = np.random.default_rng(seed)

    def noise(rows: int, columns: int, scale: float) -> NDArray[np.float32]:
        return random.standard_normal((rows, columns), dtype=np.float32) * np.float32(scale)

    same, nothing = np.eye(hidden, dtype=np.float32), np.zeros((hidden, hidden), np.float32)
    unit = np.ones(hidden, np.float32)
    output = noise(len(embedding), hidden, 0.02)
    np.add.at(output, successor, embedding * np.float32(sharpness / math.sqrt(hidden)))
    # q, k and v see (embedding, hidden state): only the first half counts here.
    return {
        "midlayer.self_attn.q_proj.weight": np.hstack([2 * same, nothing]),
        "midlayer.self_attn.k_proj.weight": np.hstack([2 * same, nothing]),
        "midlayer.self_attn.v_proj.weight": np.hstack([same, nothing]),
        "midlayer.self_attn.o_proj.weight": same,
        "midlayer.mlp.gate_proj.weight": noise(2 * hidden, hidden, 0.02),
        "midlayer.mlp.up_proj.weight": noise(2 * hidden, hidden, 0.02),
        "midlayer.mlp.down_proj.weight": noise(hidden, 2 * hidden, 0.001),
        "midlayer.input_layernorm.weight": unit,
        "midlayer.hidden_norm.weight": unit,
        "midlayer.post_attention_layernorm.weight": unit,
        "fc.weight": noise(hidden, 3 * hidden, 0.001),
        "norm.weight": unit,
        "lm_head.weight": output,
        "embed_tokens.weight": embedding,
    }


def hugging_face_names(tensors: dict[str, Any]) -> Tensors:
    """`blk.3.attn_q.weight` -> `model.layers.3.self_attn.q_proj.weight`."""
    found: Tensors = {}
    for name, values in tensors.items():
        parts = name.removesuffix(".weight").split(".")
        here = f"model.layers.{parts[1]}.{_NAMES[parts[2]]}" if parts[0] == "blk" else _NAMES[parts[0]]
        found[f"{here}.weight"] = values
    return found


def config(shape: ModelShape, vocabulary: Vocabulary) -> dict[str, Any]:
    heads = shape.hidden // shape.head_size
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": shape.hidden,
        "intermediate_size": 2 * shape.hidden, "num_hidden_layers": shape.layers, "num_attention_heads": heads,
        "num_key_value_heads": heads, "head_dim": shape.head_size, "hidden_act": "silu", "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "max_position_embeddings": shape.context_tokens, "vocab_size": vocabulary.size,
        "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False, "bos_token_id": BOS_ID,
        "eos_token_id": EOS_ID, "pad_token_id": PAD_ID, "torch_dtype": "bfloat16", "initializer_range": 0.02,
    }  # fmt: skip


def write_folder(
    path: Path, settings: dict[str, Any], tensors: Tensors, vocabulary: Vocabulary, shape: ModelShape, *,
    shards: int = 1,
) -> None:  # fmt: skip
    path.mkdir(parents=True, exist_ok=True)
    _write_json(path / "config.json", settings)
    _write_json(path / "tokenizer.json", tokenizer(vocabulary))
    _write_json(
        path / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": SPECIAL_TOKENS[BOS_ID],
            "eos_token": SPECIAL_TOKENS[EOS_ID], "pad_token": SPECIAL_TOKENS[PAD_ID],
            "model_max_length": shape.context_tokens, "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
    )  # fmt: skip
    ends = {"bos_token_id": BOS_ID, "eos_token_id": EOS_ID, "pad_token_id": PAD_ID}
    _write_json(path / "generation_config.json", ends)
    names = list(tensors)
    shards = min(shards, len(names))
    files = [f"model-{n + 1:05d}-of-{shards:05d}.safetensors" for n in range(shards)]
    if shards == 1:
        files = ["model.safetensors"]
    places: dict[str, str] = {}
    for number, file in enumerate(files):
        mine = names[number::shards]
        write_safetensors(path / file, {name: tensors[name] for name in mine})
        places |= dict.fromkeys(mine, file)
    if shards > 1:
        size = sum(2 * values.size for values in tensors.values())
        _write_json(path / "model.safetensors.index.json", {"metadata": {"total_size": size}, "weight_map": places})


def tokenizer(vocabulary: Vocabulary) -> dict[str, Any]:
    """The demo's vocabulary in the form of the `tokenizers` library: byte-level BPE."""
    special = [
        {"id": n, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": True}
        for n, text in enumerate(SPECIAL_TOKENS)
    ]  # fmt: skip
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
        "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {text: n for n, text in enumerate(vocabulary.tokens)},
            "merges": [merge.split(" ", 1) for merge in vocabulary.merges],
        },
    }  # fmt: skip


def write_safetensors(path: Path, tensors: Tensors) -> None:
    """bfloat16: the upper half of each float32, rounded to even."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    parts: list[bytes] = []
    at = 0
    for name, values in tensors.items():
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
        data = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()
        header[name] = {"dtype": "BF16", "shape": list(values.shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value))


if __name__ == "__main__":
    import sys

    write_checkpoints(Path(sys.argv[1]), shards=int(sys.argv[2]) if len(sys.argv) > 2 else 32)
