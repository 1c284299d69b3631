"""Finding a setting by any part of its name."""

from __future__ import annotations

from functools import cache

import pytest

from specconsole.core.engines.sglang.form_layout import LAYOUT
from specconsole.core.launching.form_search import Hit, SettingSearch
from specconsole.core.views.form import FormView
from tests.core.launching.form_cases import index_of, model_of


@cache
def shown() -> FormView:
    return model_of("child").view


@cache
def search() -> SettingSearch:
    view = shown()
    texts = {one.field.path: one.text for one in view.fields if one.text}
    return SettingSearch(view.fields, index_of("sglang"), LAYOUT.variables, texts)


def hits(query: str) -> list[Hit]:
    return list(search().find(query))


@pytest.mark.parametrize(
    ("query", "first", "kind"),
    [
        ("steps", "speculative_num_steps", "field"),
        ("topk", "speculative_eagle_topk", "field"),
        ("mem fr", "mem_fraction_static", "field"),
        ("--mem-fraction", "mem_fraction_static", "field"),
        ("mfs", "mem_fraction_static", "field"),
        ("tp_size", "tp", "field"),
        ("lora rank", "max_lora_rank", "flag"),
        ("enable-lora", "enable_lora", "flag"),
        ("nccl_debug", "NCCL_DEBUG", "variable"),
        ("NCCL_ALGO", "NCCL_ALGO", "field"),
        ("MY_OWN_FLAG", "MY_OWN_FLAG", "variable"),
        ("out-of-memory", "mem_fraction_static", "field"),
    ],
)
def test_the_best_hit_comes_first(query: str, first: str, kind: str) -> None:
    found = hits(query)[0]
    assert (found.name, found.kind) == (first, kind)


def test_an_empty_query_shows_the_form_and_nonsense_nothing() -> None:
    assert {hit.kind for hit in hits("")} == {"field"}
    assert hits("qqqzzz") == []


def test_every_flag_of_the_server_is_found_by_its_name() -> None:
    there = {view.field.flag for view in shown().fields}
    missing = []
    for flag in index_of("sglang").catalogue.flags[::12]:
        if flag.name not in there and flag.name not in [
            f"--{hit.name.replace('_', '-')}" for hit in hits(flag.name)[:3]
        ]:
            missing.append(flag.name)
    assert missing == ["--help"]
