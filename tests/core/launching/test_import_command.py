"""Commands as people paste them, compared with what a real bash hands to the program."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from specconsole.core.launching.import_command import import_command
from specconsole.core.launching.shell_words import split_words
from specconsole.errors import BadInputError

STUB = """#!/bin/sh
exec {python} -c '
import json, os, sys
json.dump([sys.argv[1:], dict(os.environ)], open(os.environ["DUMP"], "w"))' "$0" "$@"
"""

PLAIN = [
    "python -m sglang.launch_server --model-path /models/llama --port 30000",
    "NCCL_ALGO=Tree nohup python -m sglang.launch_server --model-path meta/Llama --tp 8 > server.log 2>&1 &",
    """python3 -m sglang.launch_server \\
      --model-path /mnt/nvme/Kimi-K2 \\
      --speculative-algorithm EAGLE3 \\
      --speculative-draft-model-path /mnt/nvme/draft \\
      --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4 \\
      --mem-fraction-static 0.85 \\
      --trust-remote-code
""",
    "vllm serve Qwen/Qwen3-8B --max-model-len 32768 --gpu-memory-utilization 0.9",
    """vllm serve /models/q --speculative-config '{"method": "eagle3", "model": "/d", "num_speculative_tokens": 3}'""",
    """vllm serve /models/q --spec-tokens 4 --speculative-config "{\\"method\\":\\"ngram\\"}" --port 8001""",
    "export NCCL_DEBUG=INFO\nexport CUDA_VISIBLE_DEVICES=0,1,2,3\nsglang serve --model-path /m --tp=4",
    "env -u HTTP_PROXY VLLM_USE_V1=1 vllm serve facebook/opt-125m --enforce-eager",
    'MODEL="/data/my models/llama 3"\npython -m sglang.launch_server --model-path "$MODEL" --port 30001',
    "P=31000; python -m sglang.launch_server --model-path /m --port ${P} --host 0.0.0.0",
    "setsid nohup python -u -m vllm.entrypoints.openai.api_server --model /m "
    "--served-model-name a b c </dev/null &>log &",
    "llama-server -m target.gguf -md draft.gguf --spec-type draft-simple --spec-draft-n-max 4 -c 4096 -ngl 99",
    "exec llama-server -m t.gguf --host 127.0.0.1 --port 8080 2>&1 | tee llama.log",
    "# start the baseline\npython -m sglang.launch_server --model-path /m # no draft yet",
    "ulimit -n 64 && python -m sglang.launch_server --model-path /m --dp 8 --enable-dp-attention",
    "CUDA_VISIBLE_DEVICES=4,5,6,7 python -m sglang.launch_server --model-path /m "
    '--json-model-override-args \'{"a": {"b": [1, 2]}}\'',
    "python -m sglang.launch_server --model-path /m --chat-template $'line one\\nline two'",
    "time python -m sglang.launch_server --model-path=/m --schedule-conservativeness=1.0 --random-seed -1",
    "vllm serve /m --override-generation-config '{\"temperature\":0}' -tp 2 --no-enable-prefix-caching",
    "PYTHONPATH=/src:/lib EAGLE3_PROFILE=1 python -m sglang.launch_server --model-path /m --disable-custom-all-reduce",
    "python -m sglang.launch_server --model-path /m --cuda-graph-bs 1 2 4 8 16 --log-level info",
    "vllm serve --model /m --compilation-config '{\"cudagraph_capture_sizes\": [1,2,4]}'",
    "FLAGS='--tp 2 --port 9000'\nvllm serve /m $FLAGS",
    "python -m sglang.launch_server --model-path ~/models/x --tokenizer-path ~/models/x",
    "stdbuf -oL -eL python -m sglang.launch_server --model-path /m",
    "nice -n 5 llama-server -m /m/t.gguf --alias 'it''s tiny'",
    "TP=${TP:-4} ; python -m sglang.launch_server --model-path /m --tp ${TP_SIZE:-8}",
    "SGLANG_ENABLE_SPEC_V2=1 python -m sglang.launch_server --model-path /m --speculative-eagle-topk 1 \\\n"
    "  --speculative-num-steps 5 \\\n  --attention-backend fa3 >> /tmp/log.txt 2>&1 &",
    "vllm serve /m --api-server-count 2 --chat-template=\"{{ messages }}\" --served-model-name '名前'",
    "false || vllm serve /m --seed 0",
]


def what_bash_runs(text: str, folder: Path) -> tuple[list[str], dict[str, str]]:
    """The argument list and environment that the server's program really gets."""
    stubs = folder / "stubs"
    stubs.mkdir()
    for name in ("python", "python3", "vllm", "sglang", "llama-server"):
        (stubs / name).write_text(STUB.format(python="/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "x"))
        (stubs / name).chmod(0o755)
    dump = folder / "dump.json"
    subprocess.run(
        ["bash", "-c", text + "\nwait\n"],
        cwd=folder,
        env={"PATH": f"{stubs}:/usr/bin:/bin", "HOME": "/home/somebody", "DUMP": str(dump)},
        timeout=30,
        check=False,
        capture_output=True,
    )
    argv, env = json.loads(dump.read_text())
    return [Path(argv[0]).name, *argv[1:]], env


@pytest.mark.parametrize("text", PLAIN, ids=range(len(PLAIN)))
def test_the_same_arguments_as_the_shell_hands_over(text: str, tmp_path: Path) -> None:
    argv, env = what_bash_runs(text, tmp_path)
    found = import_command("HOME=/home/somebody\n" + text)
    assert list(found.argv) == argv
    for name, value in found.env.items():
        assert env[name] == value


WRAPPED = [
    (
        "docker run --gpus all --shm-size 32g -p 30000:30000 -v ~/.cache:/root/.cache -e HF_TOKEN=abc --ipc=host "
        "lmsysorg/sglang:v0.5.8 python3 -m sglang.launch_server --model-path m --port 30000",
        ["python3", "-m", "sglang.launch_server", "--model-path", "m", "--port", "30000"],
    ),
    (
        "docker run --runtime nvidia --gpus all vllm/vllm-openai:v0.20.2 --model Qwen/Q --max-model-len 4096",
        ["vllm", "serve", "--model", "Qwen/Q", "--max-model-len", "4096"],
    ),
    (
        "tmux new-session -d -s srv 'NCCL_ALGO=Tree vllm serve /m --port 8000 2>&1 | tee log'",
        ["vllm", "serve", "/m", "--port", "8000"],
    ),
    ("bash -lc 'cd /w && exec vllm serve /m'", ["vllm", "serve", "/m"]),
    (
        'ssh -p 2222 gpu-a "nohup python -m sglang.launch_server --model-path /m > log 2>&1 &"',
        ["python", "-m", "sglang.launch_server", "--model-path", "/m"],
    ),
    ("srun -N 1 --gres gpu:8 --mpi pmix vllm serve /m -tp 8", ["vllm", "serve", "/m", "-tp", "8"]),
    ("numactl --cpunodebind 0 -m 0 llama-server -m a.gguf", ["llama-server", "-m", "a.gguf"]),
    ("uv run --with x vllm serve /m", ["vllm", "serve", "/m"]),
    (
        "tmux send-keys -t 0 'python -m sglang.launch_server --model-path /m' C-m",
        ["python", "-m", "sglang.launch_server", "--model-path", "/m"],
    ),
    ("screen -dmS srv vllm serve /m", ["vllm", "serve", "/m"]),
    ("sudo -u ml taskset -c 0-7 timeout 1h vllm serve /m", ["vllm", "serve", "/m"]),
]


@pytest.mark.parametrize(("text", "argv"), WRAPPED, ids=range(len(WRAPPED)))
def test_the_command_inside_its_wrappers(text: str, argv: list[str]) -> None:
    assert list(import_command(text).argv) == argv


def test_settings_and_what_becomes_of_secrets() -> None:
    found = import_command(
        "source /opt/venv/bin/activate; cd /work\nHF_TOKEN=hf_abc NCCL_ALGO=Tree python -m sglang.launch_server "
        "--model-path /m --speculative-draft-model-path /d --tp 8 --mem-fraction-static 0.85 --api-key sk-123 "
        "--host 0.0.0.0 --port 30000 --cuda-graph-bs 1 2 4 --disable-radix-cache > out.log 2>&1 &"
    )
    assert (found.engine, found.model, found.draft_model, found.port, found.bind) == (
        "sglang", "/m", "/d", 30000, "0.0.0.0",
    )  # fmt: skip
    assert found.args == {
        "tp": 8, "mem_fraction_static": 0.85, "cuda_graph_bs": [1, 2, 4], "disable_radix_cache": True,
    }  # fmt: skip
    assert (found.environment, found.working_dir, found.log_path) == ("/opt/venv", "/work", "out.log")
    assert found.env == {"NCCL_ALGO": "Tree"}
    assert found.secrets == {"HF_TOKEN": "env:HF_TOKEN"}
    everything = repr(found.args) + repr(found.env) + repr(found.notes)
    assert "hf_abc" not in everything
    assert "sk-123" not in everything


def test_what_needs_a_running_shell_is_kept_and_said() -> None:
    found = import_command("vllm serve /m --port $(python free_port.py) --seed $SEED")
    assert "$(python free_port.py)" in found.argv
    assert len(found.notes) == 2


@pytest.mark.parametrize("text", ["", "ls -l", "echo 'open", "python train.py", "docker ps"])
def test_no_server_in_it_is_one_clear_error(text: str) -> None:
    with pytest.raises(BadInputError):
        import_command(text)


def test_quotes_never_join_or_split_what_the_shell_keeps() -> None:
    words, unresolved = split_words(r"""a'b c'd "e\"f" g\ h '' "$X" "#no" i#j""", {"X": "1 2"})
    assert [w.text for w in words] == ["ab cd", 'e"f', "g h", "", "1 2", "#no", "i#j"]
    assert unresolved == []
