"""Every form of bar that inference servers print, whole, cut, glued, and what only looks like one."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specconsole.core.reading.bars import LITERALS, Bar, find_bars, last_bar, parse_span, text_around

# SGLang 0.5.17 on an H200, first start on the machine: the first item compiled kernels.
GLUED = (
    "  0%|          | 0/58 [00:00<?, ?it/s]"
    "Capturing num tokens (num_tokens=8192 avail_mem=13.21 GB):   0%|          | 0/58 [00:00<?, ?it/s]"
    "Capturing num tokens (num_tokens=8192 avail_mem=13.21 GB):   2%|▏         | 1/58 [01:11<1:08:20, 71.94s/it]"
    "Capturing num tokens (num_tokens=7680 avail_mem=11.35 GB):   3%|▎         | 2/58 [01:12<27:44, 29.73s/it]  "
    "Capturing num tokens (num_tokens=3328 avail_mem=11.27 GB):  21%|██        | 12/58 [01:13<00:41,  1.11it/s]"
)


def _read(text: str) -> Bar:
    (bar,) = find_bars(text)
    return replace(bar, start=0, end=0)


def _bar(desc: str, done: int, total: int | None, unit: str, percent: int | None, elapsed: float | None,
         remaining: float | None, rate: float | None) -> Bar:  # fmt: skip
    return Bar(desc, done, total, unit, percent, elapsed, remaining, pytest.approx(rate), 0, 0, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (  # SGLang >= 0.5.10, no line end
            "Multi-thread loading shards:  34% Completed | 22/64 [00:01<00:02, 19.34it/s]",
            _bar("Multi-thread loading shards", 22, 64, "shard", 34, 1.0, 2.0, 19.34),
        ),
        (  # SGLang <= 0.5.8 and vLLM, with line end
            "\rLoading safetensors checkpoint shards:  63% Completed | 31/49 [10:02<05:33, 18.52s/it]\n",
            _bar("Loading safetensors checkpoint shards", 31, 49, "shard", 63, 602.0, 333.0, 1 / 18.52),
        ),
        (
            "Capturing batches (bs=48 avail_mem=11.43 GB):   5%|▌         | 1/20 [00:01<00:20,  1.10s/it]",
            _bar("Capturing batches", 1, 20, "graph", 5, 1.0, 20.0, 1 / 1.1),
        ),
        (  # vLLM
            "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  43%|████▎     | 22/51 [00:01<00:01, 18.54it/s]",
            _bar("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)", 22, 51, "graph", 43, 1.0, 1.0, 18.54),
        ),
        (
            "  0%|          | 0/23 [00:00<?, ?it/s]",
            Bar("", 0, 23, "item", 0, 0.0, None, None, 0, 0, True),
        ),
        (  # transformers 5
            "Loading weights: 100%|██████████| 291/291 [00:01<00:00, 180.30it/s, Materializing param=lm_head.weight]",
            _bar("Loading weights", 291, 291, "item", 100, 1.0, 0.0, 180.30),
        ),
        (
            "Fetching 12 files:  25%|██▌       | 3/12 [00:01<00:05,  1.66it/s]",
            _bar("Fetching 12 files", 3, 12, "file", 25, 1.0, 5.0, 1.66),
        ),
        (
            "model-00001-of-00004.safetensors:  45%|████▌     | 2.20G/4.98G [00:12<00:15, 180MB/s]",
            _bar("model-00001-of-00004.safetensors", 2_200_000_000, 4_980_000_000, "byte", 45, 12.0, 15.0, 180e6),
        ),
        (
            "config.json: 100%|██████████| 1.2k/1.2k [00:00<00:00, 2.31MB/s]",
            _bar("config.json", 1200, 1200, "byte", 100, 0.0, 0.0, 2.31e6),
        ),
        (
            "Loading pt checkpoint shards:  50% Completed | 4/8 [1:02:03<1:00:03, 900.17s/it]",
            _bar("Loading pt checkpoint shards", 4, 8, "shard", 50, 3723.0, 3603.0, 1 / 900.17),
        ),
        (
            "Loading pt checkpoint shards:  50% Completed | 4/8 [1 day, 2:00:03<1 day, 1:00:03, 23400.50s/it]",
            _bar("Loading pt checkpoint shards", 4, 8, "shard", 50, 93603.0, 90003.0, 1 / 23400.5),
        ),
        ("12it [00:03,  3.41it/s]", _bar("", 12, None, "item", None, 3.0, None, 3.41)),
        (
            "Downloading: 1.20GB [00:12, 98.3MB/s]",
            _bar("Downloading", 1_200_000_000, None, "byte", None, 12.0, None, 98.3e6),
        ),
        (  # ollama pull
            "pulling 8934d96d3f08:  45% ▕████    ▏ 2.1 GB/4.7 GB  110 MB/s",
            _bar("pulling 8934d96d3f08", 2_100_000_000, 4_700_000_000, "byte", 45, None, None, 110e6),
        ),
        (  # TGI
            "2025-01-01T00:00:00.1Z  INFO download: text_generation_launcher: Download: [3/17] -- ETA: 0:01:52",
            _bar("Download", 3, 17, "file", None, None, 112.0, None),
        ),
        (  # ASCII bars, where the terminal is not UTF-8
            "Loading checkpoint shards:  50%|#####     | 4/8 [00:03<00:03,  1.17it/s]",
            _bar("Loading checkpoint shards", 4, 8, "shard", 50, 3.0, 3.0, 1.17),
        ),
        (  # cut at the left
            "leted | 12/64 [00:03<00:10,  4.20it/s]",
            Bar("", 12, 64, "item", None, 3.0, 10.0, 4.2, 0, 0, True),
        ),
        (
            "Loading model weights:  45%",
            Bar("Loading model weights", 45, 100, "percent", 45, None, None, None, 0, 0, False),
        ),
    ],
)  # fmt: skip
def test_forms(text: str, expected: Bar) -> None:
    assert _read(text) == expected


@pytest.mark.parametrize(
    ("rest", "done", "total", "elapsed_s"),
    [
        ("  34% Completed | 22/64 [00:01<00:02, 19.34it/s", 22, 64, 1.0),
        ("  34% Completed | 22/64 [00:01<00:0", 22, 64, 1.0),
        ("  34% Completed | 22/64 [00:01<", 22, 64, 1.0),
        ("  34% Completed | 22/64 [00:0", 22, 64, None),
        ("  34% Completed | 22/64 [", 22, 64, None),
        ("  34% Completed | 22/64", 34, 100, None),  # 64 may go on to be 640
        ("  34% Completed | 22/6", 34, 100, None),
        ("  34% Completed | 2", 34, 100, None),
        ("  34% Comp", None, None, None),
        ("  34%", 34, 100, None),
        ("  3", None, None, None),
    ],
)
def test_an_unfinished_bar_says_only_what_is_whole(
    rest: str, done: int | None, total: int | None, elapsed_s: float | None
) -> None:
    bars = find_bars("Loading safetensors checkpoint shards:" + rest)
    if done is None:
        assert bars == ()
        return
    (bar,) = bars
    assert (bar.done, bar.total, bar.elapsed_s, bar.finished, bar.tail) == (done, total, elapsed_s, False, "")
    assert bar.printed_rate_per_s is None
    assert bar.desc == "Loading safetensors checkpoint shards"


def test_updates_glued_on_one_line_come_in_order() -> None:
    bars = find_bars(GLUED)
    assert [(b.desc, b.done, b.elapsed_s, b.remaining_s) for b in bars] == [
        ("", 0, 0.0, None),
        ("Capturing num tokens", 0, 0.0, None),
        ("Capturing num tokens", 1, 71.0, 4100.0),
        ("Capturing num tokens", 2, 72.0, 1664.0),
        ("Capturing num tokens", 12, 73.0, 41.0),
    ]
    assert GLUED[bars[2].start :].startswith("Capturing num tokens (num_tokens=8192")
    newest = last_bar(GLUED)
    assert newest == bars[-1]
    assert last_bar(GLUED * 20) == replace(bars[-1], start=bars[-1].start + 19 * len(GLUED), end=20 * len(GLUED))
    assert last_bar("no bar in here") is None


def test_a_log_line_glued_before_and_behind_a_bar_is_given_back() -> None:
    text = (
        "[2026-02-26 21:02:36 TP4] Using triton_attn as multimodal attention backend."
        "Loading checkpoint shards:  50%|█████     | 4/8 [00:03<00:03,  1.17it/s]Killed\nnext line"
    )
    (bar,) = bars = find_bars(text)
    assert bar.desc == "Loading checkpoint shards"
    head, tail = text_around(text, bars)
    assert head == "[2026-02-26 21:02:36 TP4] Using triton_attn as multimodal attention backend."
    assert tail == bar.tail == "Killed"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "memory usage 45%",
        "[2026-11-29 14:13:00] Decode batch, #running-req: 1, token usage: 0.00, gen throughput (token/s): 51.93",
        "GPU 3 is at 97% and 71 degrees",
        '127.0.0.1:1 - "GET /x%20y HTTP/1.1" 200',
        "tests 3/17 [skipped]",
        "accept 100%, no bar",
        "version 1/2 [",
        "elapsed 12/58 [00:00]",
    ],
)
def test_what_is_no_bar(text: str) -> None:
    assert find_bars(text) == ()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:12", 12.0),
        ("1:08:20", 4100.0),
        ("123:00:00", 442800.0),
        ("1 day, 2:03:04", 93784.0),
        ("2d 00:00:01", 172801.0),
        ("?", None),
        ("", None),
        ("1:2:3:4", None),
    ],
)
def test_spans(text: str, seconds: float | None) -> None:
    assert parse_span(text) == seconds


def test_every_form_but_the_bare_percentage_holds_a_literal() -> None:
    lines = [
        "Multi-thread loading shards:  34% Completed | 22/64 [00:01<00:02, 19.34it/s]",
        "  0%|          | 0/23 [00:00<?, ?it/s]",
        "12it [00:03,  3.41it/s]",
        "Downloading: 1.20GB [00:12, 98.3MB/s]",
        "pulling 8934d96d3f08:  45% ▕████    ▏ 2.1 GB/4.7 GB  110 MB/s",
        "Download: [3/17] -- ETA: 0:01:52",
    ]
    for line in lines:
        assert find_bars(line)
        assert any(literal in line.encode() for literal in LITERALS), line


@given(st.text(alphabet="0123456789%|/[]<:,. itsBGk?\r\nComplted▕▏█a(=)", max_size=300))
def test_nothing_raises_and_offsets_hold(text: str) -> None:
    last_end = 0
    for bar in find_bars(text):
        assert 0 <= bar.start <= bar.end <= len(text)
        assert bar.end > last_end
        assert bar.done >= 0
        assert "\n" not in bar.desc + bar.tail
        assert "\r" not in bar.desc + bar.tail
        last_end = bar.end


@given(st.integers(0, len(GLUED)))
def test_a_piece_of_the_glued_line_reads_like_the_whole(cut: int) -> None:
    """Cut anywhere, the finished updates are those of the whole line."""
    whole = [(b.done, b.elapsed_s) for b in find_bars(GLUED)]
    piece = [(b.done, b.elapsed_s) for b in find_bars(GLUED[:cut]) if b.finished]
    assert piece == whole[: len(piece)]


@pytest.mark.parametrize(
    "unit", ["9", "9/", "9%|", "Loading 9%|   | 1/2 [", "9 [", "9% ", "Loading 9%|", "1/2 [00:01<", "a (b=", "▕ 9% ▕"]
)
def test_hostile_lines_cost_linear_time(unit: str) -> None:
    def cost_s(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size] + "%| it/s]"
        best = float("inf")
        # Time of this thread alone: the machine may be busy with other tests.
        for _ in range(5):
            begun = time.thread_time()
            find_bars(text)
            best = min(best, time.thread_time() - begun)
        return best

    small, large = cost_s(10_000), cost_s(80_000)
    assert large < 30 * small + 0.05  # 8 times the text; quadratic would be 64 times
