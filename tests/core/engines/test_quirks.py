"""Quirks by version: health endpoints, what they cost, and how long a stop may take."""

from __future__ import annotations

import pytest

from specconsole.core.engines.llamacpp.quirks import QUIRKS as LLAMACPP
from specconsole.core.engines.sglang import quirks as sglang
from specconsole.core.engines.vllm import quirks as vllm
from specconsole.core.launching.quirk import has, quirks_for

ALL = (*LLAMACPP, *sglang.QUIRKS, *vllm.QUIRKS)


def test_every_quirk_has_a_name_of_its_own_a_text_and_a_source() -> None:
    for quirks in (LLAMACPP, sglang.QUIRKS, vllm.QUIRKS):
        ids = [quirk.quirk_id for quirk in quirks]
        assert len(set(ids)) == len(ids)
    assert all(len(quirk.text) > 20 and quirk.source for quirk in ALL)


@pytest.mark.parametrize(
    ("version", "path", "generates"),
    [
        ("0.4.6.post5", "/health", False),
        ("0.5.3.post3", "/health", True),
        ("0.5.17", "/health", True),
        ("0.5.23", "/ready", False),
        (None, "/health", True),
    ],
)
def test_health_of_sglang_by_version(version: str | None, path: str, generates: bool) -> None:
    assert sglang.health_path(version) == path
    assert sglang.health_generates(version, None) is generates
    assert sglang.health_generates(version, "0") is False


def test_quirks_of_a_version_and_of_an_unknown_one() -> None:
    old = {quirk.quirk_id for quirk in quirks_for(sglang.QUIRKS, "0.4.6")}
    new = {quirk.quirk_id for quirk in quirks_for(sglang.QUIRKS, "0.5.23")}
    assert "health-shallow" in old - new
    assert "ready-endpoint" in new - old
    assert len(quirks_for(sglang.QUIRKS, None)) == len(sglang.QUIRKS)
    assert has(sglang.QUIRKS, "ready-endpoint", "0.5.23")
    assert not has(sglang.QUIRKS, "ready-endpoint", None)


def test_a_stop_of_vllm_waits_no_longer_than_one_that_works_takes_unless_it_drains() -> None:
    assert vllm.grace_s(60.0, {}, loading=False) == vllm.TERM_TAKES_S
    assert vllm.grace_s(5.0, {}, loading=False) == 5.0
    assert vllm.grace_s(60.0, {"shutdown-timeout": 30}, loading=False) == 60.0
    assert vllm.grace_s(60.0, {"shutdown-timeout": 30}, loading=True) == vllm.TERM_WHILE_LOADING_S
