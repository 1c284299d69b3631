"""A real llama.cpp server as a child of the test, on models that the demo's generator wrote."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specconsole.demo.models import ModelFiles
from tests.support.waiting import free_port, is_alive, wait_until

MODULE = "specconsole.demo.llama_server"


def llama_argv(models: ModelFiles, port: int, *extra: str, draft: bool = True) -> list[str]:
    """The command line that starts one; also what a profile or a launcher under test is to run."""
    argv = [sys.executable, "-m", MODULE, "--model", str(models.target), "--port", str(port)]
    if draft:
        argv += ["--draft", str(models.draft)]
    return [*argv, *extra]


class LlamaServer:
    """One server process; its log (stdout and stderr) is the file `log`."""

    def __init__(self, models: ModelFiles, folder: Path, *extra: str, draft: bool = True) -> None:
        self.port = free_port()
        self.argv = llama_argv(models, self.port, *extra, draft=draft)
        self.log = folder / f"llama-{self.port}.log"
        with self.log.open("wb") as sink:
            # A session of its own, as a launcher would start it: a signal to the test's group passes it by.
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def log_bytes(self) -> bytes:
        return self.log.read_bytes()

    def health(self) -> int | None:
        """The status of GET /health; None while nothing answers."""
        try:
            return self.request("GET", "/health")[0]
        except (OSError, http.client.HTTPException):
            return None

    def wait_ready(self, timeout_s: float = 60.0) -> LlamaServer:
        def ready() -> bool:
            assert self.process.poll() is None, f"ended with {self.process.returncode}: {self.log_bytes()!r}"
            return self.health() == 200

        wait_until(ready, timeout_s=timeout_s, what="llama.cpp answers 200")
        return self

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, str]:
        """One request of our own, by the standard library: status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            payload = None if body is None else json.dumps(body)
            connection.request(method, path, payload, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read().decode()

    def complete(self, prompt: str = "the draft", tokens: int = 32, **more: Any) -> dict[str, Any]:
        """A greedy completion; llama.cpp's own JSON with `content` and `timings`."""
        status, text = self.request(
            "POST", "/completion", {"prompt": prompt, "n_predict": tokens, "temperature": 0, **more}
        )
        assert status == 200, text
        answer: dict[str, Any] = json.loads(text)
        return answer

    def counters(self) -> dict[str, float]:
        """/metrics as {name with labels: value}, parsed without the product's parser: the witness."""
        lines = self.request("GET", "/metrics")[1].splitlines()
        return {
            name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[:1] not in ("#", ""))
        }

    def stop(self) -> int:
        """TERM, then KILL after a while; the exit status."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
        status = self.process.wait(10)
        assert not is_alive(self.pid)
        return status


def stop_all(servers: Sequence[LlamaServer]) -> None:
    for server in servers:
        server.stop()
