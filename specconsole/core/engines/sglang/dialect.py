"""SGLang's log, versions 0.4.6 to 0.5.23, and what wraps or forks it (slime, Dynamo, NPU and ROCm builds)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from specconsole.core.engines.sglang.dialect_facts import parse_server_args
from specconsole.core.engines.sglang.dialect_serving import parse_batch
from specconsole.core.engines.sglang.dialect_start import WORDS, parse_start
from specconsole.core.engines.sglang.dialect_steady import SteadyLines
from specconsole.core.reading.events import Event, Line, Started

# Only SGLang prints these; forks keep them.
_STRONG = re.compile(
    r"^(?:Load weight (?:begin|end)|Memory pool end|server_args=(?:ServerArgs\(|\{)|Init torch distributed (?:begin|ends)"
    r"|Init parallel (?:begin|ends)|max_total_num_tokens=|The server is fired up|(?:Decode|Prefill) batch(?: \[\d+\])?[.,] #"
    r"|Capture .*graph (?:begin|end)|Scheduler hit an exception|Received sigquit from a child|SIGQUIT received\. signum"
    r"|KV Cache is allocated|Health check failed\. Server couldn't get a response from detokenizer|sglang is using nccl"
    r"|usage: (?:sglang serve|launch_server\.py|python3? -m sglang)|(?:sglang serve|launch_server\.py): error: "
    r"|KV cache pool is full\. Retract|kill_process_tree called)"
)
_NAMED = re.compile(r"\bsglang[ ./:_-]|\bSGLang\b|sgl_kernel|SGLANG_")
_LITERALS = (
    "server_args=", "Decode batch", "Prefill batch", "kill_process_tree called", "sglang", "SGLang", "sgl-workspace", "launch_server.py",
)  # fmt: skip


class SGLangDialect:
    """See `core.reading.dialect.Dialect`."""

    engine = "sglang"
    literals: tuple[bytes, ...] = tuple(word.encode() for word in (*WORDS, *_LITERALS))
    steady = SteadyLines()

    def evidence(self, line: Line) -> int:
        if _STRONG.match(line.text):
            return 3
        return 1 if _NAMED.search(line.whole) else 0

    def parse(self, line: Line) -> Sequence[Event]:
        text = line.text
        if " batch" in text[:16]:
            events = parse_batch(line)
            if events:
                return events
        if text.startswith("server_args="):
            facts = parse_server_args(text)
            return (Started(), facts) if facts is not None else (Started(),)
        return parse_start(line)


DIALECT = SGLangDialect()
