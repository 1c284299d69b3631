"""vLLM's settings in the form. Keys of `--speculative-config`, which no help lists, are fields of their own."""

from __future__ import annotations

from specconsole.core.launching.form_layout import NCCL_VARIABLES, FormLayout, placed

# What vllm/config/speculative.py (0.10.2 to 0.33.0) takes, in own words.
_METHODS = (
    "eagle3", "eagle", "mtp", "draft_model", "ngram", "ngram_gpu", "suffix", "dflash", "dspark", "medusa",
    "mlp_speculator", "extract_hidden_states", "custom_class",
)  # fmt: skip
_KEYS = {
    "method": "how tokens are drafted",
    "model": "the draft: a path or a hub's name; for ngram and suffix none",
    "num_speculative_tokens": "tokens drafted in each step; a chain, so SGLang's steps with topk 1",
    "draft_tensor_parallel_size": "GPUs of the draft: 1, or as many as the target",
    "prompt_lookup_min": "ngram: the shortest match",
    "prompt_lookup_max": "ngram: the longest match",
    "max_model_len": "the longest context of the draft",
    "quantization": "how the draft's weights are quantized; empty: as its files say",
    "rejection_sample_method": "how drafted tokens are accepted",
    "parallel_drafting": "all tokens of a step in one pass, for drafts trained so",
}

LAYOUT = FormLayout(
    sections={
        "model": placed(
            "tokenizer:path trust_remote_code dtype quantization max_model_len kv_cache_dtype load_format "
            "served_model_name:list revision hf_overrides:table chat_template:path"
        ),
        "speculation": placed(
            "speculative_config.method speculative_config.model:path speculative_config.num_speculative_tokens:int "
            "speculative_config.draft_tensor_parallel_size:int speculative_config.prompt_lookup_min:int "
            "speculative_config.prompt_lookup_max:int speculative_config.max_model_len:int "
            "speculative_config.quantization speculative_config.rejection_sample_method "
            "speculative_config.parallel_drafting:switch"
        ),
        "parallelism": placed(
            "tensor_parallel_size:int data_parallel_size:int pipeline_parallel_size:int "
            "decode_context_parallel_size:int enable_expert_parallel disable_custom_all_reduce "
            "distributed_executor_backend data_parallel_address data_parallel_rpc_port:int nnodes:int node_rank:int "
            "all2all_backend"
        ),
        "memory": placed(
            "gpu_memory_utilization:float max_num_seqs:int max_num_batched_tokens:int enable_chunked_prefill "
            "enable_prefix_caching block_size:int kv_cache_memory_bytes num_gpu_blocks_override:int "
            "cpu_offload_gb:float enforce_eager max_cudagraph_capture_size:int cudagraph_capture_sizes:list "
            "compilation_config:table"
        ),
        "server": placed(
            "attention_backend scheduling_policy async_scheduling optimization_level:int performance_mode seed:int "
            "per_request_spec_decode_metrics disable_log_stats enable_log_requests uvicorn_log_level reasoning_parser "
            "tool_call_parser enable_auto_tool_choice"
        ),
    },
    suggestions={"speculative_config.method": _METHODS},
    help={f"speculative_config.{key}": text for key, text in _KEYS.items()},
    variables={
        **NCCL_VARIABLES,
        "VLLM_LOGGING_LEVEL": "how much is logged: DEBUG, INFO, WARNING, ERROR",
        "VLLM_WORKER_MULTIPROC_METHOD": "how workers are started: fork or spawn",
        "VLLM_CPU_KVCACHE_SPACE": "GiB of KV cache on a CPU",
        "VLLM_CPU_OMP_THREADS_BIND": "which cores the CPU worker's threads run on",
        "VLLM_CACHE_ROOT": "where compiled kernels and graphs are kept",
    },
)
