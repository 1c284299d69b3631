"""The cross-flag rules against the servers themselves: SGLang's `ServerArgs` and vLLM's configuration of one profile.

One process of the engine judges all of its cases; nothing is loaded. What a rule calls an error the server must refuse,
what it calls overridden the server must make what the rule says, and what it lets pass the server must take as asked.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from specconsole.core.launching.command import build_argv
from specconsole.core.launching.engine_settings import ModelFacts, judge_profile
from specconsole.core.launching.profile import ArgValue, Profile
from specconsole.core.launching.rules import Verdict
from specconsole.core.launching.versions import parse_version
from tests.engines.conftest import need
from tests.engines.engines import QUIET, SUPPORT, environment
from tests.engines.support.checkpoints import SHAPE, Checkpoints

VERSIONS = {"sglang": "0.5.17", "vllm": "0.32.0"}
HEADS = SHAPE.hidden // SHAPE.head_size


@dataclass(frozen=True)
class Case:
    """Settings, and the rule that must speak; "" where none may say error or overridden."""

    rule: str
    args: Mapping[str, ArgValue]
    draft: str = ""
    """`draft`, `eagle3`, `short`."""
    env: Mapping[str, str] = field(default_factory=dict)
    says: str = ""
    """What must stand in the server's own words."""
    draft_positions: int | None = None


def chain(steps: int, topk: int, tokens: int) -> dict[str, ArgValue]:
    return {
        "speculative_num_steps": steps, "speculative_eagle_topk": topk, "speculative_num_draft_tokens": tokens,
        "max_running_requests": 8,
    }  # fmt: skip


def eagle3(**more: ArgValue) -> dict[str, ArgValue]:
    return {"speculative_algorithm": "EAGLE3", **chain(3, 1, 4), **more}


SGLANG = {
    "a chain as it should be": Case("", eagle3(), "eagle3"),
    "a tree as it should be": Case("", {**eagle3(), **chain(3, 4, 8)}, "eagle3"),
    "draft tokens of a chain": Case("chain-tokens", {**eagle3(), **chain(3, 1, 8)}, "eagle3", says="is adjusted to"),
    "steps missing": Case(
        "all-three-or-none", {"speculative_algorithm": "EAGLE3", "speculative_num_draft_tokens": 4,
                              "max_running_requests": 8}, "eagle3", says="AssertionError"
    ),
    "top-k missing": Case(
        "all-three-or-none", {"speculative_algorithm": "EAGLE3", "speculative_num_steps": 3,
                              "max_running_requests": 8}, "eagle3", says="TypeError"
    ),
    "no cap set": Case(
        "running-cap", {k: v for k, v in eagle3().items() if k != "max_running_requests"}, "eagle3", says="reset to 48"
    ),
    "no cap without speculation": Case("", {}),
    "mixed chunks": Case("mixed-chunk", eagle3(enable_mixed_chunk=True), "eagle3", says="Mixed chunked prefill"),
    "the variable of spec v2": Case(
        "spec-v2-variable-gone", eagle3(), "eagle3", env={"SGLANG_ENABLE_SPEC_V2": "1"}, says="has been removed"
    ),
    "pages and a tree": Case(
        "page-size-topk", {**eagle3(page_size=64, attention_backend="flashmla"), **chain(3, 4, 8)}, "eagle3",
        says="only supported on",
    ),
    "pages and a tree with a back end that can": Case(
        "", {**eagle3(page_size=16, attention_backend="fa3"), **chain(3, 4, 8)}, "eagle3"
    ),
    "n-gram with data-parallel attention": Case(
        "dp-attention", {"speculative_algorithm": "NGRAM", "enable_dp_attention": True, "dp_size": 2, "tp_size": 2,
                         "max_running_requests": 8}, says="does not support dp attention"
    ),
    "a draft model with data-parallel attention": Case(
        "dp-attention", {"speculative_algorithm": "STANDALONE", **chain(3, 1, 4), "enable_dp_attention": True,
                         "dp_size": 2, "tp_size": 2}, "draft", says="does not support dp attention"
    ),
    "n-gram's breadth": Case(
        "ngram-width", {"speculative_algorithm": "NGRAM", "speculative_eagle_topk": 3, "max_running_requests": 8,
                        "speculative_num_draft_tokens": 8}
    ),
    "adaptive with a draft model": Case(
        "adaptive", {"speculative_algorithm": "STANDALONE", **chain(3, 1, 4), "speculative_adaptive": True}, "draft",
        says="speculative_adaptive disabled",
    ),
    "adaptive with a tree": Case(
        "adaptive", {**eagle3(speculative_adaptive=True), **chain(3, 4, 8)}, "eagle3", says="only topk=1"
    ),
    "adaptive with steps that it has not": Case(
        "adaptive-steps", {"speculative_algorithm": "EAGLE3", "speculative_num_steps": 2, "speculative_adaptive": True,
                           "max_running_requests": 8}, "eagle3", says="candidate_steps"
    ),
    "rejection sampling with a draft model": Case(
        "rejection-sampling", {"speculative_algorithm": "STANDALONE", **chain(3, 1, 4),
                               "speculative_use_rejection_sampling": True}, "draft", says="only supported for"
    ),
    "rejection sampling with a tree": Case(
        "rejection-sampling", {**eagle3(speculative_use_rejection_sampling=True), **chain(3, 4, 8)}, "eagle3",
        says="requires --speculative-eagle-topk=1",
    ),
    "rejection sampling with a threshold": Case(
        "rejection-sampling", eagle3(speculative_use_rejection_sampling=True, speculative_accept_threshold_single=0.5),
        "eagle3", says="incompatible",
    ),
    "a threshold that is lossy": Case("lossy-thresholds", eagle3(speculative_accept_threshold_single=0.5), "eagle3"),
    "DFLASH's steps": Case(
        "block-drafts", {"speculative_algorithm": "DFLASH", **chain(3, 4, 8)}, "draft", says="overriding"
    ),
    "a flag that came later": Case("not-yet", eagle3(speculative_draft_sink_size=4), "eagle3", says="unrecognized"),
}  # fmt: skip


