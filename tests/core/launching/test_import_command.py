"""Commands as people paste them, compared with what a real bash hands to the program."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
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
    for name, script in RUNNERS.items():
        (stubs / name).write_text(f"#!/bin/sh\n{script}\n")
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


# Wilder ones. What is no shell's own (sudo, srun, tmux, ...) is a stub that runs what the real one would.
WILD = [
    'cat > eagle.json <<\'EOF\'\n{"a": "vllm serve /wrong"}\nEOF\nvllm serve /m --config eagle.json --seed 1',
    "bash <<'EOF'\nexport NCCL_DEBUG=INFO\nvllm serve /m --served-model-name \"a b\" \\\n  --port 8000\nEOF",
    "M=/models/x\nbash -s <<EOF\nexec python -m sglang.launch_server --model-path $M --port 30000\nEOF",
    'export A=1 B=2\nenv -i C=3 PATH="$PATH" DUMP="$DUMP" vllm serve /m --max-model-len 4096',
    "export A=1\nenv -u A -u B D='x y' vllm serve /m",
    "srun -N 1 --gres=gpu:8 --export=ALL,NCCL_ALGO=Tree -p batch python -m sglang.launch_server --model-path /m --tp 8",
    "docker compose -f docker/compose.yml run --rm -e VLLM_USE_V1=1 -p 8000:8000 llm vllm serve /m --port 8000",
    "docker exec -it -e X=1 box bash -lc 'vllm serve /m --tensor-parallel-size 4 > /tmp/log 2>&1'",
    "tmux new -d 'CUDA_VISIBLE_DEVICES=0,1 vllm serve /m --tensor-parallel-size 2 2>&1 | tee log'",
    "tmux new-session -d -s srv -- vllm serve /m --served-model-name 'a  b'",
    "screen -dmS sgl bash -c 'cd /tmp && python -m sglang.launch_server --model-path /m --port 1234'",
    "sudo -E -u ml HF_HOME=/hf /usr/bin/env vllm serve /m",
    "bash -lc \"source ~/.bashrc; vllm serve /m --chat-template '{{ x }}' --port 8001\"",
    "bash -eo pipefail -c 'vllm serve /m | tee log'",
    "# baseline, no draft\nvllm serve /m \\\n  --seed 0 # not --seed 1\n# vllm serve /other",
    "nohup vllm serve /m --port 8000 > serve.log 2>&1 & sleep 0.1 && true",
    "(cd /tmp && CUDA_VISIBLE_DEVICES=3 vllm serve /m --seed 2) 2>&1 | tee -a log",
    "ARGS=(--model-path '/a b' --tp 2)\nARGS+=(--port 30000)\n"
    'python -m sglang.launch_server "${ARGS[@]}" --log-level info',
    "while true; do vllm serve /m --port 9000; break; done",
    'if [ -z "$NOPE" ]; then vllm serve /m --seed 4; else vllm serve /n; fi',
    "set -a\nNCCL_DEBUG=WARN\nset +a\nQUIET=1\nvllm serve /m",
    "nsys profile -o run --trace=cuda python -m sglang.launch_server --model-path /m --port 30000",
    "{ time vllm serve /m --seed 6; } 2> times",
    "eval \"vllm serve /m --served-model-name 'x y'\"",
    'sh -c "exec vllm serve /m --override-generation-config \'{\\"temperature\\": 0}\'"',
    "numactl -N 0 -m 0 -- llama-server -m /m/a.gguf -c 4096 -np 4",
    "VLLM_USE_V1=1 \\\n  nohup \\\n  nice -n 10 \\\n  vllm serve /m &",
    "timeout -k 5 3600 stdbuf -oL -eL python -u -m vllm.entrypoints.openai.api_server --model /m",
    "uv run --with vllm -- vllm serve /m --port 8008",
    "vllm serve /m --port=8000 <<< 'unused' >/dev/null",
    "export HF_HOME=/hf; unset HF_HOME; export B='$(not run)'; vllm serve /m --seed 1",
]
SKIP = (
    "while [ $# -gt 0 ]; do case $1 in {values}) shift 2 ;; --) shift; break ;; -*) shift ;; *) break ;; esac; done\n"
)
RUNNERS = {
    "sudo": SKIP.format(values="-u|-g") + 'exec env "$@"',
    "srun": SKIP.replace("-*)", "--export=*) for one in $(echo \"${{1#--export=}}\" | tr , ' '); do case $one in *=*) "
                         "export \"$one\" ;; esac; done; shift ;; -*)").format(values="-N|-n|-p|-c") + 'exec "$@"',
    "docker": 'shift; [ $1 = -f ] && shift 2; shift\n'.replace("shift; [", "[ $1 = compose ] && shift; [")
    + "while [ $# -gt 0 ]; do case $1 in -e) export \"$2\"; shift 2 ;; -p|-v|-w) shift 2 ;; -*) shift ;; *) break ;; "
      'esac; done\nshift; exec "$@"',
    "tmux": "shift\n" + SKIP.format(values="-s|-n|-t|-c") + 'if [ $# = 1 ]; then exec sh -c "$1"; else exec "$@"; fi',
    "screen": SKIP.format(values="-S|-dmS") + 'exec "$@"',
    "nsys": "shift\n" + SKIP.format(values="-o") + 'exec "$@"',
    "numactl": SKIP.format(values="-N|-m|-C") + 'exec "$@"',
    "uv": "shift\n" + SKIP.format(values="--with") + 'exec "$@"',
}  # fmt: skip


@pytest.mark.parametrize("text", WILD, ids=range(len(WILD)))
def test_the_wilder_ones_too(text: str, tmp_path: Path) -> None:
    # A login shell would set PATH anew, and miss the stubs.
    argv, env = what_bash_runs(text.replace("bash -lc", "bash -c"), tmp_path)
    found = import_command("HOME=/home/somebody\n" + text.replace('"$PATH"', "p").replace('"$DUMP"', "d"))
    assert list(found.argv) == argv
    own = {name: value for name, value in found.env.items() if value not in ("p", "d")}
    assert {name: env.get(name) for name in own} == own
    # Nothing that the shell handed over is lost, save what every shell has.
    usual = {"PATH", "HOME", "DUMP", "PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE", "LD_PRELOAD", "_STDBUF_O", "_STDBUF_E"}
    assert {name for name in env if name not in usual} <= {*own, *found.secrets}


def test_what_is_no_command_at_all_ends_quickly_and_in_one_line() -> None:
    for text in ("x=1\n" * 20000, "$(" * 5000, "bash -c " * 500, "'", "vllm serve /m " + "a" * 300_000,
                 "\0vllm serve /m", "vllm serve /m \0", "bash <<EOF\n" * 50 + "vllm serve", "((((" * 1000,
                 "A=(" * 9000):  # fmt: skip
        start_s = time.monotonic()
        with contextlib.suppress(BadInputError):
            import_command(text)
        assert time.monotonic() - start_s < 10


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
        "source /opt/venv/bin/activate; cd /srv/run\nHF_TOKEN=hf_abc NCCL_ALGO=Tree python -m sglang.launch_server "
        "--model-path /m --speculative-draft-model-path /d --tp 8 --mem-fraction-static 0.85 --api-key sk-123 "
        "--host 0.0.0.0 --port 30000 --cuda-graph-bs 1 2 4 --disable-radix-cache > out.log 2>&1 &"
    )
    assert (found.engine, found.model, found.draft_model, found.port, found.bind) == (
        "sglang", "/m", "/d", 30000, "0.0.0.0",
    )  # fmt: skip
    assert found.args == {
        "tp": 8, "mem_fraction_static": 0.85, "cuda_graph_bs": [1, 2, 4], "disable_radix_cache": True,
    }  # fmt: skip
    assert (found.environment, found.working_dir, found.log_path) == ("/opt/venv", "/srv/run", "out.log")
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
