"""The server process of the demo behaves as llama-server does: statuses, log, signals."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from specconsole.demo.models import ModelFiles
from tests.support.fixtures_servers import StartLlama
from tests.support.llama import LlamaServer, llama_argv
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


def test_it_answers_with_a_draft_and_ends_with_0_on_term(llama: LlamaServer) -> None:
    slots = json.loads(llama.request("GET", "/slots")[1])
    assert [slot["speculative"] for slot in slots] == [True, True]
    assert json.loads(llama.request("GET", "/props")[1])["total_slots"] == 2
    answer = llama.complete(tokens=32)
    assert answer["timings"]["predicted_n"] == 32
    assert 0 < answer["timings"]["draft_n_accepted"] <= answer["timings"]["draft_n"]
    assert b"draft acceptance = " in llama.log_bytes()
    assert llama.stop() == 0
    assert llama.log_bytes().endswith(b"main loop exited\n")


def test_503_before_200_and_term_while_loading_ends_it_at_once(
    start_llama: StartLlama, slow_llama_models: ModelFiles
) -> None:
    server = start_llama(models=slow_llama_models, ready=False)
    wait_until(lambda: server.health() is not None or server.process.poll() is not None, what="the port is open")
    assert server.health() == 503
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(10) == -signal.SIGTERM


def test_a_stream_that_is_read_keeps_it_alive_after_term(start_llama: StartLlama) -> None:
    """As llama-server: the port closes at once, the process waits for the client."""
    server = start_llama("--ctx-size", "8192")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    body = json.dumps({"prompt": "river", "n_predict": 1_000_000, "stream": True, "ignore_eos": True})
    connection.request("POST", "/completion", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    response.read(100)
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: server.health() is None, what="the port is closed")
    assert server.process.poll() is None
    response.close()
    connection.close()
    assert server.process.wait(20) == 0


@pytest.mark.parametrize(
    ("flags", "tell_tale"),
    [
        (["--model", "/nowhere/none.gguf"], b"failed to open GGUF file '/nowhere/none.gguf'"),
        (["--draft", "/nowhere/draft.gguf"], b"failed to load draft model, '/nowhere/draft.gguf'"),
    ],
)
def test_a_missing_model_ends_it_with_1(llama_models: ModelFiles, flags: list[str], tell_tale: bytes) -> None:
    ended = subprocess.run([*llama_argv(llama_models, 0), *flags], capture_output=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert tell_tale in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_a_held_port_ends_it_with_1(llama_models: ModelFiles) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        ended = subprocess.run(llama_argv(llama_models, port), capture_output=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert b"couldn't bind HTTP server socket" in ended.stderr


def test_a_cut_model_file_ends_it_with_1(llama_models: ModelFiles, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(llama_models.target.read_bytes()[:-100_000])
    ended = subprocess.run(
        [*llama_argv(llama_models, 0), "--model", str(cut)], capture_output=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    assert b"model is corrupted or incomplete" in ended.stderr
