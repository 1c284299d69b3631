"""The real engines of these tests as profiles: where they are installed, what starts them with each speculation."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from tests.engines.support.checkpoints import Checkpoints

SUPPORT = Path(__file__).parent / "support"
REPOSITORY = Path(__file__).resolve().parents[2]
QUIET = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
"""One thread: two of them wait for each other by spinning, which beside any other work on two cores is far slower."""


def environment(engine: str) -> Path:
    """Where `make real` installs an engine."""
    return Path(os.environ.get(f"SPECCONSOLE_{engine.upper()}_VENV", REPOSITORY / f".venv-{engine}"))


def installed(engine: str) -> bool:
    return engine == "llamacpp" or (environment(engine) / "installed-from").exists()


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one engine is started with one kind of speculation."""

    engine: str
    speculation: str
    command: tuple[str, ...]
    model: str
    draft_model: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    def write(self, folder: Path, *, name: str = "", **more: Any) -> Path:
        """A profile file; `more` are further keys of it (`args`, `env`, `secrets` tables are added to)."""
        name = name or f"{self.engine}-{self.speculation}"
        profile: dict[str, Any] = {
            "engine": self.engine,
            "command": list(self.command),
            "model": self.model,
            "grace_s": 30,
            "args": {**self.args, **more.pop("args", {})},
            "env": {**self.env, **more.pop("env", {})},
            **({"draft_model": self.draft_model} if self.draft_model else {}),
            **more,
        }
        path = folder / f"{name}.toml"
        path.write_text(tomli_w.dumps(profile))
        return path


def sglang(speculation: str, models: Checkpoints) -> Recipe:
    """SGLang 0.5.17 on the CPU; `speculation`: none, eagle3, draft, ngram."""
    drafts: dict[str, dict[str, Any]] = {
        "none": {},
        "eagle3": {"speculative_algorithm": "EAGLE3", "speculative_num_steps": 3, "speculative_eagle_topk": 1,
                   "speculative_num_draft_tokens": 4},
        "draft": {"speculative_algorithm": "STANDALONE", "speculative_num_steps": 3, "speculative_eagle_topk": 1,
                  "speculative_num_draft_tokens": 4},
        "ngram": {"speculative_algorithm": "NGRAM", "speculative_num_draft_tokens": 4},
    }  # fmt: skip
    draft = {"eagle3": models.eagle3, "draft": models.draft}.get(speculation)
    return Recipe(
        "sglang",
        speculation,
        (str(environment("sglang") / "bin/python"), str(SUPPORT / "sglang_on_cpu.py")),
        str(models.target),
        str(draft) if draft else None,
        {"served_model_name": "tiny", "enable_metrics": True, "decode_log_interval": 8, **drafts[speculation]},
        QUIET,
    )


def vllm(speculation: str, models: Checkpoints) -> Recipe:
    """vLLM 0.32.0 on the CPU; `speculation`: none, eagle3, draft, ngram."""
    drafts: dict[str, dict[str, Any]] = {
        "eagle3": {"method": "eagle3", "model": str(models.eagle3), "num_speculative_tokens": 3},
        "draft": {"method": "draft_model", "model": str(models.draft), "num_speculative_tokens": 3},
        "ngram": {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 2},
    }
    config = drafts.get(speculation)
    return Recipe(
        "vllm",
        speculation,
        (str(environment("vllm") / "bin/vllm"), "serve"),
        str(models.target),
        None,
        {
            "served_model_name": "tiny",
            "max_model_len": 2048,
            "gpu_memory_utilization": 0.2,
            "enforce_eager": True,
            "disable_access_log_for_endpoints": "/health,/metrics",
            **({"speculative_config": json.dumps(config)} if config else {}),
        },
        {**QUIET, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"},
    )


def llamacpp(target: Path, draft: Path | None) -> Recipe:
    """llama.cpp's server inside this environment, as the demo runs it."""
    return Recipe(
        "llamacpp",
        "draft" if draft else "none",
        (sys.executable, "-m", "specconsole.demo.llama_server"),
        str(target),
        str(draft) if draft else None,
        env={"PYTHONPATH": str(REPOSITORY)},
    )
