"""Causes that are the command or the installation: arguments, context, ports, libraries, run-time builds."""

from __future__ import annotations

from specconsole.core.reading.failures_rules import CONSEQUENCE, Rule, rule

STARTUP_RULES: tuple[Rule, ...] = (
    # `ValueError: User-specified max_model_len (999999) is greater than the derived max_model_len (... =4096.0
    # ...)` (vLLM);
    # `Warning: User-specified context_length (16384) is greater than the derived context_length (4096).` (SGLang);
    # `Warning: Target model's context_length (131072) is greater than the derived context_length (2048).` (the
    # draft's)
    rule(
        "context-too-long",
        "is greater than the derived",
        r"(?:max_model_len|context_length) \(\d+\) is greater than the derived",
        alone="",  # both servers print the same words as a warning where an override is allowed
    ),
    # uvicorn: `[Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use`
    rule("port-in-use", "error while attempting to bind on address", http_bind=True),
    # llama.cpp: `srv         start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 18100`
    rule("port-in-use", "couldn't bind HTTP server socket", http_bind=True),
    rule("port-in-use", "couldn't bind to server socket", http_bind=True),
    # `torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address.
    # port: 23891,
    # ... code: -98, name: EADDRINUSE, message: address already in use`
    rule("port-in-use", "server socket has failed to", r"server socket has failed to (?:listen|bind)"),
    # `RuntimeError: Port is already in use. dist_init_port=20000` / `Port 8998 is already in use` (SGLang)
    rule("port-in-use", "in use", r"[Pp]ort (?:\d+ )?is already in use"),
    # `ValueError: nccl_port at 30233 is not available in 30 seconds. ...` (SGLang wait_port_available)
    rule("port-in-use", "is not available in", r"port at \d+ is not available in \d+ seconds"),
    # `OSError: [Errno 98] Address already in use`, zmq `Address already in use (addr='tcp://...')`, Go `bind:
    # address already in use`
    rule("port-in-use", "ddress already in use", r"[Aa]ddress already in use"),
    rule("port-in-use", "EADDRINUSE"),
    # HCCL: `EJ0003: ... Failed to bind the IP port. Reason: The IP address and port have been bound already.`
    rule("port-in-use", "Failed to bind the IP port"),
    # HCCL: `[Init][DeviceIP]listen on ip[10.0.0.7] and specific port[16666] fail. Please check the port status ...`
    rule("port-in-use", "specific port[", r"listen on ip\[[^\]]*\] and specific port\[\d+\] fail"),
    # argparse: `sglang serve: error: unrecognized arguments: --no-such-flag`; `ambiguous option:
    # --cuda-graph-max-bs could match ...`
    rule("bad-argument", "error: unrecognized arguments"),
    rule("bad-argument", "error: ambiguous option"),
    rule("bad-argument", "error: argument ", r"error: argument \S+"),
    rule("bad-argument", "arguments are required", r"error: the following arguments are required"),
    rule(
        "bad-argument",
        ": error: ",
        r"^[\w./ -]{1,60}: error: (?:expected|no such option|invalid|one of the arguments|option)",
    ),
    # llama.cpp: `error: invalid argument: --no-such-flag` / `error while handling argument "--spec-type": unknown
    # ...`
    rule("bad-argument", "error: invalid argument"),
    rule("bad-argument", "error while handling argument"),
    # ik_llama.cpp: `legacy speculative option '-mtp' is disabled; use --spec-type mtp:n_max=1,p_min=0.0`
    rule("bad-argument", "is disabled; use ", r"option '-{1,2}[\w-]+' is disabled; use "),
    # clap (TGI): `error: unexpected argument '--num-shards' found`; click: `Error: No such option: --max-batchsize`
    rule("bad-argument", "error: unexpected argument"),
    rule("bad-argument", "Error: No such option"),
    rule("bad-argument", "invalid value '", r"^error: invalid value '"),
    # `torch.AcceleratorError: CUDA error: invalid device ordinal`: more ranks than GPUs
    rule("bad-argument", "invalid device ordinal"),
    # `ValueError: Total number of attention heads (4) must be divisible by tensor parallel size (3).`
    rule("bad-argument", "divisible by", r"(?:must be|is not|not) divisible by", alone=""),
    # `ValueError: World size (8) is larger than the number of available GPUs (4) in this node.` (vLLM)
    rule(
        "bad-argument", "number of available GPUs", r"(?:larger than|exceeds?) the (?:total )?number of available GPUs"
    ),
    # `max_num_batched_tokens (64) must be greater than or equal to max_num_seqs (256).` (vLLM config/scheduler.py)
    rule("bad-argument", "max_num_batched_tokens (", r"max_num_batched_tokens \(\d+\) must be greater"),
    # `AssertionError: max_running_request is zero` (SGLang managers/tp_worker.py)
    rule("bad-argument", "max_running_request is zero"),
    # `ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has
    # ... 7.5.`
    rule("bad-argument", "only supported on GPUs with compute capability"),
    # `ValueError: trtllm_mha backend only supports topk = 1 for speculative decoding.` (SGLang speculative_hook.py)
    rule("bad-argument", "only supports topk", r"only supports? topk ?= ?1"),
    # `RuntimeError: FlashAttention on Ampere/Ada cards only supports fp16 and bf16 data type` (sgl-kernel)
    rule("bad-argument", "only supports fp16 and bf16"),
    # `AssertionError: KV4 MHA expects attention_backend to be one of [...], but got fa3` (SGLang server_args.py)
    rule("bad-argument", "expects attention_backend", r"expects attention_backend to be one of"),
    # pydantic: `  Input should be 'ngram', 'medusa', ... [type=literal_error, ...]` / `Unexpected keyword argument`
    # / `Extra inputs`
    rule("bad-argument", "Input should be ", r"^\s*Input should be ", alone=""),
    rule(
        "bad-argument",
        "[type=",
        r"^\s*(?:Unexpected keyword argument|Extra inputs are not permitted|Field required)",
        alone="",
    ),
    rule("bad-argument", "Value error, ", r"^\s*Value error, ", alone=""),
    rule(
        "bad-argument",
        "validation error",
        r"ValidationError: \d+ validation errors? for \w+",
        alone="suspect",
        tier=CONSEQUENCE,
    ),
    # `RuntimeError: ninja exited with status 1` (tvm-ffi) / `Error building extension 'x': ...` / `Ninja build
    # failed. Ninja output:`
    rule("jit-build-failed", "ninja exited with status"),
    rule("jit-build-failed", "Error building extension"),
    rule("jit-build-failed", "Ninja build failed"),
    # `subprocess.CalledProcessError: Command '['ninja', '-v', '-C', ...]' returned non-zero exit status 1.`
    rule(
        "jit-build-failed",
        "returned non-zero exit status",
        r"Command '\[?.{0,200}(?:ninja|nvcc|hipcc|gcc|g\+\+|clang|cmake|bisheng)\b.*returned non-zero",
    ),
    # `RuntimeError: NVCC compilation failed: ...` (DeepGEMM), `nvcc fatal   : Unsupported gpu architecture
    # 'compute_120a'`
    rule("jit-build-failed", "NVCC compilation failed"),
    rule("jit-build-failed", "nvcc fatal", r"nvcc fatal\s+:"),
    rule("jit-build-failed", "ptxas fatal", r"ptxas fatal\s+:"),
    # `RuntimeError: Could not find CUDA installation. Please set CUDA_HOME environment variable.`
    rule(
        "jit-build-failed",
        "CUDA_HOME",
        r"(?i)(?:please set|environment variable).{0,60}CUDA_HOME|CUDA_HOME environment variable is not set",
    ),
    # `FileNotFoundError: [Errno 2] No such file or directory: 'ninja'` / `.../bin/nvcc'`
    rule(
        "jit-build-failed",
        "No such file or directory: '",
        r"No such file or directory: '(?:\S*/)?(?:ninja|nvcc|hipcc|g\+\+|gcc|c\+\+|ptxas)'",
    ),
    # `RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist` (flashinfer)
    rule("jit-build-failed", "Could not find nvcc"),
    rule("jit-build-failed", "Ninja is required to load C++ extensions"),
    # `triton.compiler.errors.CompilationError: at 12:8:` / `torch._inductor.exc.InductorError: CppCompileError: C++
    # compile error`
    rule("jit-build-failed", "CompilationError", r"^[\w.]*CompilationError\b", alone="suspect"),
    rule("jit-build-failed", "CompileError", r"\b(?:Cpp|CUDA)?CompileError\b", alone="suspect"),
    rule("jit-build-failed", "PTXASError"),
    rule("jit-build-failed", "BackendCompilerFailed", alone="suspect"),
    rule("jit-build-failed", "InductorError", alone="suspect"),
    # `/usr/bin/python3: No module named sglang`, `python3: Error while finding module specification for 'sglang...'`
    rule("import-error", "ython", r"^\S*python[\d.]*: (?:No module named |Error while finding module specification)"),
    # `./run.sh: line 4: sglang: command not found`; Go: `exec: "vllm": executable file not found in $PATH`
    rule(
        "import-error",
        "not found",
        r"^(?:\S+: line \d+: |\w*sh: (?:\d+: )?)?[\w./-]+: command not found$",
        alone="suspect",
    ),
    rule("import-error", "executable file not found in", alone="suspect"),
    # `ModuleNotFoundError: No module named 'deep_gemm'`, `ImportError: cannot import name 'flash_ops' from
    # 'sgl_kernel'`
    rule("import-error", "ModuleNotFoundError", r"^(?:[\w.]+\.)?ModuleNotFoundError\b", alone="suspect"),
    # `[sgl_kernel] CRITICAL: Could not load any common_ops library!` (follows a bare `ImportError:`)
    rule("import-error", "Could not load any common_ops library", alone="suspect"),
    # `ImportError: /x/_C.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEa`
    rule("import-error", "undefined symbol", r": undefined symbol: ", alone="suspect"),
    # `ImportError: libcudart.so.12: cannot open shared object file: No such file or directory`
    rule("import-error", "cannot open shared object file", alone="suspect"),
    # `/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by ./llama-server)`
    rule("import-error", "' not found (required by", r"version `\w+_[\d.]+' not found"),
    # `AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'`: the compiled half was not loaded
    rule("import-error", "'_OpNamespace'", r"'_OpNamespace' '\w+' object has no attribute", alone="suspect"),
    rule("import-error", "PackageNotFoundError", r"^(?:[\w.]+\.)?PackageNotFoundError\b", alone="suspect"),
    rule("import-error", "ImportError", r"^(?:[\w.]+\.)?ImportError\b", alone="suspect"),
    # Last, since nearly anything may be said so. C++: `terminate called after throwing an instance of 'std::...'`,
    # `  what():  Invalid device pointer`; TensorRT-LLM: `[TensorRT-LLM][ERROR] Assertion failed: mpiSize == tp * pp (...)`
    rule("code-error", "what():", r"^ *what\(\): +\S"),
    rule("code-error", "Assertion failed: ", alone="suspect"),
)