def spec(**config: Any) -> dict[str, ArgValue]:
    return {"speculative_config": config}


NGRAM = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}
EAGLE = {"method": "eagle3", "model": "{eagle3}", "num_speculative_tokens": 3}
VLLM = {
    "n-gram as it should be": Case("", spec(**NGRAM)),
    "EAGLE-3 as it should be": Case("", spec(**EAGLE)),
    "no JSON": Case("unreadable-json", {"speculative_config": "{method"}, says="cannot be converted"),
    "an unknown key": Case("unknown-keys", spec(**NGRAM, colour=1), says="Unexpected keyword"),
    "the target's word for the draft": Case(
        "unknown-keys", spec(**NGRAM, tensor_parallel_size=1), says="draft_tensor_parallel_size"
    ),
    "an old key": Case("old-keys", spec(**NGRAM, disable_by_batch_size=4), says="Unexpected keyword"),
    "an unknown method": Case("unknown-method", spec(method="lookup", num_speculative_tokens=3), says="Input should"),
    "no draft": Case(
        "draft-path-missing", spec(method="draft_model", num_speculative_tokens=3), says="without speculative model"
    ),
    "no number of tokens": Case("tokens-missing", spec(method="ngram", prompt_lookup_max=3), says="must be provided"),
    "no number of tokens for EAGLE-3": Case(
        "tokens-missing", spec(method="eagle3", model="{eagle3}"), says="was not provided"
    ),
    "no tokens": Case("tokens-missing", spec(**{**NGRAM, "num_speculative_tokens": 0}), says="greater than 0"),
    "given twice": Case("given-twice", {**spec(**NGRAM), "spec_tokens": 4}, says="mutually exclusive"),
    "by the short flags": Case("", {"spec_method": "ngram", "spec_tokens": 4}),
    "the draft's parallelism": Case(
        "draft-parallel", spec(**EAGLE, draft_tensor_parallel_size=2), says="cannot be other value"
    ),
    "the range of look-ups": Case("lookup-range", spec(**NGRAM, prompt_lookup_min=6), says="must be <="),
    "a draft with fewer positions": Case(
        "draft-shortens-context", spec(method="draft_model", model="{short}", num_speculative_tokens=3),
        draft_positions=512,
    ),
    "made-up acceptance": Case(
        "simulated", spec(**EAGLE, rejection_sample_method="synthetic", synthetic_acceptance_length=2.5)
    ),
    "a share over one": Case("memory-share", {"gpu_memory_utilization": 1.4}, says="less than or equal to 1"),
    "heads that can't be divided": Case("heads-divide", {"tensor_parallel_size": 3}, says="must be divisible"),
    "a context beyond the model's": Case("context-beyond-model", {"max_model_len": 99_999}, says="User-specified"),
    "a context beyond the model's, allowed": Case(
        "", {"max_model_len": 99_999}, env={"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"}
    ),
    "the old draft flags": Case(
        "old-draft-flags", {"speculative_model": "{draft}", "num_speculative_tokens": 3}, says="unrecognized arguments"
    ),
    "token numbers by batch size with replicas": Case(
        "per-batch-with-dp",
        {**spec(**EAGLE, num_speculative_tokens_per_batch_size=[[1, 4, 3], [5, 64, 1]]), "data_parallel_size": 2},
        says="not supported with data parallelism",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def drafts(checkpoints: Checkpoints, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Names that a case may use."""
    short = tmp_path_factory.mktemp("short") / "draft"
    shutil.copytree(checkpoints.draft, short)
    settings = json.loads((short / "config.json").read_text())
    (short / "config.json").write_text(json.dumps({**settings, "max_position_embeddings": 512}))
    return {"draft": str(checkpoints.draft), "eagle3": str(checkpoints.eagle3), "short": str(short)}


def profile_of(engine: str, case: Case, target: str, drafts: Mapping[str, str]) -> Profile:
    args = json.loads(json.dumps(dict(case.args)))
    for name, path in drafts.items():
        args = json.loads(json.dumps(args).replace(f"{{{name}}}", path))
    if engine == "vllm":
        args = {"gpu_memory_utilization": 0.2, **args}
    draft = drafts[case.draft] if case.draft else None
    return Profile(
        name=case.rule or "fine", engine=engine, model=target, draft_model=draft, args=args, env=dict(case.env)
    )


def judged_by_server(engine: str, profiles: list[Profile]) -> list[dict[str, Any]]:
    """Settings, error and log of each, from one process of the engine's own Python."""
    device = ["--device", "cuda"] if engine == "sglang" else []
    plain = Profile(name="plain", engine=engine, model=profiles[0].model,
                    args={"gpu_memory_utilization": 0.2} if engine == "vllm" else {})  # fmt: skip
    cases = []
    for profile in [plain, *profiles]:
        argv = build_argv(profile, 30111)
        words = list(argv[next(n for n, word in enumerate(argv) if word.startswith("-") and word != "-m") :])
        cases.append({"args": [*words, *device], "env": dict(profile.env)})
    done = subprocess.run(
        ["nice", "-n", "5", str(environment(engine) / "bin/python"), str(SUPPORT / f"judge_{engine}.py")],
        input=json.dumps(cases), capture_output=True, text=True, timeout=1200, check=False,
        env={**os.environ, **QUIET, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    answers: list[dict[str, Any]] = json.loads(done.stdout)[1:]
    return answers


@pytest.mark.parametrize(("engine", "cases"), [("sglang", SGLANG), ("vllm", VLLM)], ids=["sglang", "vllm"])
def test_rules_say_what_the_server_does(
    engine: str, cases: dict[str, Case], checkpoints: Checkpoints, drafts: dict[str, str]
) -> None:
    need(engine)
    profiles = [profile_of(engine, case, str(checkpoints.target), drafts) for case in cases.values()]
    answers = judged_by_server(engine, profiles)
    facts = ModelFacts("LlamaForCausalLM", SHAPE.context_tokens, HEADS)
    wrong: dict[str, str] = {}
    for (name, case), profile, answer in zip(cases.items(), profiles, answers, strict=True):
        positions = case.draft_positions or (SHAPE.context_tokens if case.draft else None)
        draft = ModelFacts(None, positions) if positions else None
        verdicts = judge_profile(profile, parse_version(VERSIONS[engine]), facts, draft)
        problem = disagreement(case, verdicts, answer)
        if problem:
            wrong[name] = f"{problem}; rules: {[(v.rule_id, v.level) for v in verdicts]}; server: {answer['error']!r}"
    assert wrong == {}
    ruled = {case.rule for case in cases.values() if case.rule}
    assert len(ruled) >= 10


def disagreement(case: Case, verdicts: tuple[Verdict, ...], answer: Mapping[str, Any]) -> str:
    """ "" when rules and server agree on this case."""
    error, settings = answer["error"], answer["settings"]
    grave = [verdict for verdict in verdicts if verdict.level in ("error", "overridden")]
    if case.rule and case.rule not in [verdict.rule_id for verdict in verdicts]:
        return "the rule is silent"
    if case.says and case.says not in error + answer["log"]:
        return f"the server does not say {case.says!r}"
    if any(verdict.level == "error" for verdict in grave):
        return "" if error else "a rule says error and the server takes it"
    if error:
        return "the server refuses what the rules let pass"
    if not case.rule and grave:
        return "a rule speaks where nothing is to be said"
    for verdict in grave:
        for key, value in verdict.becomes.items():
            if key in settings and settings[key] != value:
                return f"{verdict.rule_id} says that {key} becomes {value!r}, the server has {settings[key]!r}"
    asked = {key: value for key, value in case.args.items() if isinstance(value, int | float | bool)}
    changed = {key for verdict in grave for key in verdict.becomes}
    for key, value in asked.items():
        if key in settings and key not in changed and settings[key] != value:
            return f"no rule says that {key} becomes {settings[key]!r}"
    return ""
