"""What servers do, seen without any product code: their HTTP answers and counters, and /proc."""

from __future__ import annotations

import http.client
import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.leaks import command_of
from tests.support.waiting import all_pids, environ_of, is_alive

PROMPT = "draft target token verify accept reject step batch"


def get(port: int, path: str, *, timeout_s: float = 20.0, key: str = "") -> tuple[int, str]:
    """(status, body); status 0 when nothing came."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return 0, ""


def complete(port: int, tokens: int, *, model: str = "tiny", timeout_s: float = 300.0, prompt: str = PROMPT) -> int:
    """Tokens that a greedy request brought, by the server's own `usage`."""
    body = {"model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=timeout_s) as answer:
        shape: dict[str, Any] = json.loads(answer.read())
    return int(shape["usage"]["completion_tokens"])


def open_stream(port: int, tokens: int, *, model: str = "tiny") -> socket.socket:
    """A streaming request that is under way: its first event has come. Read it on or close it."""
    body = json.dumps(
        {"model": model, "prompt": PROMPT, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True}
    ).encode()
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    connection = socket.create_connection(("127.0.0.1", port), timeout=120)
    connection.sendall(head + body)
    seen = b""
    while b"data:" not in seen:
        part = connection.recv(4096)
        assert part, f"the stream ended before its first event: {seen[:300]!r}"
        seen += part
    return connection


def counters(port: int, *, key: str = "") -> dict[str, float]:
    """The metrics page, summed over labels, by whole name."""
    found: dict[str, float] = {}
    for line in get(port, "/metrics", key=key)[1].splitlines():
        if line and not line.startswith("#"):
            name = line.split("{")[0].split(" ")[0]
            found[name] = found.get(name, 0.0) + float(line.rsplit(" ", 1)[1])
    return found


def accept_length(engine: str, before: Mapping[str, float], after: Mapping[str, float]) -> float:
    """Tokens per target step, bonus token included, from the server's own counters."""
    moved = {name: value - before.get(name, 0.0) for name, value in after.items()}
    if engine == "sglang":
        # No counter of accepted tokens in 0.5.17: tokens of all requests by verify steps.
        steps = moved["sglang:spec_verify_calls_total"]
        return moved["sglang:generation_tokens_total"] / steps
    prefix = {"vllm": "vllm:", "llamacpp": "llamacpp:"}[engine]
    drafts = moved[f"{prefix}spec_decode_num_drafts_total"]
    return 1 + moved[f"{prefix}spec_decode_num_accepted_tokens_total"] / drafts


def left_of(launch_id: str, session: int | None = None) -> dict[int, str]:
    """Living processes that carry the launch's mark, or are in the session that it led."""
    found = {}
    for pid in all_pids():
        marked = environ_of(pid).get(b"SPECCONSOLE_LAUNCH") == launch_id.encode()
        if (marked or (session is not None and _session_of(pid) == session)) and is_alive(pid):
            found[pid] = command_of(pid)[:120]
    return found


def _session_of(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[3])
    except (OSError, IndexError, ValueError):
        return None


def pids_named(launch_id: str, *words: str) -> list[int]:
    """Processes of the launch whose title holds one of the words."""
    return [pid for pid, command in left_of(launch_id).items() if any(word in command for word in words)]


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition: Callable[[], bool], timeout_s: float, what: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}"
        time.sleep(0.05)
