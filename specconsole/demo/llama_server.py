"""llama.cpp's own HTTP server as a process: `python -m specconsole.demo.llama_server --model M --draft D --port N`.

The server is the one in the `xllamacpp` wheel, compiled from llama.cpp's sources: its log goes to standard
error, and /health, /metrics, /slots, /props and the completion endpoints are its own. Flags that llama-server
has too are spelled as there. This process adds the flags, the exit status and an orderly end on SIGTERM and SIGINT.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from typing import Any


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="specconsole.demo.llama_server", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("-m", "--model", required=True, help="target model, a GGUF file")
    parser.add_argument("-md", "--draft", "--model-draft", help="draft model, a GGUF file; without it no speculation")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("-a", "--alias", help="name that the API shows")
    parser.add_argument("-c", "--ctx-size", type=int, default=4096, metavar="TOKENS", help="over all slots")
    parser.add_argument("-np", "--parallel", type=int, default=2, metavar="SLOTS")
    # llama.cpp's threads spin while they wait for each other: on a busy machine two are many times slower than one.
    parser.add_argument("-t", "--threads", type=int, default=1)
    parser.add_argument("--spec-draft-n-max", type=int, default=4, metavar="TOKENS", help="drafted a step at most")
    parser.add_argument("--spec-synth-len", type=float, default=0.0, metavar="TOKENS",
                        help="make acceptance up: tokens a target step on average (0: off)")  # fmt: skip
    parser.add_argument("--api-key", default=os.environ.get("LLAMA_API_KEY"), metavar="KEY", help="LLAMA_API_KEY too")
    parser.add_argument("-lv", "--verbosity", type=int, default=3)
    return parser


def build_params(args: argparse.Namespace) -> Any:
    """llama.cpp's `common_params`; typed Any because the extension module carries no types."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = args.model
    params.model_alias = {args.alias} if args.alias else set()
    params.hostnames = [args.host]
    params.port = args.port
    params.n_ctx = args.ctx_size
    params.n_parallel = args.parallel
    params.cpuparams.n_threads = args.threads
    params.cpuparams_batch.n_threads = args.threads
    params.verbosity = args.verbosity
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.endpoint_props = True
    if args.api_key:
        params.api_keys = [args.api_key]
    if args.draft:
        speculative = params.speculative
        speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        # A property of the extension type returns a copy: change it and put it back.
        draft_model = speculative.draft.mparams
        draft_model.path = args.draft
        speculative.draft.mparams = draft_model
        speculative.draft.n_max = args.spec_draft_n_max
        if args.spec_synth_len:
            speculative.synth_len = args.spec_synth_len
    return params


def main(argv: list[str] | None = None) -> int:
    """Serves until a signal; 0 after SIGTERM or SIGINT, 1 when the server could not start."""
    args = build_parser().parse_args(argv)
    # While it loads, both signals end it on the spot, as they end llama-server; the wait below is orderly.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    import xllamacpp

    try:
        server = xllamacpp.Server(build_params(args))
    except RuntimeError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    asked_to_end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked_to_end.set())
    asked_to_end.wait()
    # Its destructor stops the HTTP server and joins its threads.
    del server
    return 0


if __name__ == "__main__":
    sys.exit(main())
