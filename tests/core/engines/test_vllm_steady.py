"""Rows of access lines: skipping them changes speed, never a reading."""

from __future__ import annotations

import random

from specconsole.core.engines.vllm.dialect import DIALECT
from specconsole.core.reading.block_lines import BlockLines
from specconsole.core.reading.dialect import load
from specconsole.core.reading.reading import Reader

HEAD = (
    b"(APIServer pid=1) INFO 08-01 09:58:00 [api_server.py:1896] vLLM API server version 0.20.2\n"
    b"(APIServer pid=1) INFO 08-01 09:58:00 [utils.py:233] non-default args: {'port': 8000}\n"
    b"(APIServer pid=1) INFO 08-01 09:58:00 [entry.py:140] Starting vLLM server on http://0.0.0.0:8000\n"
    b"INFO:     Application startup complete.\n"
)
WINDOW = (
    b"(APIServer pid=1) INFO 08-01 10:00:%02d [loggers.py:273] Engine 000: Avg prompt throughput: 10.0 tokens/s, Avg "
    b"generation throughput: %d.0 tokens/s, Running: %d reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%%, Prefix cache "
    b"hit rate: 0.0%%\n"
)


def log_of(dice: random.Random) -> bytes:
    parts = [HEAD]
    for i in range(20):
        for _ in range(dice.randrange(30)):
            status = dice.choice([b"200 OK"] * 9 + [b"400 Bad Request"])
            parts.append(
                b'INFO:     127.0.0.1:%d - "POST /v1/completions HTTP/1.1" %s\n' % (dice.randrange(9999), status)
            )
        parts.append(WINDOW % (i, i, dice.choice([0, 1, 5])))
    return b"".join(parts)


def test_line_by_line_and_in_one_piece_are_the_same() -> None:
    dice = random.Random(7)
    whole = log_of(dice)
    for at in [len(whole)] + [dice.randrange(len(HEAD), len(whole)) for _ in range(12)]:
        text = whole[:at]
        once = Reader()
        once.feed(text)
        slowly = Reader()
        for line in text.splitlines(keepends=True):
            slowly.feed(line)  # a row of one line has nothing to skip
        assert once.reading() == slowly.reading()


def test_most_of_a_row_is_not_looked_at() -> None:
    steady = DIALECT.steady
    assert steady is not None
    assert load("vllm") is DIALECT
    row = [b'INFO:     127.0.0.1:1 - "POST /v1/completions HTTP/1.1" 200 OK'] * 50 + [b"INFO:     Shutting down"]
    templates = [line.translate(None, b"0123456789") for line in row]
    kinds = bytes(steady.kind(template) for template in templates)
    assert steady.pick(BlockLines(b"\n".join(row), len(row)), kinds).indexes == [0, 49, 50]
