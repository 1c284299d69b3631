"""The reader against 144 logs of real servers, each with what a person read in it (the *.toml beside this file)."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Any

import pytest

from specconsole.core.reading.model import START_PHASES
from specconsole.core.reading.reading import Reader
from tests.core.reading.captures.expectation import differences, load, log_bytes

HERE = Path(__file__).parent
CASES = {
    f"{engine}/{name}": want
    for engine in ("sglang", "vllm", "llamacpp")
    for name, want in load(HERE / f"{engine}.toml").items()
}


@functools.cache
def whole(name: str) -> Reader:
    """A reader that took the whole log; asking it changes nothing."""
    reader = Reader()
    reader.feed(log_bytes(HERE, CASES[name]["log"]))
    return reader


@pytest.mark.parametrize("name", CASES)
def test_a_log_of_a_process_that_is_gone(name: str) -> None:
    want = CASES[name]
    got = whole(name).reading(dead=True, exit_code=want.get("exit_code"))
    assert differences(want, got) == []
    if "advice_set" in want:
        assert got.failure is not None
        assert got.failure.advice is not None
        assert got.failure.advice.set == want["advice_set"]


@pytest.mark.parametrize("name", CASES)
def test_the_same_log_while_nobody_knows_that_it_ended(name: str) -> None:
    want = CASES[name]
    assert differences({**want, "spans": []}, whole(name).reading(), alive=True) == []


@pytest.mark.parametrize("name", [name for name, want in CASES.items() if want.get("cuts")])
def test_a_start_at_moments_that_a_person_named(name: str) -> None:
    text = log_bytes(HERE, CASES[name]["log"])
    moments = sorted(((_behind(text, cut), cut) for cut in CASES[name]["cuts"]), key=lambda moment: moment[0])
    reader, fed = Reader(), 0
    for at, want in moments:
        reader.feed(text[fed:at])
        fed = at
        expected: dict[str, Any] = {"engine": [*CASES[name]["engine"], "unknown"], "failure": False, **want}
        assert differences(expected, reader.reading()) == [], want["behind"]


def _behind(text: bytes, cut: dict[str, Any]) -> int:
    at = -1
    for _ in range(cut["nth"]):
        at = text.index(cut["behind"].encode(), at + 1)
    return at + len(cut["behind"].encode())


OPENERS = (b"hit an exception", b"failed to start", b"Traceback (most recent", b"fatal error")
FAILING = [name for name, want in CASES.items() if want.get("failure") and want["failure"]["line_contains"]]


@pytest.mark.parametrize("name", FAILING)
def test_no_failure_is_told_before_the_log_tells_one(name: str) -> None:
    text = log_bytes(HERE, CASES[name]["log"])
    words = [cause.encode() for cause in CASES[name]["failure"]["line_contains"]] + list(OPENERS)
    end = text.rfind(b"\n", 0, min(at for word in words if (at := text.find(word)) >= 0)) + 1
    dice = random.Random(name)
    reader, fed = Reader(), 0
    for at in sorted({dice.randrange(end + 1) for _ in range(8)}):
        reader.feed(text[fed:at])
        fed = at
        got = reader.reading()
        assert got.failure is None, f"at byte {at}: {got.failure}"


HEALTHY = [name for name, want in CASES.items() if not want.get("failure") or not want["failure"]["line_contains"]]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_start_is_never_called_failed_wherever_it_is_cut(name: str) -> None:
    want = CASES[name]
    text = log_bytes(HERE, want["log"])
    dice = random.Random(name)
    reader, fed, was_ready = Reader(), 0, False
    for at in sorted(dice.sample(range(len(text)), min(12, len(text)))):
        reader.feed(text[fed:at])
        fed = at
        got = reader.reading()
        assert got.failure is None, f"at byte {at}: {got.failure}"
        assert got.phase != "failed"
        assert not (was_ready and got.phase in START_PHASES), f"back from ready to {got.phase} at byte {at}"
        was_ready = was_ready or got.phase in ("ready", "serving")
        if got.progress is not None and got.progress.total is not None:
            assert 0 <= got.progress.done <= got.progress.total
        if got.progress is not None and got.progress.eta_s is not None:
            eta = got.progress.eta_s
            assert 0 <= eta.low <= eta.mid <= eta.high
