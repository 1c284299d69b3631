"""A workload: the shape of a benchmark, and the exact request bodies that follow from it and a seed.

The same workload, seed and count always give the same bodies: the hash of what is sent stands on every result, so
that two results can only be compared when they sent the same. Acceptance depends on what the text is about, so
prompts are of a kind (chat, code, maths, summarising, translation) or come from a file; random tokens are possible and
marked as meaningless for speculation.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from specconsole.errors import BadInputError

Api = Literal["completions", "chat", "generate", "completion"]
"""OpenAI's two, SGLang's /generate, llama.cpp's /completion."""

WORDS_PER_TOKEN = 0.75
"""For cutting prompts to a length without the model's tokenizer; what the server counted stands in the result."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn. Temperature 0 is greedy and can be checked for losslessness."""

    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """See the module. Lengths are tokens, given as one number or as [least, most] (drawn evenly)."""

    name: str
    description: str = ""
    api: Api = "completions"
    kind: str = "chat"
    """A prompt set that ships (`profiles/workloads/prompts/KIND.txt`), or `file`, `random-tokens`."""
    prompt_file: str | None = None
    prompt_tokens: tuple[int, int] | None = None
    """None: prompts as long as they are."""
    output_tokens: tuple[int, int] = (256, 256)
    requests_per_concurrency: int = 10
    """Measured requests at a level: this times the concurrency (5 is usual, 10 steady)."""
    least_requests: int = 10
    duration_s: float | None = None
    """Measure for a time instead of a number of requests."""
    warmup_per_concurrency: int = 1
    """Warm-up requests at a level, times the concurrency; never less than one each."""
    concurrency: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    rate_per_s: tuple[float, ...] = ()
    """Open loop instead: Poisson arrivals at these rates."""
    sampling: Sampling = field(default_factory=Sampling)
    ignore_eos: bool = False
    """Marked on the result: tokens forced after the end of the text inflate acceptance."""
    shared_prefix_ratio: float = 0.0
    """Share of each prompt's words that all prompts have in common (0: none can hit the prefix cache)."""
    seed: int = 1
    limit_ttft_s: float | None = None
    limit_tpot_s: float | None = None
    limit_e2e_s: float | None = None

    def requests_at(self, concurrency: int) -> int:
        return max(self.least_requests, self.requests_per_concurrency * concurrency)

    def warmup_at(self, concurrency: int) -> int:
        return max(1, self.warmup_per_concurrency) * concurrency

    @property
    def marks(self) -> tuple[str, ...]:
        """What a reader of any result of it must know."""
        found = []
        if self.kind == "random-tokens":
            found.append("random-tokens")
        if self.ignore_eos:
            found.append("ignore-eos")
        if self.shared_prefix_ratio > 0:
            found.append("shared-prefix")
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt: plain text, or chat messages."""

    text: str | None = None
    messages: tuple[Mapping[str, str], ...] = ()


def build_bodies(
    workload: Workload, prompts: Sequence[Prompt], *, model: str | None, count: int, engine: str
) -> list[dict[str, Any]]:
    """`count` request bodies, in sending order. Raises BadInputError when there is no prompt to take.

    Each prompt gets a line of its own in front (its number and the seed), unless a shared prefix is asked for, so that
    no request can hit the prefix cache of another.
    """
    if not prompts and workload.kind != "random-tokens":
        raise BadInputError("no prompts", where=f"workload {workload.name}", try_="another kind or prompt_file")
    source = random.Random(workload.seed)  # noqa: S311 - must repeat
    order = list(range(len(prompts)))
    bodies: list[dict[str, Any]] = []
    for number in range(count):
        if order and number % len(order) == 0:
            source.shuffle(order)
        most = source.randint(*workload.output_tokens)
        if workload.kind == "random-tokens":
            length = source.randint(*(workload.prompt_tokens or (128, 128)))
            # Ids that every vocabulary in use has; what they say means nothing, and the result says so.
            prompt: Any = [source.randint(100, 30000) for _ in range(length)]
            messages: list[dict[str, str]] = []
        else:
            chosen = prompts[order[number % len(order)]]
            prompt = _shape(workload, chosen, number, source)
            messages = [dict(m) for m in chosen.messages] or [{"role": "user", "content": prompt}]
            if chosen.messages and workload.shared_prefix_ratio == 0:
                messages[0] = {**messages[0], "content": f"({_nonce(workload, number)}) {messages[0]['content']}"}
        bodies.append(_body(workload, prompt, messages, most, model, engine))
    return bodies


def hash_of(bodies: Sequence[Mapping[str, Any]]) -> str:
    """Of everything that is sent but the model's name (the same workload on two servers has one hash)."""
    digest = hashlib.sha256()
    for body in bodies:
        shown = {key: value for key, value in body.items() if key != "model"}
        digest.update(json.dumps(shown, sort_keys=True, ensure_ascii=False).encode())
        digest.update(b"\n")
    return digest.hexdigest()[:16]


def _shape(workload: Workload, prompt: Prompt, number: int, source: random.Random) -> str:
    text = prompt.text if prompt.text is not None else "\n".join(m.get("content", "") for m in prompt.messages)
    nonce = _nonce(workload, number)
    if workload.prompt_tokens is None:
        return text if workload.shared_prefix_ratio > 0 else f"[{nonce}] {text}"
    length = source.randint(*workload.prompt_tokens)
    words = text.split()
    wanted = max(1, round(length * WORDS_PER_TOKEN))
    filled = (words * (wanted // max(1, len(words)) + 1))[:wanted]
    shared = round(wanted * workload.shared_prefix_ratio)
    if shared:
        opening = ("The following background is the same for every question in this series. " * wanted).split()
        filled[:shared] = opening[:shared]
        return " ".join(filled)
    return f"[{nonce}] " + " ".join(filled)


def _nonce(workload: Workload, number: int) -> str:
    return hashlib.sha256(f"{workload.seed}/{number}".encode()).hexdigest()[:8]


def _body(
    workload: Workload, prompt: Any, messages: list[dict[str, str]], most: int, model: str | None, engine: str
) -> dict[str, Any]:
    sampling = workload.sampling
    drawn = {"temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": sampling.top_k}
    drawn = {key: value for key, value in drawn.items() if value is not None}
    if workload.api == "generate":
        parameters: dict[str, Any] = {**drawn, "max_new_tokens": most}
        if workload.ignore_eos:
            parameters["ignore_eos"] = True
        if sampling.seed is not None:
            parameters["sampling_seed"] = sampling.seed
        key = "input_ids" if isinstance(prompt, list) else "text"
        return {key: prompt, "sampling_params": parameters, "stream": True}
    body: dict[str, Any] = {"stream": True, **drawn}
    if sampling.seed is not None:
        body["seed"] = sampling.seed
    if workload.ignore_eos:
        body["ignore_eos"] = True
    if workload.api == "completion":
        return {**body, "prompt": prompt, "n_predict": most, "cache_prompt": workload.shared_prefix_ratio > 0}
    # `continuous_usage_stats` (vLLM and SGLang) gives the token count with each event; others ignore it.
    options: dict[str, Any] = {"include_usage": True}
    if engine in ("vllm", "sglang"):
        options["continuous_usage_stats"] = True
    body.update(max_tokens=most, stream_options=options)
    if model is not None:
        body["model"] = model
    if engine == "llamacpp":
        body["cache_prompt"] = workload.shared_prefix_ratio > 0
    if workload.api == "chat":
        return {**body, "messages": messages}
    return {**body, "prompt": prompt}
