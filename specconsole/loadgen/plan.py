"""What a run is to do: read from one JSON file, checked before anything is sent.

```json
{"version": 1, "host": "127.0.0.1", "port": 30000, "api": "completions", "auth_file": null,
 "requests": "requests.jsonl", "snapshot": [{"method": "GET", "path": "/metrics", "keep": ["spec_decode"]}],
 "before_point": [{"method": "POST", "path": "/flush_cache"}],
 "sample": {"method": "GET", "path": "/metrics", "keep": ["num_requests"], "every_s": 1.0},
 "beside": {"argv": ["nvidia-smi", "--query-gpu=..."], "every_s": 5.0},
 "points": [{"concurrency": 4, "requests": 40, "warmup": 8, "first": 0}],
 "skip_file": "skip.json", "log_file": null, "host_header": null,
 "tls": {"server_name": "gpu7.example", "ca_file": "ca.pem"},
 "connect_timeout_s": 5, "stall_timeout_s": 60, "request_timeout_s": 600, "deadline_s": 3600}
```

`tls` is left out for plain HTTP; without a `ca_file` the system's authorities count. `host_header` is what the server
is called where it is reached by another address (a tunnel).

Every line of the requests file is one request body, sent as it stands (the model's name, `stream` and the sampling
are in it). A point takes the lines from `first` on, warm-up first, and starts again at line 0 when they run out.
"""

from __future__ import annotations

import functools
import json
import os
import socket
from typing import Any, Callable, Dict, List, Optional, Tuple

from .wire import Exchange

PATHS = {
    "completions": "/v1/completions",
    "chat": "/v1/chat/completions",
    "generate": "/generate",
    "completion": "/completion",
}
"""API name to path: OpenAI's two, SGLang's native one, llama.cpp's native one."""


class PlanError(Exception):
    """The plan can't be carried out; the text names the key."""


class Probe:
    """A request beside the load: a metrics page, a cache flush."""

    def __init__(self, raw: Dict[str, Any], where: str) -> None:
        self.method = str(raw.get("method", "GET"))
        self.path = str(_need(raw, "path", where))
        self.body = str(raw.get("body", "")).encode()
        self.keep: List[str] = [str(word) for word in raw.get("keep", [])]
        """Only lines that hold one of these words are recorded; all lines when empty."""
        self.every_s = float(raw.get("every_s", 1.0))


class Point:
    """One measurement: closed loop (`concurrency`) or open loop (`rate_per_s`), by requests or by duration."""

    def __init__(self, raw: Dict[str, Any], where: str) -> None:
        self.concurrency: Optional[int] = _whole(raw, "concurrency", where)
        self.rate_per_s: Optional[float] = None if raw.get("rate_per_s") is None else float(raw["rate_per_s"])
        if (self.concurrency is None) == (self.rate_per_s is None):
            raise PlanError("%s: exactly one of concurrency and rate_per_s" % where)
        if self.rate_per_s is not None and self.rate_per_s <= 0:
            raise PlanError("%s.rate_per_s: must be positive" % where)
        self.requests: Optional[int] = _whole(raw, "requests", where)
        self.duration_s: Optional[float] = None if raw.get("duration_s") is None else float(raw["duration_s"])
        if self.requests is None and self.duration_s is None:
            raise PlanError("%s: requests or duration_s is needed" % where)
        self.warmup = _whole(raw, "warmup", where, least=0) or 0
        if self.concurrency is not None and 0 < self.warmup < self.concurrency:
            raise PlanError("%s.warmup: at least the concurrency (%d)" % (where, self.concurrency))
        self.first = _whole(raw, "first", where, least=0) or 0
        self.seed = int(raw.get("seed", 0))
        self.max_in_flight = _whole(raw, "max_in_flight", where) or 4096
        self.label: Dict[str, Any] = dict(raw.get("label", {}))


