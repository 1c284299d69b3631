"""SGLang's settings in the form. Kinds are the types in `server_args.py` (0.4.6 to 0.5.23): its help names none."""

from __future__ import annotations

from specconsole.core.launching.form_layout import NCCL_VARIABLES, FormLayout, placed

LAYOUT = FormLayout(
    sections={
        "model": placed(
            "tokenizer_path:path trust_remote_code dtype quantization context_length:int kv_cache_dtype load_format "
            "served_model_name revision json_model_override_args:table chat_template:path"
        ),
        "speculation": placed(
            "speculative_algorithm speculative_num_steps:int speculative_eagle_topk:int "
            "speculative_num_draft_tokens:int speculative_adaptive speculative_adaptive_config:path "
            "speculative_token_map:path speculative_attention_mode speculative_draft_attention_backend "
            "speculative_draft_model_quantization speculative_accept_threshold_single:float "
            "speculative_accept_threshold_acc:float speculative_use_rejection_sampling "
            "speculative_draft_window_size:int speculative_ngram_min_bfs_breadth:int "
            "speculative_ngram_max_bfs_breadth:int speculative_ngram_match_type "
            "speculative_ngram_max_trie_depth:int speculative_ngram_capacity:int"
        ),
        "parallelism": placed(
            "tp_size:int dp_size:int pp_size:int ep_size:int enable_dp_attention enable_dp_lm_head base_gpu_id:int "
            "gpu_id_step:int disable_custom_all_reduce enable_nccl_nvls enable_symm_mem nnodes:int node_rank:int "
            "dist_init_addr nccl_port:int dist_timeout:int moe_a2a_backend moe_runner_backend"
        ),
        "memory": placed(
            "mem_fraction_static:float max_running_requests:int max_total_tokens:int page_size:int "
            "chunked_prefill_size:int max_prefill_tokens:int cuda_graph_max_bs:int cuda_graph_max_bs_decode:int "
            "cuda_graph_bs:list cuda_graph_bs_decode:list disable_cuda_graph cuda_graph_backend_decode "
            "disable_radix_cache radix_eviction_policy enable_hierarchical_cache cpu_offload_gb:int"
        ),
        "server": placed(
            "attention_backend sampling_backend grammar_backend schedule_policy schedule_conservativeness:float "
            "disable_overlap_schedule num_continuous_decode_steps:int enable_mixed_chunk enable_torch_compile "
            "enable_metrics decode_log_interval:int log_level log_requests watchdog_timeout:float skip_server_warmup "
            "reasoning_parser tool_call_parser random_seed:int"
        ),
    },
    suggestions={
        # server_args.py, `--speculative-algorithm` (0.5.17); names that plug-ins register are taken too.
        "speculative_algorithm": ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH", "DSPARK"),
        "speculative_draft_attention_backend": ("triton", "flashinfer", "fa3"),
        "log_level": ("debug", "info", "warning", "error"),
    },
    variables={
        **NCCL_VARIABLES,
        "EAGLE3_PROFILE": "1: a server patched for it prints the times of draft and verification",
        "SGLANG_ENABLE_SPEC_V2": "1: speculation with the overlap scheduler, where the version has it",
        "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1: a context beyond the model's own positions",
        "SGLANG_SIMULATE_ACC_LEN": "made-up accept length; what is measured with it is no measurement",
        "SGLANG_USE_MODELSCOPE": "1: models by name come from ModelScope",
    },
)
