"""What a look before a start costs: `specconsole check` of a model of 64 shards, here and over SSH, as whole processes.

The shards are sparse files of several gigabytes with real heads (GGUF with a vocabulary of 128,000 tokens, and
safetensors), the SSH server is a real one on the loopback. Ratios are to the barest thing of the kind: an interpreter
that does nothing, and `ssh HOST true`. Run it with `python benchmarks/preflight.py`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.sshd_lab import SSHD, sshd_lab  # noqa: E402 - needs the folder above

SHARDS = 64
SHARD_BYTES = 8 << 30
TOKENS = 128_256


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def gguf_shards(folder: Path) -> Path:
    """Written by hand: the vocabulary, its merges, and tensors whose bytes are holes."""
    pairs = [
        text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama"),
        *(text(b"llama." + key) + struct.pack("<II", 4, value) for key, value in (
            (b"context_length", 131072), (b"block_count", 61), (b"embedding_length", 7168),
            (b"attention.head_count", 64), (b"attention.head_count_kv", 8))),
        text(b"tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, TOKENS)
        + b"".join(text(b"token%d" % n) for n in range(TOKENS)),
        text(b"tokenizer.ggml.merges") + struct.pack("<IIQ", 9, 8, TOKENS)
        + b"".join(text(b"t%d t%d" % (n, n + 1)) for n in range(TOKENS)),
    ]  # fmt: skip
    first = folder / f"m-00001-of-{SHARDS:05d}.gguf"
    for number in range(1, SHARDS + 1):
        mine = pairs if number == 1 else pairs[:1]
        rows = (SHARD_BYTES - (16 << 20)) // 2 // 7168
        tensors = [text(b"blk.%d.ffn_up.weight" % number) + struct.pack("<IQQIQ", 2, 7168, rows, 1, 0)]
        head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(mine)) + b"".join(mine) + b"".join(tensors)
        sparse(folder / f"m-{number:05d}-of-{SHARDS:05d}.gguf", head)
    return first


def safetensors_shards(folder: Path) -> Path:
    places: dict[str, str] = {}
    total = 0
    for number in range(1, SHARDS + 1):
        name = f"model-{number:05d}-of-{SHARDS:05d}.safetensors"
        header: dict[str, object] = {}
        count = 1500  # as a mixture of experts has them
        each = (SHARD_BYTES - (1 << 20)) // count // 14336 * 14336
        for n in range(count):
            tensor = f"model.layers.{number}.mlp.experts.{n}.up_proj.weight"
            header[tensor] = {
                "dtype": "BF16",
                "shape": [each // 14336, 7168],
                "data_offsets": [n * each, (n + 1) * each],
            }
            places[tensor] = name
        data = json.dumps(header).encode()
        path = folder / name
        sparse(path, len(data).to_bytes(8, "little") + data, 8 + len(data) + count * each)
        total += count * each
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": places})
    )
    config = {"architectures": ["LlamaForCausalLM"], "hidden_size": 7168, "num_hidden_layers": 61, "vocab_size": TOKENS,
              "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 131072}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def sparse(path: Path, head: bytes, size_bytes: int = SHARD_BYTES) -> None:
    path.write_bytes(head)
    os.truncate(path, size_bytes)


def seconds(run: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Medians of several, by the clock and of the processor (children included); the first, which fills caches, is
    left out. On a busy machine only the second says much."""
    taken: list[tuple[float, float]] = []
    for number in range(rounds + 1):
        start_s, cpu_s = time.monotonic(), _cpu_s()
        run()
        if number:
            taken.append((time.monotonic() - start_s, _cpu_s() - cpu_s))
    clock_s, used_s = (statistics.median(one) for one in zip(*taken, strict=True))
    return clock_s, used_s


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def line(label: str, took: tuple[float, float], bare_s: float | None = None, what: str = "") -> None:
    ratio = f"{took[0] / bare_s:6.1f} x {what}" if bare_s else ""
    print(f"{label:46} {took[0]:6.2f} s  {took[1]:6.2f} s CPU  {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        (home / "gguf").mkdir()
        (home / "safetensors").mkdir()
        environment = {**os.environ, "HOME": name, "XDG_CONFIG_HOME": f"{name}/c", "XDG_STATE_HOME": f"{name}/s",
                       "PYTHONPYCACHEPREFIX": f"{name}/p"}  # fmt: skip
        # As a person has it: modules are compiled once.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        server = home / "llama-server"
        # As quick as the real program, which says its version and flags in a hundredth of a second.
        help_text = gzip.decompress((ROOT / "specconsole" / "catalogues" / "llamacpp-b10434.txt.gz").read_bytes())
        (home / "help").write_bytes(help_text)
        server.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo 'version: 10434 (abc)' && exit\ncat '{home}/help'\n")
        server.chmod(0o755)
        profiles = {
            "llama.cpp, 64 GGUF shards": ("llamacpp", [str(server)], gguf_shards(home / "gguf")),
            "SGLang, 64 safetensors shards": ("sglang", ["python3", "x.py"], safetensors_shards(home / "safetensors")),
        }
        for number, (engine, command, model) in enumerate(profiles.values()):
            (home / f"p{number}.toml").write_text(
                f'engine = "{engine}"\ncommand = {json.dumps(command)}\nmodel = "{model}"\n'
            )

        def check(number: int, host: str) -> int:
            words = [
                sys.executable,
                "-m",
                "specconsole",
                "check",
                str(home / f"p{number}.toml"),
                "--host",
                host,
                "--json",
            ]
            done = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, check=False)
            findings = json.loads(done.stdout)["findings"]
            whole = [one for one in findings if one["check"] == "model" and "64" in one["text"]]
            assert whole, done.stdout
            return len(findings)

        bare = seconds(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), rounds)
        line("python -c pass", bare)
        for number, label in enumerate(profiles):
            took = seconds(lambda n=number: check(n, "local"), rounds)  # type: ignore[misc]  # bound in the loop
            line(f"check here: {label}", took, bare[0], "python")
        if SSHD is None:
            print("no sshd: the rest is left out")
            return
        with sshd_lab() as lab:
            lab.client_config(home, alias="lab", user=lab.accounts[0])
            ssh = ["ssh", "-F", str(home / ".ssh" / "config"), "-o", f"UserKnownHostsFile={home}/.ssh/known_hosts"]
            there = seconds(lambda: subprocess.run([*ssh, "lab", "true"], env=environment, check=True), rounds)
            line("ssh HOST true", there)
            for number, label in enumerate(profiles):
                took = seconds(lambda n=number: check(n, "lab"), rounds)  # type: ignore[misc]  # as above
                line(f"check over SSH: {label}", took, there[0], "ssh")


if __name__ == "__main__":
    main()
