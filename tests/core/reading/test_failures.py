"""Failure classes line by line, over engines and versions, and the verdict over ranks, time and life."""

# Log lines stay whole.

from __future__ import annotations

import pytest

from specconsole.core.reading.reading import Reader, read_bytes

SGLANG = "[2026-01-05 08:00:00] server_args=ServerArgs(model_path='/m', port=30000, mem_fraction_static=0.9)\n"
READY = "[2026-01-05 08:03:00] The server is fired up and ready to roll!\n"
SIGQUIT = "[2026-01-05 08:02:02] Received sigquit from a child process. It usually means the child failed.\n"


def raised(text: str, *, stamp: str = "08:02:01", rank: str = "") -> str:
    """As SGLang's scheduler prints an exception that ends it."""
    return (
        f"[2026-01-05 {stamp}{rank}] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/x/sglang/srt/managers/scheduler.py", line 2691, in run_scheduler_process\n'
        "    scheduler = Scheduler(\n"
        f"{text}\n\n"
    )


# One row a wording: the exception's line (or the line that stands alone), and its class.
RAISED = [
    # SGLang, 0.4.6 to 0.5.23
    ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 79.10 GiB total)", "gpu-oom"),
    ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.00 GiB.", "gpu-oom"),
    ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "kv-cache-too-small"),
    ("RuntimeError: Prefill out of memory. Try to lower your batch size.", "kv-cache-too-small"),
    ("RuntimeError: Decode out of memory. Try to lower your batch size.", "kv-cache-too-small"),
    ("ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes.", "gpu-busy"),
    ("RuntimeError: Port is already in use. dist_init_port=20000", "port-in-use"),
    ("ValueError: nccl_port at 30233 is not available in 30 seconds. stale process?", "port-in-use"),
    ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "driver-mismatch"),
    ("RuntimeError: CUDA error: device-side assert triggered", "device-error"),
    ("RuntimeError: CUDA error: an illegal memory access was encountered", "device-error"),
    ("RuntimeError: HIP error: invalid device function", "driver-mismatch"),
    ("torch.AcceleratorError: CUDA error: uncorrectable NVLink error detected during the execution", "gpu-hardware"),
    ("RuntimeError: ninja exited with status 1", "jit-build-failed"),
    ("RuntimeError: Error building extension 'fused_ops': [1/3] nvcc -c a.cu", "jit-build-failed"),
    ("triton.compiler.errors.CompilationError: at 12:8:", "jit-build-failed"),
    ("ImportError: /x/sgl_kernel/common_ops.abi3.so: undefined symbol: _ZNK3c10", "import-error"),
    ("ValueError: Unsupported architectures: NewForCausalLM. Supported list: [...]", "unsupported-model"),
    ("ValueError: Unknown quantization method: nvfp5. Must be one of ['awq', 'fp8']", "unsupported-model"),
    ("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2356, ncclUnhandledCudaError", "collective-failure"),
    ("torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.", "network"),
    ("torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (10.0.0.1, 20000).", "network"),
    ("RuntimeError: model.safetensors.index.json references 1 shard file(s) missing from /m (incomplete download?): ['x']", "checkpoint-corrupt"),
    ("AttributeError: 'NoneType' object has no attribute 'shape'", "code-error"),
    # vLLM, 0.6 (V0) to 0.33
    ("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`", "kv-cache-too-small"),
    ("ValueError: Free memory on device cuda:0 (3.2/79.1 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB).", "gpu-busy"),
    ("AssertionError: Error in memory profiling. Initial free memory 70.1 GiB, current free memory 75.2 GiB.", "gpu-busy"),
    ("RuntimeError: Failed to infer device type, please set the environment variable `VLLM_LOGGING_LEVEL=DEBUG`", "driver-mismatch"),
    ("FileNotFoundError: Weight files referenced in index but missing: {'m/model-00009-of-00032.safetensors'}", "checkpoint-corrupt"),
    ("ValueError: Following weights were not initialized from checkpoint: {'lm_head.weight'}", "checkpoint-corrupt"),
    ("TimeoutError: RPC call to execute_model timed out.", "hang"),
    ("RuntimeError: Engine iteration timed out. This should never happen!", "hang"),
    ("ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute capability 7.5.", "bad-argument"),
    # Ascend
    ("RuntimeError: NPU out of memory. Tried to allocate 1.88 GiB (NPU 0; 60.97 GiB total capacity)", "gpu-oom"),
    ("RuntimeError: createHCCLComm:torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:2068 HCCL function error: HcclGetRootInfo, error code is 6", "collective-failure"),
    # any
    ("OSError: [Errno 12] Cannot allocate memory", "host-memory"),
    ("OSError: [Errno 28] No space left on device: '/dev/shm/psm_0f1e'", "host-memory"),
    ("OSError: acme/M is not a local folder and is not a valid model identifier listed on the hub", "model-not-found"),
    ("OSError: /m does not appear to have a file named config.json.", "model-not-found"),
    ("_pickle.UnpicklingError: invalid load key, 'v'.", "checkpoint-corrupt"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "failure_class"), RAISED)
