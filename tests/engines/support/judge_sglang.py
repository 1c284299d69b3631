"""What SGLang 0.5.17 makes of argument lists: its own parser and `ServerArgs`; run by its environment's Python."""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main():
    import judging
    from sglang.srt.server_args import prepare_server_args

    judging.answer(lambda args: vars(prepare_server_args(args)))


if __name__ == "__main__":
    os.environ.setdefault("SGLANG_USE_CPU_ENGINE", "1")
    sys.path[:0] = [str(HERE), str(HERE / "sglang_kernels")]
    main()
