"""A table a rule: settings that it speaks of, with level and consequence, and neighbours that it lets pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from specconsole.core.engines.llamacpp import rules as llamacpp
from specconsole.core.engines.sglang import rules as sglang
from specconsole.core.engines.vllm import rules as vllm
from specconsole.core.launching.rules import Asked, Rule, Verdict, judge_settings, normalise
from specconsole.core.launching.versions import parse_version
from tests.core.engines import rules_of_llamacpp, rules_of_sglang, rules_of_vllm
from tests.core.engines.rule_row import CHAIN, Row

RULES: Mapping[str, tuple[Rule, ...]] = {
    "sglang": sglang.RULES, "vllm": vllm.RULES, "llamacpp": llamacpp.RULES,
}  # fmt: skip
TABLES: Mapping[str, list[Row]] = {
    "sglang": rules_of_sglang.ROWS, "vllm": rules_of_vllm.ROWS, "llamacpp": rules_of_llamacpp.ROWS,
}  # fmt: skip
ALL = [(engine, row) for engine, rows in TABLES.items() for row in rows]

# What only the person knows: a path, an address, another server.
NO_VALUE = {
    "draft-path-missing", "unreadable-json", "old-methods", "algorithm-of-version", "nodes", "uno", "eagle3-targets",
    "dp-attention-chunk",
}  # fmt: skip


def asked_by(row: Row) -> Asked:
    _, version, args, more, _, _ = row
    return Asked(args=args, version=parse_version(version), **more)


def said(engine: str, rule: str, asked: Asked) -> list[Verdict]:
    return [verdict for verdict in judge_settings(RULES[engine], asked) if verdict.rule_id == rule]


@pytest.mark.parametrize(("engine", "row"), ALL, ids=[f"{e}-{row[0]}-{n}" for n, (e, row) in enumerate(ALL)])
def test_a_rule_speaks_when_it_must_and_only_then(engine: str, row: Row) -> None:
    rule, _, _, _, level, gives = row
    found = said(engine, rule, asked_by(row))
    if level is None:
        assert found == []
        return
    (verdict,) = found
    assert verdict.level == level
    assert verdict.text
    assert verdict.source
    offered = {**verdict.becomes, **(verdict.fix or {})}
    for key, value in gives.items():
        either = (verdict.becomes.get(key, _NONE), (verdict.fix or {}).get(key, _NONE))
        assert value in either, offered


_NONE = object()


def test_every_rule_stands_in_its_table_in_both_ways() -> None:
    for engine, rules in RULES.items():
        for rule in {r.rule_id for r in rules}:
            rows = [row for row in TABLES[engine] if row[0] == rule]
            assert {row[4] is None for row in rows} == {True, False}, f"{engine}: {rule}"
        assert {row[0] for row in TABLES[engine]} == {r.rule_id for r in rules}


def test_a_fix_silences_its_rule_and_wakes_no_graver_one() -> None:
    """Applied by one key, it must be worth the key."""
    for engine, row in ALL:
        rule, _, args, _, level, _ = row
        if level is None:
            continue
        asked = asked_by(row)
        (verdict,) = said(engine, rule, asked)
        if verdict.fix is None:
            assert level in ("note", "warning") or rule in NO_VALUE, (engine, rule)
            continue
        assert verdict.fix, (engine, rule)
        again = fixed(asked, verdict.fix)
        assert said(engine, rule, again) == [], (engine, row)
        before, after = ({v.rule_id for v in judge_settings(RULES[engine], a) if v.level == "error"}
                         for a in (asked, again))  # fmt: skip
        assert after <= before, (engine, row, after - before)
        assert args == row[2]


def fixed(asked: Asked, fix: Mapping[str, Any]) -> Asked:
    """The settings after a fix, as `command.override` applies it."""
    args, env = dict(asked.args), dict(asked.env)
    for key, value in fix.items():
        target, name = (env, key[4:]) if key.startswith("env.") else (args, key)
        if value is None:
            target.pop(name, None)
        else:
            target[name] = value
    return replace(asked, args=args, env=env)


def test_without_a_version_a_rule_of_some_versions_is_softer_and_the_newest_of_its_name_speaks() -> None:
    found = judge_settings(sglang.RULES, Asked(args=CHAIN))
    (verdict,) = [v for v in found if v.rule_id == "overlap-off"]
    assert verdict.level == "warning"
    assert "0.5.6 to 0.5.10" in verdict.text
    assert len({v.rule_id for v in found}) == len(found)


def test_aliases_are_one_setting() -> None:
    assert normalise({"--tp": 8, "speculative-draft-model": "/d"}, sglang.ALIASES) == {
        "tp_size": 8,
        "speculative_draft_model_path": "/d",
    }