def test_an_exception_that_ends_a_rank(text: str, failure_class: str) -> None:
    got = read_bytes((SGLANG + raised(text) + SIGQUIT).encode())
    assert got.phase == "failed"
    assert got.failure is not None
    assert (got.failure.failure_class, got.failure.line) == (failure_class, text)
    assert got.failure.messenger == SIGQUIT.strip()
    assert got.suspect is None


# Lines that state it by themselves, without a traceback.
STATED = [
    ("sglang serve: error: unrecognized arguments: --speculative-num-stepz 3", "bad-argument"),
    ("launch_server.py: error: ambiguous option: --cuda-graph-max could match --cuda-graph-max-bs-decode", "bad-argument"),
    ("vllm serve: error: argument --speculative-config/-sc: Value { cannot be converted", "bad-argument"),
    ("llama-server: error: argument -ngl: expected one argument", "bad-argument"),
    ("error: invalid argument: --draft-max", "bad-argument"),
    ('error while handling argument "--spec-type": unknown speculative type: mtp', "bad-argument"),
    ("OSError: [Errno 98] Address already in use", "port-in-use"),
    ("Error: listen tcp 127.0.0.1:11434: bind: address already in use", "port-in-use"),
    ("NVRM: Xid (PCI:0000:41:00): 48, pid=4242, name=python3, DBE at 0x1", "gpu-hardware"),
    ("Memory access fault by GPU node-2 (Agent handle: 0x55) on address 0x7f. Reason: Page not present.", "device-error"),
    ("HW Exception by GPU node-1 (Agent handle: 0x55) reason :GPU Hang", "gpu-hardware"),
    ("Killed", "killed"),
    ("./serve.sh: line 7: 20887 Killed                  python -m sglang.launch_server --model-path /m", "killed"),
    ("slurmstepd: error: *** JOB 9 ON vm CANCELLED AT 2026-11-29T14:10:00 ***", "killed"),
    ("slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have been OOM Killed.", "host-memory"),
    ("Memory cgroup out of memory: Killed process 4242 (python3) total-vm:1kB", "host-memory"),
    ("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8", "driver-mismatch"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "failure_class"), STATED)
def test_a_line_that_states_the_end(text: str, failure_class: str) -> None:
    got = read_bytes(f"{SGLANG}{text}\n".encode())
    assert got.failure is not None
    assert (got.failure.failure_class, got.failure.line) == (failure_class, text)