class Plan:
    """A checked plan; raises PlanError or OSError."""

    def __init__(self, raw: Dict[str, Any], folder: str) -> None:
        if raw.get("version") != 1:
            raise PlanError("version: this client reads version 1, the plan says %r" % (raw.get("version"),))
        self.host = str(_need(raw, "host", "plan"))
        self.port = _whole(raw, "port", "plan") or 0
        self.api = str(_need(raw, "api", "plan"))
        if self.api not in PATHS:
            raise PlanError("api: %r is none of %s" % (self.api, ", ".join(sorted(PATHS))))
        self.path = str(raw.get("path") or PATHS[self.api])
        self.auth_file: Optional[str] = raw.get("auth_file")
        self.auth_once = bool(raw.get("auth_once", False))
        """Whether the key's file is removed as soon as it is read."""
        self.log_file: Optional[str] = raw.get("log_file")
        """The server's log on this host: its size at both ends of each window is written down."""
        self.requests_file = os.path.join(folder, str(_need(raw, "requests", "plan")))
        self.snapshot = [Probe(p, "snapshot[%d]" % i) for i, p in enumerate(raw.get("snapshot", []))]
        self.before_point = [Probe(p, "before_point[%d]" % i) for i, p in enumerate(raw.get("before_point", []))]
        self.sample = Probe(raw["sample"], "sample") if raw.get("sample") else None
        beside = raw.get("beside") or {}
        self.beside: List[str] = [str(word) for word in beside.get("argv", [])]
        """A command to run beside the load; [] for none."""
        self.beside_every_s = float(beside.get("every_s", 5.0))
        self.points = [Point(p, "points[%d]" % i) for i, p in enumerate(_need(raw, "points", "plan"))]
        if not self.points:
            raise PlanError("points: empty")
        self.connect_timeout_s = float(raw.get("connect_timeout_s", 5.0))
        self.stall_timeout_s = float(raw.get("stall_timeout_s", 120.0))
        self.request_timeout_s = float(raw.get("request_timeout_s", 1800.0))
        self.deadline_s = float(raw.get("deadline_s", 86400.0))
        self.drain_s = float(raw.get("drain_s", 600.0))
        self.keep_text = bool(raw.get("keep_text", False))
        secured = raw.get("tls")
        self.exchange: Callable[[Optional[socket.socket], Tuple[str, int], bytes], Exchange] = Exchange
        """Makes one, over TLS where the plan wants it."""
        if secured is not None:
            self.exchange = _secured(str(secured.get("server_name") or self.host), secured.get("ca_file"), folder)
        self.host_header = str(raw.get("host_header") or "%s:%d" % (self.host, self.port))
        self._skip_file = os.path.join(folder, str(raw["skip_file"])) if raw.get("skip_file") else None

    def skipped(self) -> List[int]:
        """Points that are no longer wanted (repeats that need not be), as of now; a broken file skips nothing."""
        if self._skip_file is None:
            return []
        try:
            with open(self._skip_file, encoding="utf-8") as handle:
                wanted = json.load(handle)
        except (OSError, ValueError):
            return []
        return [n for n in wanted if isinstance(n, int)] if isinstance(wanted, list) else []

    def headers(self) -> bytes:
        """Request headers but for the content length; the key comes from a file, never from an argument."""
        lines = [
            "Host: " + self.host_header,
            "Content-Type: application/json",
            "Accept: text/event-stream",
            "Connection: keep-alive",
        ]
        if self.auth_file:
            with open(self.auth_file, encoding="utf-8") as handle:
                key = handle.read().strip()
            if self.auth_once:
                os.unlink(self.auth_file)
            if not key or any(ord(c) < 32 for c in key):
                raise PlanError("auth_file: %s holds no usable key" % self.auth_file)
            lines.append("Authorization: Bearer " + key)
        return ("\r\n".join(lines) + "\r\n").encode("latin-1")


def _secured(server_name: str, ca_file: Optional[str], folder: str) -> Callable[..., Exchange]:
    """Raises PlanError."""
    try:
        from .tls import Tls, TlsExchange

        tls = Tls(server_name, None if ca_file is None else os.path.join(folder, ca_file))
    except ImportError:
        raise PlanError("tls: this Python has no ssl module") from None
    except OSError as error:
        raise PlanError("tls.ca_file: %s: %s" % (ca_file, error)) from None
    return functools.partial(TlsExchange, tls=tls)


def read_plan(path: str) -> Plan:
    """Reads and checks a plan. Raises PlanError (what and which key) or OSError."""
    with open(path, encoding="utf-8") as handle:
        try:
            raw = json.load(handle)
        except ValueError as error:
            raise PlanError("%s: not JSON: %s" % (path, error)) from None
    if not isinstance(raw, dict):
        raise PlanError("%s: not an object" % path)
    try:
        return Plan(raw, os.path.dirname(os.path.abspath(path)))
    except (TypeError, ValueError) as error:
        raise PlanError("%s: %s" % (path, error)) from None


def read_bodies(plan: Plan) -> List[bytes]:
    """The request bodies, one a line. Raises PlanError naming file and line when one is not a JSON object."""
    bodies: List[bytes] = []
    with open(plan.requests_file, "rb") as handle:
        for number, line in enumerate(handle, 1):
            line = line.strip()
            if not line:
                continue
            try:
                body = json.loads(line)
            except ValueError:
                body = None
            if not isinstance(body, dict):
                raise PlanError("%s line %d: not a JSON object" % (plan.requests_file, number))
            bodies.append(line)
    if not bodies:
        raise PlanError("%s: no requests" % plan.requests_file)
    return bodies


def _need(raw: Dict[str, Any], key: str, where: str) -> Any:
    if raw.get(key) is None:
        raise PlanError("%s.%s: missing" % (where, key))
    return raw[key]


def _whole(raw: Dict[str, Any], key: str, where: str, least: int = 1) -> Optional[int]:
    value = raw.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise PlanError("%s.%s: a whole number of at least %d, not %r" % (where, key, least, value))
    return value
