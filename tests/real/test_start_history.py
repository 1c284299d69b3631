"""Repeated starts of a real server: each is foretold from the ones before it, through the store, by the log alone.

The witness is the server's own health endpoint: the moment at which it first said 200.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from specconsole.adapters.sqlite_store import SqliteStore
from specconsole.core.reading.history import History, StartKey, samples_of
from specconsole.core.reading.model import EtaRange
from specconsole.core.reading.reading import Reader
from specconsole.demo.models import ModelFiles
from tests.support.fixtures_servers import StartLlama
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.real

STARTS = 7
KEY = StartKey("llamacpp", model="slow", draft="draft", host="local")


@dataclass(frozen=True, slots=True)
class Watched:
    told: list[tuple[float, EtaRange]]
    """(seconds since the start, what was said then)."""
    answered_s: float
    reader: Reader


def _watch(start_llama: StartLlama, models: ModelFiles, history: History) -> Watched:
    reader = Reader(engine="llamacpp", key=KEY, history=history)
    begun_s = time.monotonic()
    server = start_llama(models=models, ready=False)
    told: list[tuple[float, EtaRange]] = []
    with server.log.open("rb") as log:
        while server.health() != 200:
            now_s = time.monotonic()
            assert now_s - begun_s < PATIENCE_S
            assert server.process.poll() is None
            reader.feed(log.read(), at_s=now_s)
            eta = reader.reading(now_s=now_s).ready_eta_s
            if eta is not None:
                told.append((now_s - begun_s, eta))
            time.sleep(0.01)
        answered_s = time.monotonic() - begun_s
        reader.feed(log.read(), at_s=time.monotonic())
    server.stop()
    return Watched(told, answered_s, reader)


async def test_starts_are_foretold_from_the_ones_before(
    start_llama: StartLlama, slow_llama_models: ModelFiles, tmp_path: Path
) -> None:
    store = await SqliteStore.open(tmp_path / "store.sqlite3")
    watched = []
    for number in range(STARTS):
        history = History(await store.samples(engine="llamacpp"))
        seen = _watch(start_llama, slow_llama_models, history)
        samples = samples_of(KEY, seen.reader.reading().timeline, at_s=float(number))
        assert {sample.phase for sample in samples} >= {"weights"}
        await store.put_samples(f"start-{number}", samples)
        watched.append(seen)
    await store.aclose()

    assert watched[0].told == [], "nothing is foretold without a start before"
    spoken = [(seen, at_s, eta) for seen in watched[1:] for at_s, eta in seen.told]
    assert len({id(seen) for seen, *_ in spoken}) >= STARTS - 2, "starts of which nothing was foretold"
    assert all("history:n=" in eta.basis for *_, eta in spoken)
    held = sum(eta.low <= seen.answered_s - at_s <= eta.high for seen, at_s, eta in spoken)
    assert held >= 0.75 * len(spoken)
