"""Causes that are the device, its driver, the links between devices and nodes, and time running out on them."""

from __future__ import annotations

from specconsole.core.reading.failures_rules import CONSEQUENCE, Rule, rule

DEVICE_RULES: tuple[Rule, ...] = (
    # kernel: `NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.`
    rule("gpu-hardware", "NVRM: Xid"),
    rule("gpu-hardware", "fallen off the bus"),
    # `RuntimeError: CUDA error: uncorrectable ECC error encountered` / `cudaErrorECCUncorrectable`; `uncorrectable
    # NVLink error`
    rule("gpu-hardware", "uncorrectable", r"uncorrectable (?:ECC|NVLink|memory|hardware) error"),
    rule("gpu-hardware", "ECCUncorrectable"),
    # ROCm: `HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception. code: 0x1016`
    rule("gpu-hardware", "HSA_STATUS_ERROR", r"HSA_STATUS_ERROR(?!_OUT_OF_RESOURCES)"),
    rule("gpu-hardware", "resulted in a hardware exception"),
    rule("gpu-oom", "HSA_STATUS_ERROR_OUT_OF_RESOURCES"),
    # ROCm: `HW Exception by GPU node-1 (Agent handle: 0x...) reason :GPU Hang`
    rule("gpu-hardware", "HW Exception by GPU node"),
    # `Unable to determine the device handle for GPU 0000:41:00.0: Unknown Error`
    rule("gpu-hardware", "Unable to determine the device handle for GPU"),
    # `torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device`
    rule("driver-mismatch", "no kernel image is available"),
    # `RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.`
    rule("driver-mismatch", "unsupported toolchain", r"PTX was compiled with an unsupported toolchain"),
    # `CUDA driver version is insufficient for CUDA runtime version`
    rule("driver-mismatch", "driver version is insufficient"),
    # `RuntimeError: The NVIDIA driver on your system is too old (found version 12040).`
    rule("driver-mismatch", "driver on your system is too old"),
    # `RuntimeError: Found no NVIDIA driver on your system.`; `RuntimeError: No CUDA GPUs are available`, `No HIP
    # GPUs are available`
    rule("driver-mismatch", "Found no NVIDIA driver"),
    rule("driver-mismatch", "GPUs are available", r"No (?:CUDA|HIP|NPU) GPUs are available"),
    # `Error 802: system not yet initialized` (fabric manager), `Error 803: system has unsupported display driver /
    # cuda driver combination`
    rule("driver-mismatch", "Error 80", r"Error 80[34]: "),
    rule("driver-mismatch", "system not yet initialized"),
    rule("driver-mismatch", "forward compatibility was attempted"),
    rule("driver-mismatch", "no CUDA-capable device is detected"),
    rule("driver-mismatch", "Unexpected error from cudaGetDeviceCount", alone="suspect"),
    # `RuntimeError: No accelerator (CUDA, XPU, HPU, NPU, MUSA, MPS) or platform plugin is available.` (SGLang)
    rule("driver-mismatch", "No accelerator (", r"No accelerator \(.*is available"),
    # `RuntimeError: Failed to infer device type, please set the environment variable ...` (vLLM)
    rule("driver-mismatch", "Failed to infer device type"),
    rule("driver-mismatch", "not compiled with CUDA enabled", alone=""),
    # `RuntimeError: HIP error: invalid device function`, `hipErrorNoBinaryForGpu: Unable to find code object for
    # all current devices!`
    rule("driver-mismatch", "invalid device function"),
    rule("driver-mismatch", "hipErrorNoBinaryForGpu"),
    # `rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: Illegal seek for GPU arch :
    # gfx1103`
    rule("driver-mismatch", "TensileLibrary", r"rocBLAS error: Cannot read"),
    # `Failed to initialize NVML: Driver/library version mismatch`
    rule("driver-mismatch", "Driver/library version mismatch"),
    # docker: `nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver`
    rule("driver-mismatch", "unsatisfied condition: cuda"),
    rule("driver-mismatch", "could not select device driver"),
    # CANN: `The driver version ... does not match`, `[Error]: driver and firmware package do not match`
    rule(
        "driver-mismatch", "not match", r"(?i)driver (?:version )?.{0,60}(?:firmware|runtime|package).{0,40}not match"
    ),
    # `torch.AcceleratorError: CUDA error: an illegal memory access was encountered` / `CUDA error: device-side
    # assert triggered`
    rule("device-error", "illegal memory access"),
    rule("device-error", "device-side assert triggered"),
    rule("device-error", "launch failure", r"(?:unspecified|CUDA error:.*) launch failure"),
    rule("device-error", "misaligned address", r"CUDA error: misaligned address"),
    # ROCm: `Memory access fault by GPU node-2 (Agent handle: 0x5581) on address 0x7f8. Reason: Page not present or
    # supervisor privilege.`
    rule("device-error", "Memory access fault by GPU node"),
    rule(
        "device-error",
        "CUBLAS_STATUS_",
        r"CUBLAS_STATUS_(?:EXECUTION_FAILED|INTERNAL_ERROR|NOT_INITIALIZED|INVALID_VALUE)",
    ),
    # Ascend: `EZ9999: Inner Error!`, `The aicore execution is abnormal`, `vector core exception`
    rule("device-error", "aicore execution is abnormal"),
    rule("device-error", "vector core exec", r"vector core exec\w+ is abnormal|vector core exception"),
    rule("device-error", "EZ9999", r"EZ9999: Inner Error", tier=CONSEQUENCE),
    # `Watchdog caught collective operation timeout: WorkNCCL(SeqNum=21877, OpType=ALLREDUCE, ...,
    # Timeout(ms)=1800000) ran for ...`
    rule("hang", "collective operation timeout", r"Watchdog caught collective operation timeout"),
    # SGLang: `Watchdog timeout (self.watchdog_timeout=300)` (to 0.5.3), `scheduler watchdog timeout
    # (self.watchdog_timeout=300, self.soft=False)`
    rule("hang", "atchdog timeout (", r"[Ww]atchdog timeout \((?!.*soft=True)"),
    # vLLM: `TimeoutError: RPC call to sample_tokens timed out.`; V0: `RuntimeError: Engine iteration timed out.
    # This should never happen!`
    rule("hang", "timed out", r"RPC call to \w+ timed out"),
    rule("hang", "Engine iteration timed out"),
    # torch: `Heartbeat monitor timed out! Process will be terminated after dumping debug info.`; gloo
    # `monitoredBarrier` time-outs
    rule("hang", "eartbeat monitor timed out", r"[Hh]eartbeat monitor timed out"),
    # `ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives.`
    rule("hang", "watchdog got stuck", r"watchdog got stuck for \d+ seconds"),
    rule("hang", "monitoredBarrier", r"monitoredBarrier.*timed? ?out"),
    # HCCL: `EI0002: The wait execution of the Notify register times out. Reason: The Notify register has not
    # received the Notify record`
    rule("hang", "Notify register times out"),
    # `RuntimeError: [gloo] ... Timed out waiting 1800000ms for recv operation to complete`
    rule("hang", "Timed out waiting", r"Timed out waiting \d+ms for (?:recv|send) operation", tier=CONSEQUENCE),
    # `NCCL WARN socketPollConnect: Connect to 10.0.0.4<51734> returned 113(No route to host) errno 115(...)`
    rule(
        "network",
        "NCCL WARN",
        r"NCCL WARN .*(?:No route to host|Connection refused|timed out|Network is unreachable|Host is down)",
        alone="suspect",
    ),
    # `NCCL WARN NET/IB : Got completion from peer 10.1.1.2<41512> with status=12 opcode=0 len=0 vendor err 129`
    rule(
        "network",
        "NET/IB",
        r"NET/IB : (?:Got completion .*(?:status|error)[ =](?:5|12)\b|.*(?:Async event|unreachable))",
        alone="suspect",
    ),
    # `torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.`
    rule("network", "waiting for clients", r"Timed out after \d+ seconds waiting for clients"),
    # `torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to
    # (10.0.0.1, 20000).`
    rule("network", "client socket has", r"client socket has (?:timed out|failed to connect)"),
    # `RuntimeError: Gloo connectFullMesh failed with [.../gloo/transport/tcp/pair.cc:144] no error` / `Connection
    # refused`
    rule("network", "connectFullMesh failed"),
    rule("network", "No route to host"),
    rule("network", "Network is unreachable"),
    rule(
        "network",
        "name resolution",
        r"[Tt]emporary failure in name resolution|Name or service not known",
        alone="suspect",
    ),
    rule("network", "Name or service not known", alone="suspect"),
    # `RuntimeError: unable to find network interface [eth9]` (gloo) / `NCCL WARN Bootstrap : no socket interface
    # found`
    rule("network", "network interface", r"[Uu]nable to find (?:address for|network interface)"),
    rule("network", "no socket interface found", alone="suspect"),
    # HCCL: `EI0006: Getting socket times out. Reason: Remote Rank did not send the data in time.`
    rule("network", "Getting socket times out"),
    # HCCL: `wait socket establish timeout, role[1] rank[0] timeout[120 s]`
    rule("network", "wait socket establish timeout"),
    # Ray: `ConnectionError: Could not find any running Ray instance.` / `Failed to connect to GCS at address
    # 10.0.0.1:6379`
    rule("network", "connect to GCS", r"[Ff]ailed to connect to GCS"),
    # `NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000`; `... ncclInvalidUsage`
    rule("collective-failure", "Duplicate GPU detected"),
    # `ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.` : an
    # echo
    rule("collective-failure", "remote process exit", r"remote process exit", tier=CONSEQUENCE),
    # `RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)`: the outcome, not
    # the reason
    rule("collective-failure", "unhandled system error", tier=CONSEQUENCE),
    rule("collective-failure", "unhandled cuda error", tier=CONSEQUENCE),
    # `torch.distributed.DistBackendError: NCCL error in: .../ProcessGroupNCCL.cpp:2356, ... ncclUnhandledCudaError:
    # ...`
    rule("collective-failure", "DistBackendError", r"DistBackendError", tier=CONSEQUENCE, alone="suspect"),
    rule("collective-failure", "CCL error", r"\b[NRH]CCL error\b", tier=CONSEQUENCE),
    # Ascend: `RuntimeError: createHCCLComm:...HCCL function error: HcclGetRootInfo, error code is 6`
    # or `InnerRunOpApi:... OPS function error: HcclAllreduce, error code is 6`: EI0006 behind it says more
    # `EJ0003: Failed to bind the IP port. Reason: The IP address and port have been bound already.` says it better
    rule("collective-failure", "HCCL function error", tier=CONSEQUENCE),
    rule("collective-failure", "function error: Hccl", tier=CONSEQUENCE),
    rule(
        "collective-failure",
        "nccl",
        r"\bnccl(?:InternalError|InvalidUsage|SystemError|UnhandledCudaError)\b",
        tier=CONSEQUENCE,
        alone="suspect",
    ),
    # `RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer
    # [10.0.0.2]:41210`: an echo
    rule("network", "Connection closed by peer", tier=CONSEQUENCE, alone="suspect"),
    rule(
        "network",
        "Connection reset by peer",
        r"(?:gloo|TCPStore|DistNetworkError|recvBytes|store).*Connection reset by peer",
        tier=CONSEQUENCE,
        alone="suspect",
    ),
)
