"""The head of GGUF files that llama.cpp's own library wrote, and of damaged ones."""

from __future__ import annotations

import struct

import pytest
from gguf import GGUFReader
from hypothesis import given, settings
from hypothesis import strategies as st

from specconsole.core.launching.gguf_header import CutHeadError, GgufError, parse_gguf
from specconsole.demo.models import ModelFiles


def test_it_says_what_the_gguf_library_says(llama_models: ModelFiles) -> None:
    for path in (llama_models.target, llama_models.draft):
        data = path.read_bytes()
        head = parse_gguf(data)
        witness = GGUFReader(path)
        assert head.tensors == len(witness.tensors)
        assert head.number("context_length") == witness.fields["llama.context_length"].contents()
        assert head.metadata["tokenizer.ggml.tokens"] == len(witness.fields["tokenizer.ggml.tokens"].data)
        last = max(witness.tensors, key=lambda one: int(one.data_offset))
        assert head.needed_bytes == int(last.data_offset) + int(last.n_bytes)
        assert head.needed_bytes <= len(data)


def test_a_cut_head_asks_for_more(llama_models: ModelFiles) -> None:
    data = llama_models.target.read_bytes()
    for size in (0, 10, 30, 1000, 10_000):
        with pytest.raises(CutHeadError):
            parse_gguf(data[:size])


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"nothing" * 10, "no GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 9, 0, 0), "version 9"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "claims"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 60), "claims"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"k", 99), "unknown type 99"),
    ],
)
def test_what_lies_is_said(data: bytes, says: str) -> None:
    with pytest.raises(GgufError, match=says):
        parse_gguf(data + b"\0" * 20)


@settings(max_examples=200, deadline=None)
@given(body=st.binary(max_size=200), position=st.integers(0, 400), byte=st.integers(0, 255))
def test_no_bytes_give_a_traceback(body: bytes, position: int, byte: int) -> None:
    data = bytearray(b"GGUF" + struct.pack("<IQQ", 3, 2, 2) + body)
    if position < len(data):
        data[position] = byte
    try:
        parse_gguf(bytes(data))
    except GgufError:
        return