# What every healthy start or clean stop prints, and words in a client's request.
HARMLESS = [
    "[2026-01-05 08:00:01] Fail to set RLIMIT_NOFILE: current limit exceeds maximum limit",
    "[2026-01-05 08:00:01] Ignore import error when loading sglang.srt.models.x: No module named 'vllm._custom_ops'",
    "WARNING 11-29 14:09:58 [system_utils.py:255] Found ulimit of 20000 and failed to automatically increase with error [Errno 24]",
    "WARNING 04-02 11:11:19 [__init__.py:54] Failed to import from vllm._C with ImportError('libcudart.so.12')",
    "[rank0]:[W1129 14:29:20.457085637 ProcessGroupNCCL.cpp:1575] Warning: WARNING: destroy_process_group() was not called",
    "/usr/lib/python3.12/multiprocessing/resource_tracker.py:254: UserWarning: There appear to be 1 leaked semaphore objects",
    "nanobind: leaked 4 instances!",
    '[2026-01-05 08:00:01] INFO:     10.0.0.1:4 - "GET /nonesuch HTTP/1.1" 404 Not Found',
    '[2026-01-05 08:00:01] INFO:     10.0.0.1:4 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error',
    "host-b:241:241 [6] NCCL INFO init.cc:1534 -> 2",
    "Custom allreduce is disabled because your platform lacks GPU P2P capability or P2P test failed.",
    "Exception ignored in: <function Socket.__del__ at 0x7f>",
    "W1129 14:24:20.034000 13015 torch/utils/cpp_extension.py:140] No CUDA runtime is found, using CUDA_HOME='/usr/local'",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_words_of_an_end_that_are_none(text: str) -> None:
    got = read_bytes(f"{SGLANG}{text}\n".encode())
    assert got.failure is None
    assert got.suspect is None


def test_first_in_time_over_all_ranks_not_first_of_rank_zero() -> None:
    log = (
        SGLANG
        + raised("RuntimeError: CUDA error: device-side assert triggered", rank=" TP5")
        + raised("RuntimeError: CUDA error: an illegal memory access was encountered", rank=" TP0")
        + SIGQUIT
    )
    got = read_bytes(log.encode()).failure
    assert got is not None
    assert (got.rank, got.failure_class) == ("TP5", "device-error")
    assert got.line is not None
    assert "device-side assert" in got.line


def test_an_echo_of_another_ranks_end_gives_way_to_the_cause_behind_it() -> None:
    log = (
        SGLANG
        + raised("ConnectionResetError: [Errno 104] Connection reset by peer", rank=" TP1")
        + raised("RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)", rank=" TP2")
        + raised("RuntimeError: CUDA error: out of memory", rank=" TP3")
        + SIGQUIT
    )
    got = read_bytes(log.encode()).failure
    assert got is not None
    assert (got.rank, got.failure_class) == ("TP3", "gpu-oom")


def test_a_served_request_takes_a_complaint_back_and_death_does_not_bring_it_up() -> None:
    log = (
        SGLANG + "Traceback (most recent call last):\n"
        "  File \"/x/plugin.py\", line 3, in load\n    import thing\nModuleNotFoundError: No module named 'thing'\n"
    )
    reader = Reader()
    reader.feed(log.encode())
    first = reader.reading()
    assert first.failure is None
    assert first.suspect is not None
    assert first.suspect.failure_class == "import-error"
    reader.feed(READY.encode() * 2)
    assert reader.reading().suspect is None
    gone = reader.reading(dead=True, exit_code=0).failure
    assert gone is not None
    assert (gone.failure_class, gone.line) == ("killed", None)


def test_a_suspect_is_the_cause_once_the_process_is_gone() -> None:
    log = SGLANG + "ValueError: something odd\n"
    assert read_bytes(log.encode()).failure is None
    gone = read_bytes(log.encode(), dead=True).failure
    assert gone is not None
    assert (gone.failure_class, gone.line) == ("code-error", "ValueError: something odd")


def test_what_comes_after_a_stop_was_asked_for_is_no_cause() -> None:
    log = (
        SGLANG
        + READY
        + "[2026-01-05 09:00:00] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
        + "[2026-01-05 09:00:01] Subprocess scheduler_0 (pid=7) crashed with exit code -15. Triggering SIGQUIT for cleanup...\n"
        + "[2026-01-05 09:00:01] SIGQUIT received. signum=None, frame=None. It usually means one child failed.\n"
    )
    got = read_bytes(log.encode(), dead=True, exit_code=-9)
    assert (got.phase, got.failure) == ("stopped", None)


def test_ready_after_a_failed_bind_is_another_servers() -> None:
    bind = "[2026-01-05 08:02:59] ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use\n"
    got = read_bytes((SGLANG + bind + READY).encode())
    assert got.phase == "failed"
    assert got.failure is not None
    assert got.failure.failure_class == "port-in-use"
    assert all(entry.phase != "ready" for entry in got.timeline)


def test_no_cause_comes_from_an_earlier_start() -> None:
    log = SGLANG + raised("RuntimeError: CUDA error: out of memory") + SIGQUIT + SGLANG.replace("08:00:00", "09:00:00")
    got = read_bytes(log.encode())
    assert (got.starts, got.failure, got.phase) == (2, None, "starting")
    gone = read_bytes(log.encode(), dead=True).failure
    assert gone is not None
    assert gone.failure_class == "killed"


def test_the_compilers_own_line_speaks_for_a_build_that_failed() -> None:
    compiler = "/x/ngram/result.h:13:17: error: 'size_t' has not been declared"
    inside = raised(
        f"RuntimeError: ninja exited with status 1\nstdout:\n[1/6] c++ -c result.cpp\nFAILED: a.o\n{compiler}"
    )
    before = f"{compiler}\nninja: build stopped: subcommand failed.\n" + raised(
        "RuntimeError: Error building extension 'ngram'"
    )
    for log in (inside, before):
        got = read_bytes((SGLANG + log + SIGQUIT).encode()).failure
        assert got is not None
        assert (got.failure_class, got.line) == ("jit-build-failed", compiler)


def test_advice_holds_numbers_of_this_start_or_none() -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 1.00 GiB is free."
    capture = "[2026-01-05 08:01:43] Capture cuda graph begin. This can take up to several minutes. avail mem=4.80 GB\n"
    got = read_bytes((SGLANG + capture + raised(oom) + SIGQUIT).encode()).failure
    assert got is not None
    assert got.advice is not None
    # 4 GiB wanted, 1 free, 1 spare: 4/80 = 0.05 less than the 0.9 that the server had.
    assert got.advice.set == {"mem_fraction_static": 0.85}
    plain = read_bytes((SGLANG + raised("RuntimeError: CUDA error: out of memory") + SIGQUIT).encode()).failure
    assert plain is not None
    assert plain.advice is not None
    assert plain.advice.set is None


def test_the_advice_for_the_kernels_oom_killer_is_about_ram() -> None:
    line = (
        "Out of memory: Killed process 4242 (python3) total-vm:29kB, anon-rss:11kB, file-rss:0kB, shmem-rss:0kB, UID:0"
    )
    killed = read_bytes(f"Load weight begin. avail mem=78.58 GB\n{line}\n".encode()).failure
    shm = read_bytes(b"NCCL WARN Error while creating shared memory segment /dev/shm/nccl-1 (size 9), error: No space left on device (28)\n", dead=True).failure  # fmt: skip
    assert killed is not None
    assert killed.advice is not None
    assert "cgroup" in killed.advice.text
    assert shm is not None
    assert shm.advice is not None
    assert "--shm-size" in shm.advice.text
