"""vLLM's rules around `--speculative-config`, 0.10 to 0.33: the table of all of them.

Sources are the files of 0.10.2, 0.14.1, 0.20.2, 0.27.1 and 0.33.0, and 0.32.0 read whole.
"""

from __future__ import annotations

from specconsole.core.engines.vllm import rules_config as config
from specconsole.core.engines.vllm import rules_serving as serving
from specconsole.core.engines.vllm.config import METHODS as METHODS
from specconsole.core.engines.vllm.config import SOURCE
from specconsole.core.launching.rules import Rule
from specconsole.core.launching.versions import between, since, until

ALIASES = {
    "tp": "tensor_parallel_size", "dp": "data_parallel_size", "pp": "pipeline_parallel_size",
    "sc": "speculative_config", "spec_method": "spec_method", "q": "quantization",
}  # fmt: skip

DYNAMIC = "0.32.0 vllm/v1/spec_decode/dynamic/utils.py"
CONFIG = "0.32.0 vllm/config/vllm.py"

RULES: tuple[Rule, ...] = (
    Rule("unreadable-json", config.unreadable, "vllm/engine/arg_utils.py"),
    Rule("unknown-keys", config.unknown_keys, SOURCE),
    Rule("old-keys", config.old_keys, SOURCE, since("0.21")),
    Rule("new-keys", config.new_keys, SOURCE + " of 0.32.0", until("0.32"), guesses=False),
    Rule("unknown-method", config.unknown_method, SOURCE),
    Rule("old-methods", config.old_methods, SOURCE + " of 0.32.0 and 0.33.0", since("0.33")),
    Rule("mtp-names", config.mtp_names, SOURCE, since("0.14")),
    Rule("method-guessed", config.method_guessed, SOURCE),
    Rule("draft-path-missing", config.model_missing, SOURCE),
    Rule("tokens-missing", config.tokens_missing, SOURCE),
    Rule("given-twice", config.twice, "vllm/engine/arg_utils.py", since("0.27")),
    Rule("shorts-too-new", config.shorts_too_new, "vllm/engine/arg_utils.py", until("0.26"), guesses=False),
    Rule("draft-parallel", config.draft_parallel, SOURCE),
    Rule("per-batch-with-dp", config.per_batch_with_dp, CONFIG, since("0.27")),
    Rule("per-batch-ranges", config.per_batch_ranges, DYNAMIC, since("0.27")),
    Rule("per-batch-graphs", config.per_batch_graphs, CONFIG, since("0.27")),
    Rule("simulated", config.synthetic, SOURCE),
    Rule("synthetic-alone", config.synthetic_alone, SOURCE + " of 0.32.0", since("0.27")),
    Rule("sample-methods", config.sample_methods("strict", "probabilistic", "synthetic"), SOURCE + " of 0.20.2",
         between("0.20", "0.20")),
    Rule("sample-methods", config.sample_methods("standard", "synthetic", "block"), SOURCE + " of 0.32.0",
         between("0.32", "0.32")),
    Rule("sample-methods", config.sample_methods("standard", "synthetic", "block", "fly"), SOURCE + " of 0.33.0",
         since("0.33")),
    Rule("draft-sampling", config.draft_sampling, SOURCE + " of 0.32.0", since("0.27")),
    Rule("other-vocabulary", config.other_vocabulary, SOURCE + " of 0.32.0", since("0.27")),
    Rule("lookup-range", config.lookup_range, SOURCE),
    Rule("suffix-package", config.suffix_package, SOURCE),
    Rule("mtp-layers", config.mtp_layers, SOURCE),
    Rule("eagle3-targets", config.eagle3_targets("Llama", "Qwen"), SOURCE + " of 0.10.2", until("0.10")),
    Rule("eagle3-targets", config.eagle3_targets("Llama", "Qwen", "MiniCPM", "GptOss"), SOURCE + " of 0.14.1",
         between("0.14", "0.14")),
    Rule("async-scheduling", serving.asynchronous, CONFIG, since("0.14")),
    Rule("fast-prefill", serving.fast_prefill, CONFIG),
    Rule("token-budget", serving.token_budget, SOURCE),
    Rule("eager-draft", serving.eager_draft, SOURCE),
    Rule("memory-share", serving.memory_share, "vllm/config/cache.py"),
    Rule("heads-divide", serving.heads_divide, "vllm/config/model.py"),
    Rule("context-beyond-model", serving.context_beyond_model, "vllm/config/model.py"),
    Rule("draft-shortens-context", serving.draft_shortens(server=False), SOURCE + "; run: 0.32.0", until("0.32")),
    Rule("draft-shortens-context", serving.draft_shortens(server=True), SOURCE, since("0.33")),
    Rule("old-draft-flags", serving.old_draft_flag, "gone before 0.10"),
    Rule("log-stats", serving.log_stats, "v1/metrics: nothing is counted"),
    Rule("log-form", serving.log_form, "vllm/envs.py"),
    Rule("nodes", serving.nodes, "vllm/config/parallel.py"),
    Rule("api-key-argument", serving.api_key_argument, "command lines are public on a host"),
)  # fmt: skip
