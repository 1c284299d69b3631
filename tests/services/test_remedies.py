"""What is added to a failure's advice: which setting gave a port, and the context that a model was made for."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from specconsole.core.launching.folder import HostMoment, LaunchRecord
from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.reading.reading import read_bytes
from specconsole.errors import SpecconsoleError
from specconsole.services.remedies import remedy, setting_of_port, shorter_context, with_remedy

LOGS = Path(__file__).parents[1] / "core" / "reading" / "captures" / "logs"


def recorded(name: str) -> bytes:
    return gzip.decompress((LOGS / f"{name}.log.gz").read_bytes())


def spec(engine: str = "sglang", port: int | None = 30000, **settings: Any) -> LaunchSpec:
    return LaunchSpec("L1", "p", engine, ("x",), port=port, settings=settings)


class OnePort:
    """A launcher that knows one free port, or none."""

    def __init__(self, port: int | None) -> None:
        self._port = port

    async def free_port(self) -> int:
        if self._port is None:
            raise SpecconsoleError("no free port was found")
        return self._port


def record(of: LaunchSpec, ended_ago_s: float = 60.0) -> LaunchRecord:
    moment = HostMoment(now_s=1_000_000.0)
    return LaunchRecord("L1", "/l/L1", of, exited=True, exit_at_s=1_000_000.0 - ended_ago_s, moment=moment)


@pytest.mark.parametrize(
    ("log", "of", "change"),
    [
        ("sglang-smoke-port-in-use", spec(), {"port": 23456}),
        ("sglang-smoke-port-in-use", spec(port=1, port_=30000, nccl_port=30000), {"port_": 23456}),
        ("sglang-smoke-port-in-use", spec(port=1), None),
        ("vllm-fail-port-in-use", spec("vllm", 18000), {"port": 23456}),
        ("llamacpp-b11434-fail-port-in-use", spec("llamacpp", 18100), {"port": 23456}),
        ("vllm-fail-context-too-long", spec("vllm", 18000), None),
    ],
)
async def test_a_port_that_is_held_is_answered_by_a_free_one(
    log: str, of: LaunchSpec, change: dict[str, Any] | None
) -> None:
    reading = read_bytes(recorded(log), dead=True)
    found = await remedy(OnePort(23456), record(of), reading)  # type: ignore[arg-type]  # only this is asked of it
    assert (found.set if found is not None else None) == change
    if found is not None and change:
        shown = with_remedy(reading, found).failure
        assert shown is not None
        assert shown.advice == found
        assert "-> 23456" in found.text
    assert await remedy(OnePort(None), record(of), reading) is None  # type: ignore[arg-type]
    assert await remedy(OnePort(23456), record(of, ended_ago_s=7200.0), reading) is None  # type: ignore[arg-type]


def test_which_setting_gave_the_port() -> None:
    assert setting_of_port(spec(port=5), 5) == "port"
    assert setting_of_port(LaunchSpec("L", "p", "x", (), port=1, settings={"port": 5}), 5) == "args.port"
    assert setting_of_port(spec(**{"nccl-port": "7"}), 7) == "nccl-port"
    assert setting_of_port(spec(dist_init_addr="10.0.0.1:20000"), 20000) == "dist_init_addr"
    assert setting_of_port(spec(), 9) is None


@pytest.mark.parametrize("log", ["llamacpp-b10434-fail-out-of-memory", "llamacpp-b11434-fail-out-of-memory"])
def test_a_context_beyond_the_model_becomes_the_models(log: str) -> None:
    text = recorded(log)  # n_ctx_seq (131072) > n_ctx_train (4096)
    reading = read_bytes(text, dead=True)
    assert reading.failure is not None
    assert reading.failure.failure_class == "host-memory"
    two_slots = shorter_context(spec("llamacpp", ctx_size=262144), text)
    assert two_slots is not None
    assert two_slots.set == {"ctx_size": 8192}
    assert "262144 -> 8192" in two_slots.text
    one = shorter_context(spec("llamacpp", c=131072), text)
    assert one is not None
    assert one.set == {"c": 4096}
    assert shorter_context(spec("llamacpp"), text) is None
    assert shorter_context(spec("llamacpp", c=131072), b"nothing of it") is None
    assert shorter_context(spec("vllm", c=131072), text) is None
