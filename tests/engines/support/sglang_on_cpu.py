#!/usr/bin/env python3
"""The real SGLang 0.5.17 server on a CPU: sglang_on_cpu.py [sglang's own flags]

Its own code all through, but for the kernels (./sglang_kernels) and one answer: asked whether the CPU has AMX it says
yes, since otherwise the attention back end becomes `torch_native`, with which EAGLE refuses to start
(srt/arg_groups/overrides.py).
"""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
FLAGS = [
    "--device", "cpu", "--attention-backend", "intel_amx", "--sampling-backend", "pytorch", "--disable-cuda-graph",
    "--mem-fraction-static", "0.3", "--max-total-tokens", "8192", "--grammar-backend", "none",
]  # fmt: skip


def main():
    from sglang.launch_server import run_server
    from sglang.srt.arg_groups import overrides
    from sglang.srt.server_args import prepare_server_args
    from sglang.srt.utils import kill_process_tree

    overrides.cpu_has_amx_support = lambda: True
    try:
        run_server(prepare_server_args([*FLAGS, *sys.argv[1:]]))
    finally:
        kill_process_tree(os.getpid(), include_parent=False)


if __name__ == "__main__":
    os.environ.setdefault("SGLANG_USE_CPU_ENGINE", "1")
    # Its children are started afresh and must find the kernels too; and it compiles its n-gram matcher with `c++`,
    # which under GCC 12 needs a header that the source forgets (./compiler/c++).
    kernels = str(HERE / "sglang_kernels")
    sys.path.insert(0, kernels)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [kernels, os.environ.get("PYTHONPATH")]))
    os.environ["PATH"] = os.pathsep.join([str(HERE / "compiler"), os.environ.get("PATH", "")])
    main()
