"""Secrets are hidden at equal length, wherever the chunks are cut."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from specconsole.core.launching.masking import Masker, mask_text

SECRET = "s3cret/value+with.dots"
TEXT = (
    b"plain line\n"
    + b"token s3cret/value+with.dots twice s3cret/value+with.dotss3cret/value+with.dots\n"
    + b"server_args=ServerArgs(api_key='abcdef123', admin_api_key=None, port=30000)\n"
    + b"{'api_key': ['sk-abcdefghijklmnopqrstuvwxyz012345'], 'x': 1}\n"
    + b"Authorization: Bearer abc.def.ghi\r\n"
    + b"HF_TOKEN=hf_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefgh download\n"
    + b"bar  33%|### | 1/3 [00:01<00:02,  1.00s/it]\rbar 66%\rs3cre\n"
    + b"the end, half a secret: s3cret/val"
)
HIDDEN = (b"s3cret/value+with.dots", b"abcdef123", b"sk-abcdefghij", b"abc.def.ghi", b"hf_ABCDEFG")


def masked(cuts: list[int]) -> bytes:
    masker = Masker([SECRET, "short"])
    out = []
    before = 0
    for cut in [*sorted(cuts), len(TEXT)]:
        out.append(masker.feed(TEXT[before:cut]))
        before = cut
    return b"".join(out) + masker.flush()


WHOLE = masked([])


def test_nothing_secret_is_left_and_every_offset_holds() -> None:
    assert len(WHOLE) == len(TEXT)
    for secret in HIDDEN:
        assert secret not in WHOLE
    for kept in (b"plain line\n", b"admin_api_key=None", b"port=30000", b"s3cre\n", b"33%|### | 1/3", b"'x': 1"):
        assert WHOLE.index(kept) == TEXT.index(kept)
    assert WHOLE.endswith(b"half a secret: **********")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, len(TEXT)), max_size=12))
def test_however_it_is_cut_it_comes_out_the_same(cuts: list[int]) -> None:
    assert masked(cuts) == WHOLE


def test_one_byte_at_a_time() -> None:
    assert masked(list(range(len(TEXT)))) == WHOLE


def test_a_log_without_secrets_passes_at_once() -> None:
    masker = Masker([SECRET])
    for line in (b"[2026-02-26 21:02:36 TP0] Load weight begin.\n", b"x 10%\r", b"no newline yet"):
        assert masker.feed(line) == line
    assert masker.held_bytes == 0


def test_keys_in_a_command_line_are_starred() -> None:
    shown = mask_text("vllm serve /m --api-key planted-key-1234 --port 8000 --hf-token hf_" + "A" * 34)
    assert "planted" not in shown
    assert "hf_A" not in shown
    assert shown.startswith("vllm serve /m --api-key ****")
    assert "--port 8000" in shown
    assert mask_text("sglang::scheduler_TP0") == "sglang::scheduler_TP0"
