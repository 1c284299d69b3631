"""Whatever is set to whatever: every rule answers, every fix can be written and applied."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specconsole.core.launching.command import build_argv, override
from specconsole.core.launching.engine_flags import check_flags
from specconsole.core.launching.engine_settings import ENGINE_FLAGS, ModelFacts, judge_profile
from specconsole.core.launching.findings import fix_text, in_its_words, mended_by, of_verdict
from specconsole.core.launching.help_text import FlagCatalogue
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.versions import parse_version
from specconsole.errors import BadInputError
from tests.core.engines import rules_of_llamacpp, rules_of_sglang, rules_of_vllm

TABLES = {"sglang": rules_of_sglang.ROWS, "vllm": rules_of_vllm.ROWS, "llamacpp": rules_of_llamacpp.ROWS}
SCALARS = st.one_of(
    st.integers(-(10**20), 10**20), st.floats(), st.booleans(), st.text(max_size=6),
    st.sampled_from(["inf", "nan", "1e999", "-1", "0", "EAGLE3", "NGRAM", "DFLASH", "decode", "cpu", "{", "[]"]),
)  # fmt: skip
KEYS_INSIDE = ("method", "model", "num_speculative_tokens", "num_speculative_tokens_per_batch_size",
               "draft_tensor_parallel_size", "prompt_lookup_min", "prompt_lookup_max", "x", "fly_window")  # fmt: skip
VALUES = st.one_of(
    SCALARS,
    st.lists(st.one_of(SCALARS, st.lists(st.integers(-3, 40), max_size=4)), max_size=4),
    st.dictionaries(st.sampled_from(KEYS_INSIDE), st.one_of(SCALARS, st.lists(st.lists(st.integers(-3, 40), max_size=4),
                                                                              max_size=3)), max_size=5),
)  # fmt: skip
VERSIONS = st.sampled_from(
    [None, "0.4.6", "0.5.3", "0.5.8", "0.5.12", "0.5.17", "0.5.23", "0.10.2", "0.20.2", "0.33.0"]
)


@pytest.mark.parametrize("engine", list(TABLES))
def test_no_setting_makes_a_rule_fall_over(engine: str) -> None:
    rows = TABLES[engine]
    keys = sorted({key for row in rows for key in row[2]})
    names = sorted({name for row in rows for name in row[3].get("env", {})} | {"X"})
    catalogue = FlagCatalogue((), "none")

    @settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
    @given(
        st.sampled_from(rows), st.dictionaries(st.sampled_from(keys), VALUES, max_size=6),
        st.dictionaries(st.sampled_from(names), st.text(max_size=4), max_size=2), VERSIONS,
        st.builds(ModelFacts, st.one_of(st.none(), st.text(max_size=8)), st.one_of(st.none(), st.integers(1, 10**6)),
                  st.one_of(st.none(), st.integers(1, 128)), st.one_of(st.none(), st.integers(1, 4))),
    )  # fmt: skip
    def check(row: Any, more: dict[str, Any], env: dict[str, str], version: str | None, facts: ModelFacts) -> None:
        profile = Profile("p", engine, args={**row[2], **more}, env=env)
        check_flags(ENGINE_FLAGS[engine], catalogue, profile.args, certain=True)
        verdicts = judge_profile(profile, parse_version(version), facts, facts)
        findings = [in_its_words(profile, of_verdict(verdict)) for verdict in verdicts]
        fix, _ = mended_by(findings)
        fix_text(fix)
        mended = override(profile, fix)
        try:
            build_argv(mended, 1)
        except BadInputError as error:
            assert "ps" in str(error) or "NUL" in str(error)  # noqa: PT017 - both are right answers

    check()
