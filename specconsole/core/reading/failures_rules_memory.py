"""Causes that are memory: the GPU's, the KV pool's, the host's, and being killed."""

from __future__ import annotations

from specconsole.core.reading.failures_rules import CONSEQUENCE, Rule, rule

MEMORY_RULES: tuple[Rule, ...] = (
    # `ValueError: Free memory on device (12.3/79.1 GiB) on startup is less than desired GPU memory utilization (0.9,
    # 71.2 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.` (vLLM gpu_worker.py)
    rule(
        "gpu-busy",
        "less than desired GPU memory utilization",
        r"Free memory on device.*on startup is less than desired",
    ),
    # `ValueError: Available memory on node 0 (21.41/23.54 GiB) on startup is less than desired CPU memory
    # utilization`
    rule("host-memory", "less than desired CPU memory utilization"),
    # `AssertionError: Error in memory profiling. Initial free memory 70.1 GiB, current free memory 75.2 GiB. This
    # happens when other processes sharing the same container release GPU memory while vLLM is profiling` (vLLM)
    rule("gpu-busy", "Error in memory profiling", r"Error in memory profiling\. Initial free memory"),
    # `ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes.` (SGLang
    # model_runner.py)
    rule("gpu-busy", "memory capacity is unbalanced"),
    # `RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable` (exclusive mode held by another
    # process)
    rule("gpu-busy", "busy or unavailable", r"devices?(?:\(s\))? (?:is/)?are busy or unavailable"),
    # `ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is
    # needed,
    # which is larger than the available KV cache memory (7.5 GiB). ... the estimated maximum model length is 61440.`
    rule("kv-cache-too-small", "To serve at least one request", r"To serve at least one request with the model"),
    # `ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in
    # KV
    # cache (20480). Try increasing `gpu_memory_utilization` or decreasing `max_model_len`` (vLLM V0 to 0.8)
    rule(
        "kv-cache-too-small",
        "can be stored in KV cache",
        r"larger than the maximum number of tokens that can be stored",
    ),
    # `ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when ...` (vLLM)
    rule("kv-cache-too-small", "No available memory for the cache blocks"),
    # `RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.` (SGLang, all versions)
    rule(
        "kv-cache-too-small", "Not enough memory. Please try to increase", r"Not enough memory\. Please try to increase"
    ),
    # `RuntimeError: Prefill out of memory. Try to lower your batch size.` / `Decode out of memory. ...` (SGLang
    # token pool)
    rule(
        "kv-cache-too-small",
        "out of memory. Try to lower your batch",
        r"(?:Prefill|Decode) out of memory\. Try to lower",
    ),
    # `Input length (21 tokens) exceeds the maximum allowed length (2 tokens).` for the server's own warm-up (SGLang)
    rule("kv-cache-too-small", "exceeds the maximum allowed length", alone="suspect", start_only=True),
    # `ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (854). Each decode sequence requires one ...`
    rule("kv-cache-too-small", "exceeds available Mamba cache blocks"),
    # `[TensorRT-LLM][ERROR] ... Insufficient free memory for KV cache` / `No space for KV cache` (TensorRT-LLM)
    rule(
        "kv-cache-too-small",
        "KV cache",
        r"(?i)(?:insufficient|not enough|no) (?:free )?(?:gpu )?(?:memory|space|blocks) (?:left )?for (?:the )?KV cache",
    ),
    # `torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 48.00 MiB. GPU 0 has a total capacity of ...`
    # (`torch.cuda.OutOfMemoryError` before 2.5; `HIP out of memory`, `NPU out of memory`, `XPU out of memory`)
    rule(
        "gpu-oom", "out of memory. Tried to allocate", r"\b(?:CUDA|HIP|NPU|XPU|MUSA) out of memory\. Tried to allocate"
    ),
    # `RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests.` (vLLM)
    rule("gpu-oom", "out of memory", r"\b(?:CUDA|HIP|NPU|XPU) out of memory\b"),
    # `RuntimeError: CUDA error: out of memory`; `[TensorRT-LLM][ERROR] CUDA runtime error in cudaMallocAsync: out
    # of memory`
    rule("gpu-oom", "out of memory", r"(?:CUDA|HIP) (?:runtime )?error[^:]*: out of memory"),
    # `ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9216.00 MiB on device 0: cudaMalloc failed: out of
    # memory`
    rule("gpu-oom", "out of memory", r"(?:cuda|hip|acl)(?:rt)?Malloc\w* failed: out of memory"),
    # `ggml_vulkan: Device memory allocation of size 1073741824 failed.` / `ErrorOutOfDeviceMemory`
    rule("gpu-oom", "OutOfDeviceMemory"),
    rule("gpu-oom", "ggml_vulkan: Device memory allocation", r"Device memory allocation of size \d+ failed"),
    # `NCCL WARN Cuda failure 'out of memory'` (init.cc) / `Cuda failure 2 'out of memory'`
    rule("gpu-oom", "out of memory'", r"Cuda failure (?:\d+ )?'out of memory'"),
    # ROCm, RCCL: `[2] [FATAL ERROR]: HIP failure: 'out of memory'`
    rule("gpu-oom", "HIP failure: 'out of memory'"),
    # `CUDA driver error: CUDA_ERROR_OUT_OF_MEMORY` / `hipErrorOutOfMemory` / `cudaErrorMemoryAllocation`
    rule("gpu-oom", "ERROR_OUT_OF_MEMORY", r"CU(?:DA)?_ERROR_OUT_OF_MEMORY"),
    rule("gpu-oom", "hipErrorOutOfMemory"),
    rule("gpu-oom", "cudaErrorMemoryAllocation"),
    # `RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)``
    rule("gpu-oom", "_STATUS_ALLOC_FAILED", r"(?:CUBLAS|CUDNN)_STATUS_ALLOC_FAILED"),
    # `Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization to free memory for
    # weights` (vLLM)
    rule("gpu-oom", "not enough GPU memory", r"Failed to load model - not enough GPU memory"),
    # `OutOfMemoryError: ...` of ray: `Task was killed due to the node running low on memory.`
    rule("host-memory", "node running low on memory"),
    rule("host-memory", "memory pressure (OOM)", r"killed due to memory pressure \(OOM\)"),
    # `ggml_aligned_malloc: insufficient memory (attempted to allocate 16384.00 MB)` (llama.cpp)
    rule("host-memory", "insufficient memory (attempted"),
    # `llama_init_from_model: failed to initialize the context: std::bad_alloc`; `terminate called ...
    # 'std::bad_alloc'`
    rule("host-memory", "std::bad_alloc"),
    # `alloc_tensor_range: failed to allocate CPU buffer of size 17179869184`
    rule("host-memory", "failed to allocate CPU", r"failed to allocate (?:CPU|Host|CPU_Mapped) buffer"),
    # `RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: can't allocate memory: you tried
    # ...`
    rule("host-memory", "DefaultCPUAllocator", r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory)"),
    # `OSError: [Errno 12] Cannot allocate memory` / `fork: Cannot allocate memory`
    rule("host-memory", "Cannot allocate memory"),
    rule("host-memory", "MemoryError", r"^(?:numpy\S*\.)?_?(?:Array)?MemoryError\b", alone="suspect"),
    # `NCCL WARN Error while creating shared memory segment /dev/shm/nccl-vT3xq1 (size 9637888), error: No space
    # left on
    # device (28)`; `OSError: [Errno 28] No space left on device: '/dev/shm/...'`
    rule(
        "host-memory",
        "No space left on device",
        r"(?:shared memory|/dev/shm|shm).*No space left on device|No space left on device.*/dev/shm",
    ),
    # `RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error. It is possible that ... insufficient
    # shared memory (shm).`
    rule("host-memory", "insufficient shared memory"),
    # `slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have been OOM Killed.`
    rule("host-memory", "oom_kill event", r"Detected \d+ oom[_-]kill event"),
    rule("host-memory", "oom-kill event", r"Detected \d+ oom[_-]kill event"),
    # kernel: `Memory cgroup out of memory: Killed process 4242 (VLLM::Worker)`; `Out of memory: Killed process 4242
    # (python3)`
    rule("host-memory", "ut of memory: Kill", r"[Oo]ut of memory: Kill(?:ed)? process \d+"),
    # kubelet: `Last State: Terminated, Reason: OOMKilled`, systemd: `Failed with result 'oom-kill'.`
    rule("host-memory", "OOMKilled"),
    rule("host-memory", "'oom-kill'"),
)

