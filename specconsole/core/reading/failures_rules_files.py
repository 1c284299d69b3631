"""Causes that are files: a model that is not there, a broken checkpoint, a type that this build does not know."""

from __future__ import annotations

from specconsole.core.reading.failures_rules import CONSEQUENCE, Rule, rule

FILE_RULES: tuple[Rule, ...] = (
    # `safetensors._safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not
    # fully covered` / `... header too large` / `... HeaderTooLarge`, `MetadataIncompleteBuffer` (older)
    rule("checkpoint-corrupt", "rror while deserializing", r"SafetensorError|Error while deserializing header"),
    rule("checkpoint-corrupt", "SafetensorError"),
    # `RuntimeError: model.safetensors.index.json references 1 shard file(s) missing from /m (incomplete download?)`
    # as SGLang says it
    rule("checkpoint-corrupt", "shard file(s) missing", r"references \d+ shard file\(s\) missing"),
    # `FileNotFoundError: Weight files referenced in index but missing: {'m/model-00009-of-00032.safetensors'}` (vLLM)
    rule("checkpoint-corrupt", "referenced in index but missing"),
    # `FileNotFoundError: [Errno 2] No such file or directory: '/m/model-00003-of-00008.safetensors'`
    rule(
        "checkpoint-corrupt",
        "No such file or directory",
        r"No such file or directory: '?[^']*-of-\d+\.(?:safetensors|bin|pt)",
    ),
    # `ValueError: Following weights were not initialized from checkpoint: {'model.layers.3...'}` (vLLM
    # default_loader.py)
    rule(
        "checkpoint-corrupt",
        "were not initialized from checkpoint",
        r"ollowing weights were not initialized from checkpoint",
    ),
    # `RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory`
    rule("checkpoint-corrupt", "PytorchStreamReader failed"),
    # `RuntimeError: unexpected EOF, expected 1024 more bytes. The file might be corrupted.`
    rule("checkpoint-corrupt", "file might be corrupted"),
    # `_pickle.UnpicklingError: invalid load key, 'v'.` (a Git LFS pointer in place of the file)
    rule("checkpoint-corrupt", "invalid load key"),
    rule("checkpoint-corrupt", "UnpicklingError"),
    # `OSError: It looks like the config file at 'm/config.json' is not a valid JSON file.` (transformers)
    rule("checkpoint-corrupt", "is not a valid JSON file"),
    # `json.decoder.JSONDecodeError: Unterminated string starting at: line 1 column 20 (char 19)`
    rule("checkpoint-corrupt", "JSONDecodeError", alone="", tier=CONSEQUENCE),
    # llama.cpp: `llama_model_load: error loading model: tensor 'blk.5.attn_k.weight' data is not within the file
    # bounds,
    # model is corrupted or incomplete`
    rule("checkpoint-corrupt", "model is corrupted or incomplete"),
    # `gguf_init_from_reader: invalid magic characters: 'XXXX', expected 'GGUF'` / `failed to read magic` / `...
    # key-value pairs`
    rule("checkpoint-corrupt", "invalid magic character"),
    rule("checkpoint-corrupt", "failed to read magic"),
    rule("checkpoint-corrupt", "failed to read", r"gguf_init\w*: failed to read"),
    # `llama_model_load: error loading model: done_getting_tensors: wrong number of tensors; expected 292, got 291`
    rule("checkpoint-corrupt", "wrong number of tensors"),
    # `llama_model_load: error loading model: invalid split file: ...` / `missing tensor 'blk.0.attn_q.weight'`
    rule(
        "checkpoint-corrupt",
        "error loading model:",
        r"error loading model: (?:invalid split|illegal split|missing tensor|check_tensor_dims)",
    ),
    # `huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk cache ...`
    rule("model-not-found", "EntryNotFoundError", alone="suspect"),
    rule("model-not-found", "Cannot find an appropriate cached snapshot", alone="suspect"),
    rule("model-not-found", "RepositoryNotFoundError", alone="suspect"),
    # `huggingface_hub.errors.GatedRepoError: 401 Client Error. ... Access to model acme/M is restricted.`
    rule("model-not-found", "GatedRepoError", alone="suspect"),
    # `OSError: You are trying to access a gated repo.` / `Cannot access gated repo for url https://...`
    rule("model-not-found", "gated repo", r"(?:access a|Cannot access) gated repo"),
    # `401 Client Error: Unauthorized for url: https://.../resolve/main/config.json`, 403, 404
    rule("model-not-found", "Client Error", r"\b40[134] Client Error", alone="suspect"),
    # `HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/models/x'.`
    rule("model-not-found", "Repo id must be in the form", alone="suspect"),
    # `OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the
    # cached files.`
    rule("model-not-found", "couldn't connect to", r"[Ww]e couldn't connect to '"),
    # `OSError: acme/M is not a local folder and is not a valid model identifier listed on '...'`
    rule("model-not-found", "is not a valid model identifier"),
    # `Value error, Invalid repository ID or local directory specified: 'models/nonesuch'.` (vLLM)
    rule("model-not-found", "Invalid repository ID or local directory"),
    # `OSError: acme/M does not appear to have a file named config.json.` / `... pytorch_model.bin or
    # model.safetensors`
    rule("model-not-found", "does not appear to have a file named"),
    rule("model-not-found", "does not appear to have files named"),
    # `OSError: Can't load the configuration of '/m'.` / `Can't load tokenizer for '/m'.`
    rule(
        "model-not-found",
        "Can't load ",
        r"Can't load (?:the )?(?:configuration|tokenizer|image processor|feature extractor|processor)",
    ),
    # `ValueError: Couldn't instantiate the backend tokenizer from one of:` (transformers: no tokenizer files)
    rule("model-not-found", "Couldn't instantiate the backend tokenizer"),
    # `RuntimeError: Cannot find any model weights with `/m`` (vLLM, SGLang loader.py)
    rule("model-not-found", "Cannot find any model weights"),
    # `FileNotFoundError: [Errno 2] No such file or directory: '/m/config.json'` / `.../tokenizer.model`
    rule(
        "model-not-found",
        "No such file or directory",
        r"No such file or directory: '[^']*(?:config|tokenizer|index|params)[^'/]*'",
        alone="suspect",
    ),
    # `OSError: [Errno 116] Stale file handle: '/nfs/m/model-00007-of-00008.safetensors'`, `[Errno 5] Input/output error`,
    # `[Errno 107] Transport endpoint is not connected`: the file system went away under a model's file
    rule(
        "model-not-found",
        "OSError: [Errno",
        r"OSError: \[Errno (?:116|5|107)\] .*(?:safetensors|\.bin|\.gguf|\.json|model)",
        alone="suspect",
    ),
    # `requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://.../api/models/org/m`
    rule(
        "model-not-found",
        "Client Error",
        r"\b429 Client Error: Too Many Requests for url: \S*/(?:api|resolve)/",
        alone="suspect",
    ),
    # `FileNotFoundError: /models/Nope-8B does not exist` (TensorRT-LLM llmapi/llm_utils.py)
    rule("model-not-found", "does not exist", r"FileNotFoundError: \S*/\S* does not exist", alone="suspect"),
    # `PermissionError: [Errno 13] Permission denied: '/models/x/config.json'`
    rule(
        "model-not-found",
        "Permission denied",
        r"PermissionError: \[Errno 13\] Permission denied: '[^']*(?:model|config|safetensors|snapshots|hub)",
        alone="suspect",
    ),
    # llama.cpp: `gguf_init_from_file: failed to open GGUF file 'm.gguf' (No such file or directory)`, old
    # `error loading model: failed to open m.gguf: No such file or directory`
    rule("model-not-found", "failed to open", r"failed to open (?:GGUF file )?'?[^']*'?.*No such file"),
    # Ollama: `model "llama3" not found, try pulling it first`; `pull model manifest: file does not exist`
    rule("model-not-found", "not found, try pulling it first"),
    rule("model-not-found", "pull model manifest"),
    # `ValueError: Model architectures ['NoSuchForCausalLM'] are not supported for now. Supported architectures: ...`
    rule("unsupported-model", "not supported", r"[Mm]odel architectures? .{0,200}?(?:are|is) not supported"),
    # `ValueError: NoSuchForCausalLM has no SGLang implementation and the Transformers implementation is not
    # compatible with SGLang.`
    rule("unsupported-model", " implementation and the ", r"has no \w+ implementation"),
    # `ValueError: Unsupported architectures: NoSuchForCausalLM. Supported list: [...]` (SGLang to 0.4)
    rule("unsupported-model", "Unsupported architectures"),
    # `ValueError: The checkpoint you are trying to load has model type `x` but Transformers does not recognize this
    # architecture.`
    rule("unsupported-model", "does not recognize this architecture"),
    # `ValueError: Unrecognized model in /m. Should have a `model_type` key in its config.json.` (also: no
    # config.json)
    rule("unsupported-model", "Unrecognized model in"),
    rule("unsupported-model", "Unrecognized configuration class"),
    # `ValueError: Unknown quantization method: nvfp5. Must be one of [...]`; `... quantization method is not
    # supported`
    rule(
        "unsupported-model", "quantization", r"(?i)(?:unknown|unsupported|invalid) quantization (?:method|type|config)"
    ),
    rule(
        "unsupported-model",
        "quantization method",
        r"quantization method .* (?:is|are) not supported|does not support quantization",
    ),
    # llama.cpp: `error loading model: error loading model architecture: unknown model architecture: 'qwen9'`
    rule("unsupported-model", "unknown model architecture"),
    rule("unsupported-model", "unknown pre-tokenizer type"),
    # `gguf_init_from_file: this GGUF file is version 4 but this software only supports up to version 3`
    rule("unsupported-model", "only supports up to version", r"GGUF file is version"),
    # TensorRT-LLM: `ValueError: Unknown architecture for AutoModelForCausalLM: NoSuchForCausalLM`
    rule("unsupported-model", "Unknown architecture for"),
    # TensorRT: `The engine plan file is not compatible with this version of TensorRT, expecting library version
    # 10.9 got 10.3`
    rule(
        "driver-mismatch", "engine plan file is", r"engine plan file is (?:not compatible|generated on an incompatible)"
    ),
    # vLLM: `RuntimeError: Model does not support EAGLE3 interface but aux_hidden_state_outputs was requested`
    rule("draft-mismatch", "does not support EAGLE3"),
    # `ValueError: Eagle3 is only supported for llama,qwen models. Got
    # self.target_model_config.hf_text_config.model_type='x'`
    rule(
        "draft-mismatch",
        "is only supported for",
        r"(?:Eagle3|EAGLE3?|MTP|Medusa|eagle3|DFlash)\w* is only supported for",
    ),
    # `ValueError: Target and draft model should have the same vocabulary size. Target model vocab_size=151936. ...`
    rule(
        "draft-mismatch",
        "draft",
        r"(?i)target and draft model.* same vocab|draft.{0,40}vocab\w*.{0,60}(?:match|same|differ)",
        alone="suspect",  # llama.cpp says so and serves on without speculation
    ),
    # `ValueError: There is no module or parameter named 'model' in LlamaModel.` stands for whichever model loads
    # (see failures.py: with the draft it is a draft-mismatch)
)
