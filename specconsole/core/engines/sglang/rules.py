"""SGLang's cross-flag rules, 0.4.6 to 0.5.23: the table of all of them.

Sources are files of the releases (`server_args.py` up to 0.5.19, `arg_groups/speculative_hook.py` from 0.5.17 unless
said). What is inferred from code and was not run says so. A range begins at the first release that was looked at and
has the behaviour; the true boundary may lie a little earlier.
"""

from __future__ import annotations

from specconsole.core.engines.sglang import rules_chain as chain
from specconsole.core.engines.sglang import rules_methods as methods
from specconsole.core.engines.sglang import rules_schedule as schedule
from specconsole.core.engines.sglang import rules_trust as trust
from specconsole.core.engines.sglang import rules_versions as versions
from specconsole.core.engines.sglang.asked import HOOK, HOOK_RUN
from specconsole.core.launching.rules import Rule
from specconsole.core.launching.versions import between, since, until

ALIASES = {
    "tp": "tp_size", "tensor_parallel_size": "tp_size", "dp": "dp_size", "data_parallel_size": "dp_size",
    "pp": "pp_size", "pipeline_parallel_size": "pp_size", "ep": "ep_size", "expert_parallel_size": "ep_size",
    "model": "model_path", "speculative_draft_model": "speculative_draft_model_path",
    "context_len": "context_length", "max_model_len": "context_length", "node": "nnodes",
}  # fmt: skip

RENAMES = "flags of 0.4.6, 0.5.3, 0.5.8, 0.5.12, 0.5.15, 0.5.19 and 0.5.23"
BETA = {"enable_beta_spec": True}
SPEC_V2 = {"env.SGLANG_ENABLE_SPEC_V2": "1"}

