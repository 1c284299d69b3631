"""The models that the demo writes: the same bytes every time, and a draft as good as it says."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from specconsole.demo.models import ModelShape, write_models
from specconsole.demo.vocabulary import build_vocabulary, byte_letters
from tests.support.fixtures_servers import StartLlama
from tests.support.llama import LlamaServer


def test_the_same_shape_gives_the_same_bytes_and_no_leftovers(tmp_path: Path) -> None:
    first, second = write_models(tmp_path / "a"), write_models(tmp_path / "b")
    assert first.target.read_bytes() == second.target.read_bytes()
    assert first.draft.read_bytes() == second.draft.read_bytes()
    assert sorted(os.listdir(tmp_path / "a")) == ["tiny-draft.gguf", "tiny.gguf"]


def test_models_that_lie_there_are_left_alone(tmp_path: Path) -> None:
    files = write_models(tmp_path)
    before = files.target.stat().st_mtime_ns
    write_models(tmp_path)
    assert files.target.stat().st_mtime_ns == before


def test_a_full_disk_leaves_no_half_written_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gguf.GGUFWriter.write_tensors_to_file", no_space)
    with pytest.raises(OSError, match="No space left"):
        write_models(tmp_path / "models")
    assert os.listdir(tmp_path / "models") == []


def test_every_byte_has_a_letter_of_its_own_and_every_merge_makes_a_token() -> None:
    assert len(set(byte_letters())) == 256
    vocabulary = build_vocabulary()
    known = set(vocabulary.tokens)
    assert len(known) == vocabulary.size
    for merge in vocabulary.merges:
        left, right = merge.split(" ")
        assert {left, right, left + right} <= known


@pytest.mark.real
def test_the_server_accepts_as_many_drafted_tokens_as_the_models_were_built_for(llama: LlamaServer) -> None:
    """Witness: llama.cpp's own counters. At position 0 a drafted token is accepted as often as the models agree."""
    for prompt in ("river", "stone and lantern", "the target verifies", "a wide tree"):
        llama.complete(prompt, tokens=192)
    counters = llama.counters()
    drafts = counters["llamacpp:spec_decode_num_drafts_total"]
    first = counters['llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"}']
    assert drafts > 100
    assert 0.65 < first / drafts < 0.85


@pytest.mark.real
def test_another_agreement_is_another_acceptance(start_llama: StartLlama, tmp_path: Path) -> None:
    perfect = write_models(tmp_path / "perfect", ModelShape(agreement_ratio=1.0))
    server = start_llama(models=perfect)
    server.complete(tokens=128)
    counters = server.counters()
    accepted = counters["llamacpp:spec_decode_num_accepted_tokens_total"]
    assert accepted / counters["llamacpp:spec_decode_num_draft_tokens_total"] > 0.95


@pytest.mark.real
def test_speculation_does_not_change_the_text(start_llama: StartLlama) -> None:
    with_draft = start_llama().complete("river", tokens=64)
    without = start_llama(draft=False).complete("river", tokens=64)
    assert with_draft["content"] == without["content"]
    assert "draft_n" in with_draft["timings"]
    assert "draft_n" not in without["timings"]


def test_writing_takes_about_a_second(tmp_path: Path) -> None:
    began = time.process_time()
    write_models(tmp_path)
    assert time.process_time() - began < 2.0
