"""Whole benchmark programs beside ours on the paced server, where they are installed: guidellm, the two engines' own.

Each runs as its own command line does, twice: with two events a stream and with all of them. The difference in CPU
time is what the events cost; starting Python, torch and tokenizers is in both and cancels. Times to first token are
the client's own, from the file that it writes.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 300.0
QUIET = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}


@dataclass(frozen=True, slots=True)
class Seen:
    """What one client says of its run, and what it cost."""

    cpu_s: float
    ttft_p50_s: float
    ttft_p99_s: float


@dataclass(frozen=True, slots=True)
class ForeignClient:
    name: str
    executable: Path
    arguments: Callable[[int, int, int, Path], list[str]]
    """From port, streams, events a stream and a folder; a result goes to `out.json` there."""
    times: Callable[[Path], tuple[float, float]]
    """p50 and p99 of TTFT, in seconds, from that file."""
    python_path: str = ""

    def run(self, port: int, streams: int, events: int, folder: Path) -> Seen:
        """Raises RuntimeError with its last words."""
        env = {**os.environ, **QUIET}
        if self.python_path:
            env["PYTHONPATH"] = self.python_path
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [str(self.executable), *self.arguments(port, streams, events, folder)],
            cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            words = (done.stderr or done.stdout).strip().splitlines()
            raise RuntimeError(f"exit {done.returncode}: {words[-1][:160] if words else ''}")
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Seen(cpu_s, *self.times(folder / "out.json"))


def installed_clients(tokenizer: Path) -> list[ForeignClient]:
    """Those that are here. `SPECCONSOLE_GUIDELLM` names guidellm's executable where it is not on the path."""
    found = [_vllm(tokenizer), _sglang(tokenizer), _guidellm(tokenizer)]
    return [client for client in found if client.executable.exists()]


def write_tokenizer(folder: Path) -> Path:
    """The demo's vocabulary as a Hugging Face tokenizer; these clients count tokens with one."""
    sys.path.insert(0, str(ROOT))
    from specconsole.demo.vocabulary import build_vocabulary
    from tests.engines.support.checkpoints import SHAPE, config, write_folder

    vocabulary = build_vocabulary()
    write_folder(folder, config(SHAPE, vocabulary), {}, vocabulary, SHAPE)
    (folder / "model.safetensors").unlink(missing_ok=True)
    return folder


def _vllm(tokenizer: Path) -> ForeignClient:
    def arguments(port: int, streams: int, events: int, folder: Path) -> list[str]:
        return [
            "bench", "serve", "--backend", "openai", "--base-url", f"http://127.0.0.1:{port}", "--model", "m",
            "--tokenizer", str(tokenizer), "--dataset-name", "random", "--random-input-len", "8",
            "--random-output-len", str(events), "--num-prompts", str(streams), "--request-rate", str(streams),
            "--seed", "0", "--save-result", "--result-filename", "out.json", "--disable-tqdm",
        ]  # fmt: skip

    return ForeignClient("vllm bench", ROOT / ".venv-vllm" / "bin" / "vllm", arguments, _flat_times)


def _sglang(tokenizer: Path) -> ForeignClient:
    def arguments(port: int, streams: int, events: int, folder: Path) -> list[str]:
        (folder / "out.json").unlink(missing_ok=True)
        return [
            "-m", "sglang.bench_serving", "--backend", "vllm", "--base-url", f"http://127.0.0.1:{port}", "--model",
            "m", "--tokenizer", str(tokenizer), "--dataset-name", "random-ids", "--random-input-len", "8",
            "--random-output-len", str(events), "--num-prompts", str(streams), "--request-rate", str(streams),
            "--seed", "0", "--output-file", "out.json", "--disable-tqdm",
        ]  # fmt: skip

    stubs = str(ROOT / "tests" / "engines" / "support" / "sglang_kernels")
    return ForeignClient("sglang bench", ROOT / ".venv-sglang" / "bin" / "python", arguments, _flat_times, stubs)


def _guidellm(tokenizer: Path) -> ForeignClient:
    def arguments(port: int, streams: int, events: int, folder: Path) -> list[str]:
        prompts = folder / "prompts.jsonl"
        prompts.write_text("".join(json.dumps({"prompt": f"the river {n}"}) + "\n" for n in range(streams)))
        return [
            "run", "--backend", f"kind=openai_http,target=http://127.0.0.1:{port},model=m,request_format=/v1/completions",
            "--profile", f"kind=poisson,rate={streams}", "--constraint", f"kind=max_requests,count={streams}",
            "--tokenizer", f"kind=hf_auto,model={tokenizer}", "--data", f"kind=json_file,path={prompts}",
            "--output", "kind=json,path=out.json", "--disable-console",
        ]  # fmt: skip

    def times(path: Path) -> tuple[float, float]:
        (one,) = json.loads(path.read_text())["benchmarks"]
        told = one["metrics"]["time_to_first_token_ms"]["successful"]
        return told["median"] / 1e3, told["percentiles"]["p99"] / 1e3

    named = os.environ.get("SPECCONSOLE_GUIDELLM", str(ROOT / ".venv" / "bin" / "guidellm"))
    return ForeignClient("guidellm", Path(named), arguments, times)


def _flat_times(path: Path) -> tuple[float, float]:
    told = json.loads(path.read_text().splitlines()[0])
    return told["median_ttft_ms"] / 1e3, told["p99_ttft_ms"] / 1e3