RULES: tuple[Rule, ...] = (
    Rule("chain-tokens", chain.chain_tokens, HOOK),
    Rule("all-three-or-none", chain.all_three_or_none, HOOK + " (missing topk: read in code, not run)"),
    Rule("automatic-triple", chain.automatic_triple, HOOK),
    Rule("tree-holds-tokens", chain.tree_holds_tokens, "scripts/playground/bench_speculative.py"),
    Rule("page-size-topk", chain.page_size_topk((), silently=True), "0.4.6 server_args.py", until("0.5.2")),
    Rule("page-size-topk", chain.page_size_topk(("flashinfer",)), "0.5.3 server_args.py", between("0.5.3", "0.5.7")),
    Rule("page-size-topk", chain.page_size_topk(("flashinfer", "fa3")), "0.5.8-0.5.12", between("0.5.8", "0.5.14")),
    Rule("page-size-topk", chain.page_size_topk(("flashinfer", "fa3", "triton")), HOOK, since("0.5.15")),
    Rule("trtllm-mha-topk", chain.trtllm_mha_topk, HOOK),
    Rule("rejection-sampling", chain.rejection_sampling, HOOK_RUN + "; flag since 0.5.15", since("0.5.15")),
    Rule("block-verification", chain.block_verification, "0.5.23 arg_groups/speculative_hook.py", since("0.5.23")),
    Rule("adaptive", chain.adaptive, HOOK_RUN + "; flag since 0.5.12", since("0.5.12")),
    Rule("adaptive-steps", chain.adaptive_steps, HOOK_RUN + ", speculative/adaptive_spec_params.py", since("0.5.12")),
    Rule("adaptive-config-alone", chain.adaptive_config_alone, HOOK_RUN, since("0.5.12")),
    Rule("running-cap", schedule.running_cap, HOOK),
    Rule("overlap-off", schedule.overlap_forced_off(), "0.4.6 server_args.py", until("0.5.2")),
    Rule("overlap-off", schedule.overlap_forced_off(BETA), "0.5.3 server_args.py", between("0.5.3", "0.5.5")),
    Rule("overlap-off", schedule.overlap_forced_off(SPEC_V2), "0.5.6-0.5.10 server_args.py",
         between("0.5.6", "0.5.10")),
    Rule("spec-v2-topk", schedule.spec_v2_topk, "0.5.6-0.5.10 server_args.py", between("0.5.6", "0.5.10")),
    Rule("spec-v2-falls-back", schedule.spec_v2_falls_back, "0.5.12 server_args.py", between("0.5.12", "0.5.14")),
    Rule("spec-v2-switched-off", schedule.spec_v2_switched_off, "0.5.12 server_args.py (read in code, not run)",
         between("0.5.12", "0.5.14")),
    Rule("spec-v2-variable-gone", schedule.spec_v2_variable_gone, "0.5.15 environ.py", since("0.5.15")),
    Rule("synchronous", schedule.synchronous, HOOK_RUN, since("0.5.15")),
    Rule("overlap-on-cpu", schedule.overlap_on_cpu, HOOK_RUN, since("0.5.15")),
    Rule("ngram-overlap", schedule.ngram_overlap, "0.5.3-0.5.12 server_args.py", between("0.5.3", "0.5.14")),
    Rule("mixed-chunk", schedule.mixed_chunk, HOOK_RUN + "; <=0.5.12 server_args.py", until("0.5.17")),
    Rule("mixed-chunk", schedule.mixed_chunk_by_algorithm, "0.5.23 arg_groups/speculative_hook.py", since("0.5.18")),
    Rule("dp-attention", schedule.dp_attention, HOOK),
    Rule("dp-divides", schedule.dp_divides, "0.5.17 server_args.py"),
    Rule("dp-attention-alone", schedule.dp_attention_alone, "0.5.17 arg_groups/overrides.py"),
    Rule("dp-attention-chunk", schedule.dp_attention_chunk, "0.5.17 server_args.py"),
    Rule("pipeline-parallel", schedule.pipeline_parallel(exceptions=False), "0.5.17 server_args.py", until("0.5.22")),
    Rule("pipeline-parallel", schedule.pipeline_parallel(exceptions=True), HOOK, since("0.5.23")),
    Rule("nodes", schedule.nodes, "0.5.17 server_args.py; docs/references/multi_node_deployment"),
    Rule("mtp-needs-no-draft", methods.mtp_needs_no_draft, HOOK),
    Rule("draft-path-missing", methods.draft_path_missing, HOOK),
    Rule("token-map-eagle3", methods.token_map_eagle3, "all: server_args.py"),
    Rule("ngram-width", methods.ngram_width, HOOK, since("0.5.3")),
    Rule("ngram-tokens", methods.ngram_tokens, HOOK, since("0.5.3")),
    Rule("ngram-pages", methods.ngram_pages, HOOK, since("0.5.3")),
    Rule("ngram-corpus", methods.ngram_corpus, HOOK_RUN, since("0.5.12")),
    Rule("block-drafts", methods.block_drafts, HOOK, since("0.5.12")),
    Rule("block-size", methods.block_size, HOOK_RUN, since("0.5.12")),
    Rule("block-parallel", methods.block_parallel, HOOK_RUN, since("0.5.12")),
    Rule("dflash-dp-attention", methods.dflash_dp_attention(with_head=False), HOOK_RUN, between("0.5.12", "0.5.17")),
    Rule("dflash-dp-attention", methods.dflash_dp_attention(with_head=True), "0.5.23 arg_groups/speculative_hook.py",
         since("0.5.23")),
    Rule("dspark-dp-attention", methods.dspark_dp_attention, HOOK_RUN, since("0.5.17")),
    Rule("uno", methods.uno, "0.5.23 arg_groups/speculative_hook.py", since("0.5.23")),
    Rule("windows", methods.windows, HOOK_RUN, since("0.5.12")),
    Rule("gemma-assistant", methods.gemma_assistant, HOOK_RUN, since("0.5.15")),
    Rule("gemma-promoted", methods.gemma_promoted, HOOK_RUN, since("0.5.15")),
    Rule("iquest", methods.iquest, "0.5.23 arg_groups/speculative_hook.py", since("0.5.23")),
    Rule("decode-radix-cache", methods.decode_radix_cache(also=()), "0.5.17 arg_groups/pd_disaggregation_hook.py",
         between("0.5.15", "0.5.22")),
    Rule("decode-radix-cache", methods.decode_radix_cache(also=("DSPARK", "EAGLE", "EAGLE3")), HOOK, since("0.5.23")),
    Rule("lossy-thresholds", trust.lossy_thresholds, "all: server_args.py"),
    Rule("simulated", trust.simulated, "environ.py"),
    Rule("context-beyond-draft", trust.context_beyond_draft, "0.5.23 configs/model_config.py:1299", since("0.5.3")),
    Rule("context-beyond-draft", trust.context_beyond_old, "0.4.6 configs/model_config.py", until("0.5.2")),
    Rule("memory-kept-back", trust.memory_kept_back(eagle_gb=2, standalone_gb=6), "0.5.3 server_args.py",
         between("0.5.3", "0.5.7")),
    Rule("memory-kept-back", trust.memory_kept_back(eagle_gb=4, standalone_gb=6), "0.5.12 server_args.py",
         between("0.5.12", "0.5.14")),
    Rule("log-config", trust.log_config, "utils/common.py: configure_logger"),
    Rule("metrics-off", trust.metrics_off, "entrypoints/http_server.py: /metrics is 404 without it"),
    Rule("api-key-argument", trust.api_key_argument, "server_args is printed whole at start"),
    Rule("algorithm-of-version", versions.algorithm_of_version, RENAMES),
    Rule("graph-sizes-renamed", versions.graph_sizes(gone=False), RENAMES, between("0.5.15", "0.5.22"), guesses=False),
    Rule("graph-sizes-renamed", versions.graph_sizes(gone=True), RENAMES, since("0.5.23"), guesses=False),
    Rule("graph-sizes-too-new", versions.graph_sizes_too_new, RENAMES, until("0.5.12"), guesses=False),
    Rule("old-switches", versions.old_switches, RENAMES, since("0.5.23"), guesses=False),
    Rule("piecewise-graphs", versions.piecewise("is newer than this version", on=True), RENAMES,
         until("0.5.2"), guesses=False),
    Rule("piecewise-graphs", versions.piecewise("is gone: it is the default", on=True), RENAMES,
         since("0.5.15"), guesses=False),
    Rule("piecewise-graphs", versions.piecewise("is newer than this version", on=False), RENAMES,
         until("0.5.8"), guesses=False),
    Rule("piecewise-graphs", versions.piecewise("is gone: --cuda-graph-backend-prefill disabled", on=False), RENAMES,
         since("0.5.23"), guesses=False),
    Rule("beta-spec-gone", versions.beta_spec, RENAMES, since("0.5.6"), guesses=False),
    Rule("ngram-names", versions.ngram_names, RENAMES, since("0.5.10"), guesses=False),
    Rule("not-yet", versions.not_yet("skip_server_warmup", "nccl_port", "enable_beta_spec",
                                     "speculative_attention_mode", "speculative_draft_load_format"), RENAMES,
         until("0.4.6"), guesses=False),
    Rule("not-yet", versions.not_yet("admin_api_key", "soft_watchdog_timeout", "speculative_draft_attention_backend",
                                     "uvicorn_access_log_exclude_prefixes", "enable_multi_layer_eagle",
                                     "speculative_draft_model_quantization"), RENAMES, until("0.5.3"), guesses=False),
    Rule("not-yet", versions.not_yet("speculative_adaptive", "speculative_adaptive_config",
                                     "speculative_dflash_block_size", "speculative_draft_window_size"), RENAMES,
         until("0.5.10"), guesses=False),
    Rule("skip-mlp-sync", versions.skip_mlp_sync, HOOK_RUN, between("0.5.12", "0.5.19")),
    Rule("not-yet", versions.not_yet("speculative_use_block_verification", "uno_lora_path",
                                     "speculative_draft_sink_size"), RENAMES, until("0.5.19"), guesses=False),
)  # fmt: skip
