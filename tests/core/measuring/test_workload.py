"""The same workload and seed send the same bytes; prompts can't hit each other's cache; each engine gets its fields."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from specconsole.core.measuring.workload import Prompt, Workload, build_bodies, hash_of
from specconsole.errors import BadInputError

PROMPTS: Sequence[Prompt] = [Prompt(f"question number {i} about the weather in town") for i in range(5)]
BASE = Workload("w", output_tokens=(10, 20), seed=3)


def test_same_seed_same_hash_and_another_seed_another() -> None:
    first = build_bodies(BASE, PROMPTS, model="a", count=12, engine="vllm")
    again = build_bodies(BASE, PROMPTS, model="b", count=12, engine="vllm")
    other = build_bodies(replace(BASE, seed=4), PROMPTS, model="a", count=12, engine="vllm")
    assert hash_of(first) == hash_of(again), "the model's name is no part of the workload"
    assert hash_of(first) != hash_of(other)


def test_no_two_prompts_begin_alike_unless_a_shared_prefix_is_asked_for() -> None:
    bodies = build_bodies(replace(BASE, prompt_tokens=(40, 40)), PROMPTS, model=None, count=20, engine="vllm")
    assert len({b["prompt"][:12] for b in bodies}) == 20
    shared = build_bodies(
        replace(BASE, prompt_tokens=(40, 40), shared_prefix_ratio=0.5), PROMPTS, model=None, count=20, engine="vllm"
    )
    words = [b["prompt"].split() for b in shared]
    assert all(w[:15] == words[0][:15] for w in words)
    assert len({" ".join(w[15:]) for w in words}) == 5


def test_lengths_are_in_range_and_every_prompt_is_used_before_one_repeats() -> None:
    bodies = build_bodies(BASE, PROMPTS, model=None, count=10, engine="vllm")
    assert all(10 <= b["max_tokens"] <= 20 for b in bodies)
    assert len({b["prompt"].split("number ")[1][0] for b in bodies[:5]}) == 5


@pytest.mark.parametrize(
    ("api", "engine", "limit_key"),
    [
        ("completions", "vllm", "max_tokens"),
        ("chat", "llamacpp", "max_tokens"),
        ("completion", "llamacpp", "n_predict"),
    ],
)
def test_fields_of_each_api(api: str, engine: str, limit_key: str) -> None:
    workload = replace(BASE, api=api, ignore_eos=True)  # type: ignore[arg-type]  # parametrised text
    (body,) = build_bodies(workload, PROMPTS, model="m", count=1, engine=engine)
    assert body["stream"] is True
    assert body["ignore_eos"] is True
    assert limit_key in body
    assert body.get("cache_prompt", False) is False
    assert workload.marks == ("ignore-eos",)


def test_sglang_generate_and_random_tokens() -> None:
    workload = replace(BASE, api="generate", kind="random-tokens", prompt_tokens=(6, 6))
    (body,) = build_bodies(workload, [], model="m", count=1, engine="sglang")
    assert len(body["input_ids"]) == 6
    assert 10 <= body["sampling_params"]["max_new_tokens"] <= 20
    assert workload.marks == ("random-tokens",)


def test_no_prompts_is_said() -> None:
    with pytest.raises(BadInputError, match="no prompts"):
        build_bodies(BASE, [], model=None, count=1, engine="vllm")
