"""Lines that say that it is over, and not why: every server's own words for "a child of mine died"."""

from __future__ import annotations

import re

from specconsole.core.reading.failures_rules import Passing, passing

MESSENGERS: tuple[Passing, ...] = (
    # SGLang: `Scheduler hit an exception: Traceback (most recent call last):` (scheduler.py, every version)
    passing(
        "hit an exception",
        r"^(?:Scheduler|TokenizerManager|DetokenizerManager|DataParallelController|\w+) hit an exception",
        opens=True,
    ),
    # `Received sigquit from a child process. It usually means the child failed.` (engine.py) / `SIGQUIT received.
    # signum=None`
    passing("sigquit from a child proc", r"Received sigquit from a child process?\b"),
    passing("SIGQUIT received", r"^SIGQUIT received\."),
    # `Rank 0 scheduler is dead. Please check if there are relevant logs.` + `Exit code: 1` (0.4 to 0.5.8)
    passing("scheduler is dead", r"scheduler is dead\."),
    passing("died during initialization", r"scheduler died during initialization"),
    # `Initialization failed. Please see the error messages above.` / `Initialization failed. warmup error:
    # Traceback ...`
    passing("Initialization failed. Please see", r"^Initialization failed\. Please see"),
    passing("Initialization failed. warmup error", r"^Initialization failed\. warmup error", opens=True),
    # `Subprocess scheduler_0 (pid=99) crashed with exit code 1. Triggering SIGQUIT for cleanup...` (0.5.10 on)
    passing("crashed with exit code", r"^Subprocess \S+ \(pid=\d+\) crashed"),
    # `Capture cuda graph failed: CUDA out of memory. ...` is a cause; bare, it passes one on
    # vLLM: `EngineCore failed to start.` (core.py:1510), `EngineCore encountered a fatal error.` (core.py:1512)
    passing(
        "failed to start",
        r"^(?:EngineCore|EngineCore_\w+|WorkerProc|Engine process|LLMEngine)\S* failed to start",
        opens=True,
    ),
    passing(
        "encountered a fatal error", r"^EngineCore\S* (?:encountered|hit) (?:a fatal error|an exception)", opens=True
    ),
    passing("WorkerProc hit an exception", r"^WorkerProc hit an exception", opens=True),
    passing("WorkerProc initialization failed"),
    passing("ngine core initialization failed", r"[Ee]ngine core initialization failed"),
    passing("Engine process failed to start"),
    # `Failed core proc(s): {'EngineCore': 1}`; `Engine loop is not running`; V0: `Background loop has errored
    # already.`
    passing("Background loop has errored"),
    passing("MQLLMEngine terminated"),
    passing("EngineDeadError", r"^(?:[\w.]+\.)?EngineDeadError"),
    # `AsyncLLM output_handler failed.` (async_llm.py:906), followed by the EngineDeadError
    passing("output_handler failed", r"AsyncLLM output_handler failed"),
    passing("Worker failed with error", r"Worker failed with error"),
    passing("Executor failed", r"Executor failed\.?$"),
    passing("RuntimeError: cancelled", r"^RuntimeError: cancelled$"),
    passing("died unexpectedly", r"died unexpectedly"),
    # V0 / Ray: `Error executing method 'load_model'. This might cause deadlock in distributed execution.`
    # in worker_base.py
    passing("might cause deadlock", r"This might cause deadlock in distributed execution", opens=True),
    # MPI: `MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD`
    passing("MPI_ABORT was invoked"),
    # llama.cpp: `srv  llama_server: exiting due to model loading error` / `... due to HTTP server error`
    passing("exiting due to", r"exiting due to (?:model loading|HTTP server) error"),
    # TGI: `Error: ShardCannotStart`, `Shard 0 failed to start`, `Error: WebserverFailed`, `Error: DownloadError`
    passing("Error: ", r"^Error: (?:ShardCannotStart|ShardFailed|WebserverFailed|WebserverCannotStart|DownloadError)"),
    passing("Shard ", r"^Shard \d+ (?:failed to start|crashed)|^Shard complete standard error output"),
    # torch elastic: `torch.distributed.elastic.multiprocessing.errors.ChildFailedError:`
    passing("ChildFailedError", r"^(?:[\w.]+\.)?ChildFailedError"),
    # `ray.exceptions.RayTaskError(RuntimeError): ...`, `ray.exceptions.ActorDiedError: The actor died unexpectedly
    # before ...`
    passing("ActorDiedError", r"^(?:[\w.]+\.)?ActorDiedError"),
    # TensorRT-LLM: `Failed to initialize executor on rank 2: ...` passes the exception on; `MpiSession ... aborted`
    passing("Failed to initialize executor on rank", r"Failed to initialize executor on rank \d+: *$"),
    # `ninja: build stopped: subcommand failed.` belongs to a build whose error stands above it
    # systemd: `sglang.service: Failed with result 'exit-code'.` / `Main process exited, code=exited,
    # status=1/FAILURE`
    passing("Main process exited", r"Main process exited, code=exited, status=\d+"),
)

OPENERS_OF_HARMLESS: tuple[re.Pattern[str], ...] = (
    # `Exception ignored in: <function Socket.__del__ at 0x7f>` + Traceback (Python, at exit)
    re.compile(r"^Exception ignored (?:in|while|on)"),
    # `--- Logging error ---` + Traceback (Python's logging)
    re.compile(r"^--- Logging error ---"),
    # `Exception in ASGI application` + Traceback (uvicorn: one request failed)
    re.compile(r"Exception in ASGI application"),
    # `Task exception was never retrieved` / `Exception in callback ...` (asyncio)
    re.compile(r"Task exception was never retrieved|Exception in callback"),
)
