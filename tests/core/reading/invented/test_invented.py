"""Logs of kinds that no recording holds: other engines, versions, wrappers, ranks, devices (expect.toml)."""

from __future__ import annotations

from pathlib import Path

import pytest

from specconsole.core.reading.reading import Reader, read_bytes
from tests.core.reading.captures.expectation import differences, load

HERE = Path(__file__).parent
CASES = load(HERE / "expect.toml")


@pytest.mark.parametrize("name", CASES)
def test_an_invented_log(name: str) -> None:
    want = CASES[name]
    text = (HERE / "logs" / f"{name}.log").read_bytes()
    got = read_bytes(text, dead=want.get("dead", False), exit_code=want.get("exit_code"))
    assert differences(want, got) == []
    # The same in pieces, over a checkpoint.
    reader = Reader()
    for start in range(0, len(text), 97):
        reader.feed(text[start : start + 97])
        if start == 97 * 5:
            reader = Reader.resume(reader.checkpoint())
    again = reader.reading(dead=want.get("dead", False), exit_code=want.get("exit_code"))
    assert again.to_json() == got.to_json()
