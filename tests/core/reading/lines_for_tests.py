"""Lines as servers print them, for tests that put logs together by chance."""

from __future__ import annotations

SGLANG_START = (
    "[2026-11-29 14:12:21] server_args=ServerArgs(model_path='/m/target', port=30000, tp_size=2, "
    "speculative_algorithm='EAGLE3', speculative_draft_model_path='/m/draft', api_key='hunter2')",
    "[2026-11-29 14:12:41 TP0] Init torch distributed begin.",
    "[2026-11-29 14:12:42 TP0] Init torch distributed ends. elapsed=0.02 s, mem usage=0.09 GB",
    "[2026-11-29 14:12:43 TP0] Load weight begin. avail mem=139.09 GB",
    "[2026-11-29 14:12:43 TP1] Load weight begin. avail mem=139.09 GB",
    "[2026-11-29 14:12:44 TP0] Load weight end. elapsed=1.23 s, type=LlamaForCausalLM, avail mem=133.30 GB, mem usage=5.79 GB.",
    "[2026-11-29 14:12:46 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1837968, K size: 56.09 GB, V size: 56.09 GB",
    "[2026-11-29 14:12:46 TP0] Memory pool end. avail mem=20.20 GB",
    "[2026-11-29 14:12:51 TP0] Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=4, avail mem=11.72 GB",
    "[2026-11-29 14:12:53 TP0] Capture target verify CUDA graph end. elapsed=1.46 s, mem usage=0.09 GB, avail mem=11.63 GB.",
    "[2026-11-29 14:13:00 TP0] max_total_num_tokens=1837968, chunked_prefill_size=8192, context_len=4096",
    "[2026-11-29 14:13:00] INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)",
    "[2026-11-29 14:13:02] The server is fired up and ready to roll!",
)
SGLANG_SERVING = tuple(
    f"[2026-11-29 14:{minute}:{second:02}{rank}] {text}"
    for minute in (13, 14)
    for second in (1, 2, 5, 40)
    for rank in ("", " DP0 TP0", " DP1 TP1")
    for text in (
        f"Decode batch, #running-req: {second}, #token: 620, token usage: 0.02, accept len: 3.92, accept rate: 0.97, "
        "cuda graph: True, gen throughput (token/s): 62.92, #queue-req: 0",
        "Decode batch. #running-req: 0, #token: 0, token usage: 0.00, accept len: 1.05, accept rate: 0.01, "
        "cuda graph: True, gen throughput (token/s): 1.50, #queue-req: 3, ",
        "Decode batch, #running-req: 2, #token: 20, token usage: 0.10, cuda graph: True, "
        f"gen throughput (token/s): {second}.5, #queue-req: 1",
        "Decode batch, #running-req: 1, #token: 0, token usage: 0.00, cuda graph: True, "
        f"gen throughput (token/s): 2.{second}, #queue-req: 0",
        "Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00, #running-req: 0, "
        "#queue-req: 0, #pending-token: 0, cuda graph: False, input throughput (token/s): 0.57",
        "Prefill batch, #new-seq: 2, #new-token: 2, #cached-token: 0, token usage: 0.00, #running-req: 0, "
        "#queue-req: 0, #pending-token: 0, cuda graph: False, input throughput (token/s): 0.57",
        "Prefill batch. #new-seq: 1, #new-token: 1, #cached-token: 6, token usage: 0.00, #running-req: 0, #queue-req: 0, ",
        "Prefill batch, #new-seq: 1, #new-token: 20, #cached-token: 0, token usage: 0.00, #running-req: 0, "
        "#queue-req: 0, #pending-token: 0, cuda graph: True, input throughput (token/s): 17.53",
        "Prefill batch, #new-seq: 7, #new-token: 268, #cached-token: 0, token usage: 0.00, #running-req: 3, "
        "#queue-req: 2, #pending-token: 0, cuda graph: True, input throughput (token/s): 2534.62",
        'INFO:     127.0.0.1:55640 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    )
)
BARS = (
    "Multi-thread loading shards:   6% Completed | 4/64 [00:00<00:01, 39.14it/s]",
    "Multi-thread loading shards:  34% Completed | 22/64 [00:01<00:02, 19.30it/s]",
    "Multi-thread loading shards: 100% Completed | 64/64 [00:03<00:00, 21.00it/s]",
    "Loading safetensors checkpoint shards:   2% Completed | 1/55 [00:07<06:23,  7.10s/it]",
    "Capturing batches (bs=48 avail_mem=11.43 GB):   5%|▌  | 1/20 [00:01<00:20,  1.10s/it]",
    "  0%|          | 0/12 [00:00<?, ?it/s]",
    "  4%|▍         | 1/23 [00:19<07:13, 19.68s/it][2026-11-29 14:12:52 TP3] Memory pool end. avail mem=20.20 GB",
    "Loading checkpoint shards:  50%|█████     | 4/8 [00:03<00:03,  1.17it/s]Killed",
)
TROUBLE = (
    "[2026-11-29 14:12:52 TP1] Scheduler hit an exception: Traceback (most recent call last):",
    "Traceback (most recent call last):",
    '  File "/srv/sglang/srt/managers/scheduler.py", line 2691, in run_scheduler_process',
    "    scheduler.event_loop_normal()",
    "           ^^^^^^^^^^^^^^",
    "RuntimeError: The size of tensor a (4096) must match the size of tensor b (12288) at non-singleton dimension 1",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.56 GiB. GPU 0 has a total capacity of 139.80 GiB",
    "[2026-11-29 14:12:53] Received sigquit from a child process. It usually means the child failed.",
    "[2026-11-29 14:12:53] SIGTERM received. signum=15 frame=None. Draining requests and shutting down...",
    "[2026-11-29 14:12:54] kill_process_tree called: parent_pid=12204, include_parent=True, pid=12204",
    "[2026-11-29 14:12:55] ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use",
    "[2026-11-29 14:12:55] Subprocess scheduler_0 (pid=4811) crashed with exit code -9. Triggering SIGQUIT for cleanup...",
    "KeyError: 'embed_tokens.weight'",
)
OTHER_SERVERS = (
    "(EngineCore_DP0 pid=912) INFO 05-30 09:14:22 [gpu_model_runner.py:1549] Loading drafter model...",
    "(EngineCore_DP0 pid=912) ERROR 05-30 09:14:23 [core.py:500] EngineCore failed to start.",
    "(APIServer pid=1) INFO 05-30 09:20:41 [loggers.py:273] Engine 000: Avg prompt throughput: 211.4 tokens/s, Avg generation "
    "throughput: 28.9 tokens/s, Running: 2 reqs, Waiting: 0 reqs, GPU KV cache usage: 3.1%, Prefix cache hit rate: 0.0%",
    "INFO:     Application startup complete.",
    "0.09.114.240 I srv  update_slots: all slots are idle",
    "[TensorRT-LLM][INFO] Rank 0 is using GPU 0",
    '{"level": "INFO", "time": "06-29 07:10:02.611", "message": "Uvicorn running on http://0.0.0.0:8000\\n\\u001b[31mred\\u0007", "exc_info": "None"}',
)
NOISE = (
    "",
    "   ",
    "host-a:77120:77120 [6] NCCL INFO Connected all trees",
    "\x1b[36m(RayWorkerWrapper pid=5102, ip=10.0.0.1)\x1b[0m INFO 02-06 03:10:12 [x.py:1] hello [repeated 3x across cluster]",
    "web-1  | [2026-11-29 14:13:09 TP0] Decode batch, #running-req: 3, #token: 620, token usage: 0.02, accept len: 2.00, "
    "cuda graph: True, gen throughput (token/s): 70.00, #queue-req: 0",
    "\x1b]0;title\x07\x1b[2J\x9b31m naïve ‮ text \x00\x08",
    "2025-06-01T10:00:00.123456789Z stderr F plain",
    "Nov 29 14:05:01 gpu-a sglang[123]: [2026-11-29 14:13:09] INFO:     Shutting down",
)
ALL = (*SGLANG_START, *SGLANG_SERVING, *BARS, *TROUBLE, *OTHER_SERVERS, *NOISE)
