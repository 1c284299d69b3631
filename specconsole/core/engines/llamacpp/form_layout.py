"""llama.cpp's settings in the form. Kinds by `common/arg.cpp` (b10434): in its help `N` is any number."""

from __future__ import annotations

from specconsole.core.launching.form_layout import FormLayout, placed

LAYOUT = FormLayout(
    sections={
        "model": placed(
            "ctx_size:int n_gpu_layers alias rope_scaling yarn_orig_ctx:int cache_type_k cache_type_v flash_attn "
            "mmproj:path chat_template chat_template_file:path lora:path"
        ),
        "speculation": placed(
            "spec_type spec_draft_n_max:int spec_draft_n_min:int spec_draft_p_min:float spec_draft_p_split:float "
            "n_gpu_layers_draft spec_draft_device cache_type_k_draft cache_type_v_draft spec_draft_threads:int "
            "spec_ngram_mod_n_min:int spec_ngram_mod_n_max:int spec_ngram_mod_n_match:int"
        ),
        "parallelism": placed(
            "parallel:int threads:int threads_batch:int cont_batching split_mode tensor_split main_gpu:int device numa"
        ),
        "memory": placed(
            "batch_size:int ubatch_size:int kv_unified cache_ram:int cache_reuse:int cache_prompt kv_offload "
            "cpu_moe n_cpu_moe:int swa_full fit fit_target load_mode"
        ),
        "server": placed(
            "metrics slots props jinja timeout:int threads_http:int warmup context_shift api_prefix reasoning_format "
            "log_verbosity:int log_timestamps"
        ),
    },
    suggestions={
        "spec_type": (
            "none",
            "draft-simple",
            "draft-eagle3",
            "draft-mtp",
            "draft-dflash",
            "draft-dspark",
            "ngram-simple",
            "ngram-map-k",
            "ngram-map-k4v",
            "ngram-mod",
            "ngram-cache",
        ),
    },
    variables={
        "CUDA_VISIBLE_DEVICES": "which GPUs the server sees, as numbers or UUIDs",
        "GGML_CUDA_NO_PINNED": "1: host buffers without pinned memory",
        "LLAMA_ARG_THREADS": "the same as --threads; a flag goes before it",
    },
)