KILLED_RULES: tuple[Rule, ...] = (
    # a shell's word: `Killed`, `./run.sh: line 12: 20887 Killed                  python -m sglang.launch_server ...`
    rule("killed", "Killed", r"^(?:\S*: line \d+: +\d+ +)?Killed(?:\s|$)"),
    # `Segmentation fault (core dumped)` / `line 3: 99 Segmentation fault`; `Fatal Python error: Segmentation fault`
    rule("killed", "Segmentation fault", tier=CONSEQUENCE),
    rule(
        "killed",
        "(core dumped)",
        r"^(?:\S*: line \d+: +\d+ +)?(?:Aborted|Illegal instruction|Bus error|Floating point exception)\b",
        tier=CONSEQUENCE,
    ),
    # `server.cpp:3567: GGML_ASSERT(!slot.prompt.tokens.has_mtmd) failed` (llama.cpp, Ollama), glibc's
    # `llama-server: llama-sampler.cpp:1094: void f(...): Assertion `found' failed.`
    rule("code-error", "GGML_ASSERT", r"GGML_ASSERT(?:\(.*\) failed|: \S+:\d+)"),
    rule("code-error", "Assertion `", r": Assertion `.*' failed\.$"),
    # `Exit code: -9` behind `Rank 0 scheduler is dead. ...` (SGLang 0.4 to 0.5.8)
    rule("killed", "Exit code: -", r"^Exit code: -\d+$"),
    # `Subprocess scheduler_0 (pid=4811) crashed with exit code -9. Triggering SIGQUIT for cleanup...` (SGLang
    # 0.5.10 on)
    rule("killed", "crashed with exit code", r"crashed with exit code (?:-\d+|137|139|143)\b"),
    # `RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), ...`
    rule("killed", "scheduler died during initialization", r"died during initialization \(exit code: -\d+\)"),
    # `Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.` (vLLM
    # multiproc_executor.py:315)
    rule("killed", "died unexpectedly", r"[Ww]orker proc\S* \S+ died unexpectedly \(exit code: (?:-\d+|None)\)"),
    # `Worker proc VllmWorker-1 died unexpectedly, shutting down executor.` (vLLM to 0.2x names no code)
    rule("killed", "died unexpectedly", r"[Ww]orker proc\S* \S+ died unexpectedly,", tier=CONSEQUENCE),
    # `[shutdown] MPClient: engine core exited unexpectedly; starting cleanup` (vLLM core_client.py:817)
    rule("killed", "engine core exited unexpectedly", tier=CONSEQUENCE),
    # `Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.` (vLLM 0.10 to 0.2x)
    rule("killed", "ngine core proc", r"[Ee]ngine core proc \S+ died unexpectedly", tier=CONSEQUENCE),
    # `Shard process was signaled to shutdown with signal 9 rank=0` (TGI launcher)
    rule("killed", "signaled to shutdown with signal"),
    # `error loading llama server error="llama runner process has terminated: signal: killed"` (Ollama)
    rule("killed", "signal: killed"),
    # systemd: `sglang.service: Main process exited, code=killed, status=9/KILL`
    rule("killed", "code=killed", r"Main process exited, code=killed, status=(?:9/KILL|11/SEGV|6/ABRT)"),
    # `slurmstepd: error: *** JOB 9 ON vm CANCELLED AT 2026-11-29T14:10:00 DUE TO TIME LIMIT ***`
    rule("killed", "CANCELLED AT", r"\*\*\* (?:JOB|STEP) .* CANCELLED AT \S+ DUE TO"),
    # Without a reason it is what Slurm does to the other tasks of a step (`*** STEP 8812.0 ON n01 CANCELLED AT ... ***`).
    rule("killed", "CANCELLED AT", r"\*\*\* (?:JOB|STEP) .* CANCELLED AT", tier=CONSEQUENCE),
    # mpirun: `mpirun noticed that process rank 2 with PID 0 on node a exited on signal 9 (Killed).`
    rule("killed", "exited on signal", r"exited on signal \d+", tier=CONSEQUENCE),
    # torch elastic: `failed (exitcode: -9) local_rank: 3 (pid: 812) of binary: /usr/bin/python3`
    rule("killed", "(exitcode: -", r"failed \(exitcode: -\d+\)", tier=CONSEQUENCE),
    # ray: `The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR ...`
    rule("killed", "worker process has died", tier=CONSEQUENCE),
    # ray: `The actor is dead because its node has died. Node Id: 1f00...`
    rule("killed", "because its node has died", tier=CONSEQUENCE),
    rule("killed", "worker died or was killed", tier=CONSEQUENCE),
)
