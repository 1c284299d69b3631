"""Writes a tiny target and a draft for it as GGUF files: random weights, nothing downloaded, always the same bytes.

The weights are random, with one arrangement so that greedy decoding is not noise and a draft can agree with
its target. The residual stream is dominated by the embedding E[t] of the last token (attention and
feed-forward are scaled down), and the output matrix has E[t] added to the row of `successor(t)`, so the most
likely token after t is successor(t). `successor` is one cycle over whole words; any other token falls into it.
The draft is built from the same table with a share of its entries pointing elsewhere: at those tokens it
proposes a token that the target rejects.
"""

from __future__ import annotations

import math
import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from specconsole.demo.vocabulary import (
    BOS_ID,
    CHAT_TEMPLATE,
    EOS_ID,
    PAD_ID,
    SPECIAL_TOKENS,
    Vocabulary,
    build_vocabulary,
)

Matrix = NDArray[np.float32] | NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of a Llama-type model; `agreement_ratio` is the share of words after which the draft is right."""

    hidden: int = 256
    layers: int = 6
    draft_layers: int = 1
    head_size: int = 64
    context_tokens: int = 4096
    cycle_words: int = 64
    sharpness: float = 0.8
    """The best token's logit is about `sharpness * sqrt(hidden)` above the others'."""
    agreement_ratio: float = 0.75
    """Acceptance per drafted token under greedy decoding, given that the tokens before it were accepted."""
    seed: int = 7


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """Where the two models lie."""

    target: Path
    draft: Path


def write_models(folder: Path, shape: ModelShape | None = None, *, name: str = "tiny") -> ModelFiles:
    """Writes NAME.gguf and NAME-draft.gguf into `folder`, or leaves them when they are there already.

    The default pair is 9 MB and takes under a second; bytes depend on `shape` and `name` alone. A file appears
    under its name only when it is whole.
    """
    shape = shape or ModelShape()
    folder.mkdir(parents=True, exist_ok=True)
    files = ModelFiles(folder / f"{name}.gguf", folder / f"{name}-draft.gguf")
    if files.target.exists() and files.draft.exists():
        return files
    vocabulary = build_vocabulary()
    successor, wrong = successor_tables(vocabulary, shape)
    embedding = np.random.default_rng(shape.seed).standard_normal((vocabulary.size, shape.hidden), dtype=np.float32)
    target = build_tensors(shape, embedding, successor, seed=shape.seed + 1)
    draft_shape = replace(shape, layers=shape.draft_layers)
    draft = build_tensors(draft_shape, embedding, wrong, seed=shape.seed + 2)
    write_gguf(files.target, name, shape, vocabulary, target)
    write_gguf(files.draft, f"{name}-draft", draft_shape, vocabulary, draft)
    return files


def successor_tables(vocabulary: Vocabulary, shape: ModelShape) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The target's next token for every token, and the draft's version of it."""
    random = np.random.default_rng(shape.seed)
    words = random.permutation(np.array(vocabulary.word_ids))[: shape.cycle_words]
    successor = random.choice(words, vocabulary.size)
    successor[words] = np.roll(words, -1)
    wrong = successor.copy()
    misled = random.choice(len(words), round((1 - shape.agreement_ratio) * len(words)), replace=False)
    # Two further along the cycle: a word, and never the right one.
    wrong[words[misled]] = np.roll(words, -3)[misled]
    return successor, wrong


def build_tensors(
    shape: ModelShape, embedding: NDArray[np.float32], successor: NDArray[np.int64], *, seed: int
) -> dict[str, Matrix]:
    """All tensors by their GGUF names, matrices in half precision."""
    random = np.random.default_rng(seed)
    hidden, inner = shape.hidden, 2 * shape.hidden

    def noise(rows: int, columns: int, scale: float) -> NDArray[np.float32]:
        return random.standard_normal((rows, columns), dtype=np.float32) * np.float32(scale)

    output = noise(len(embedding), hidden, 0.02)
    np.add.at(output, successor, embedding * np.float32(shape.sharpness / math.sqrt(hidden)))
    unit = np.ones(hidden, np.float32)
    even, small = 1 / math.sqrt(hidden), 0.05 / math.sqrt(hidden)
    # Every layer has the same weights: drawing and halving them once is most of the time saved in a large model.
    block: dict[str, Matrix] = {
        "attn_norm": unit,
        "ffn_norm": unit,
        "attn_q": half(noise(hidden, hidden, even)),
        "attn_k": half(noise(hidden, hidden, even)),
        "attn_v": half(noise(hidden, hidden, even)),
        "attn_output": half(noise(hidden, hidden, small)),
        "ffn_gate": half(noise(inner, hidden, even)),
        "ffn_up": half(noise(inner, hidden, even)),
        "ffn_down": half(noise(hidden, inner, small)),
    }
    tensors: dict[str, Matrix] = {
        "token_embd.weight": half(embedding),
        "output_norm.weight": unit,
        "output.weight": half(output),
    }
    for layer in range(shape.layers):
        tensors |= {f"blk.{layer}.{name}.weight": values for name, values in block.items()}
    return tensors


def half(values: NDArray[np.float32]) -> NDArray[np.float16]:
    return values.astype(np.float16)


def write_gguf(path: Path, name: str, shape: ModelShape, vocabulary: Vocabulary, tensors: dict[str, Matrix]) -> None:
    """One model file, half precision; written beside `path` and renamed, so that a reader never sees half of it."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        _write(beside, name, shape, vocabulary, tensors)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _write(path: str, name: str, shape: ModelShape, vocabulary: Vocabulary, tensors: dict[str, Matrix]) -> None:
    # gguf.GGUFWriter is untyped.
    writer: Any = gguf.GGUFWriter(path, "llama")
    heads = shape.hidden // shape.head_size
    writer.add_name(name)
    writer.add_context_length(shape.context_tokens)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(2 * shape.hidden)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.head_size)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(vocabulary.size)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(list(vocabulary.tokens))
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_token_types([control if token in SPECIAL_TOKENS else normal for token in vocabulary.tokens])
    writer.add_token_merges(list(vocabulary.merges))
    writer.add_bos_token_id(BOS_ID)
    writer.add_eos_token_id(EOS_ID)
    writer.add_pad_token_id(PAD_ID)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
    for tensor_name, values in tensors.items():
        writer.add_tensor(tensor_name, values)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()
