"""Fixtures: model files and llama.cpp servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specconsole.demo.models import ModelFiles, ModelShape, write_models
from tests.support.fake_clock import FakeClock
from tests.support.llama import LlamaServer, stop_all

StartLlama = Callable[..., LlamaServer]


@pytest.fixture(scope="session")
def llama_models(tmp_path_factory: pytest.TempPathFactory) -> ModelFiles:
    """A tiny target (6 layers, 8.6 MB) and its draft; loads in 0.1 s, decodes about 1,000 tokens a second."""
    return write_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def slow_llama_models(tmp_path_factory: pytest.TempPathFactory) -> ModelFiles:
    """A pair big enough that loading can be seen (503 for 0.3 s and more) and streams can be cut."""
    shape = ModelShape(hidden=1024, layers=10, sharpness=0.4)
    return write_models(tmp_path_factory.mktemp("slow-models"), shape, name="slow")


@pytest.fixture
def start_llama(llama_models: ModelFiles, tmp_path: Path) -> Iterator[StartLlama]:
    """Starts real servers: `start_llama(*flags, draft=True, models=..., ready=True)`; stopped after the test."""
    servers: list[LlamaServer] = []

    def start(*flags: str, draft: bool = True, models: ModelFiles = llama_models, ready: bool = True) -> LlamaServer:
        server = LlamaServer(models, tmp_path, *flags, draft=draft)
        servers.append(server)
        return server.wait_ready() if ready else server

    yield start
    stop_all(servers)


@pytest.fixture
def llama(start_llama: StartLlama) -> LlamaServer:
    """One real llama.cpp server with a draft that answers already."""
    return start_llama()


@pytest.fixture
def fake_clock() -> FakeClock:
    return FakeClock()
