"""The output: one JSON object a line, appended, so that a reader can follow the file and a cut run keeps its lines.

`kind` is one of: `run` (first line: what was asked, this client's identity and clocks), `snapshot` (a probe before
or after a point), `sample` (a probe under load), `beside` (what a command beside the load printed), `point` (a point
begins), `request` (one request, measured or warm-up), `progress` (once a second), `stall` (the client itself was held
up), `point-end` (the client's own figures), `skipped` (a point that was no longer wanted), `end` (why it ended). All
times `*_s` are seconds since the run began on this client's monotonic clock.

Lines are written by a child process: it takes finished streams apart (JSON costs more than receiving), so that the
loop that stamps arrivals never does. `RecordPipe` is the loop's end; it never blocks the loop.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import marshal
import os
import signal
import struct
import sys
from collections import deque
from typing import Any, Deque, Dict, List, Optional

from .stream import TokenStream, read_stream
from .wire import Response

HEADER = struct.Struct("<I")
PIPE_BYTES = 1 << 20
CHILD_NICE = 5


class RecordPipe:
    """Sends records to the writing child in order; what does not fit into the pipe waits in memory."""

    def __init__(self, path: str, keep_text: bool) -> None:
        # Opened here, so that a path that can't be written is an error of the start (OSError).
        out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        read_end, self._fd = os.pipe()
        self._waiting: Deque[memoryview] = deque()
        self.child_pid = os.fork()
        if self.child_pid == 0:
            os.close(self._fd)
            status = 1
            try:
                # The parent ends the run; this process lives until the pipe does, whatever the group is sent.
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                    signal.signal(number, signal.SIG_IGN)
                _step_back()
                status = _write_records(read_end, out, keep_text)
            finally:
                sys.stderr.flush()
                os._exit(status)
        os.close(read_end)
        os.close(out)
        os.set_blocking(self._fd, False)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with contextlib.suppress(OSError):  # over the user's pipe quota: the default size works too
                fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def write(self, kind: str, **fields: Any) -> None:
        self._send(({"kind": kind, **fields}, None))

    def write_request(self, fields: Dict[str, Any], pieces: Optional[List[Any]]) -> None:
        """A finished exchange: its fields, and its pieces for the child to read."""
        self._send(({"kind": "request", **fields}, pieces))

    def flush_some(self) -> None:
        """Writes what the pipe takes now. Raises BrokenPipeError when the child is gone."""
        while self._waiting:
            try:
                sent = os.write(self._fd, self._waiting[0])
            except BlockingIOError:
                return
            if sent == len(self._waiting[0]):
                self._waiting.popleft()
            else:
                self._waiting[0] = self._waiting[0][sent:]

    def close(self) -> bool:
        """Waits until everything is on disk; False when the child failed."""
        try:
            os.set_blocking(self._fd, True)
            self.flush_some()
        except BrokenPipeError:
            self._waiting.clear()
        os.close(self._fd)
        _, status = os.waitpid(self.child_pid, 0)
        return status == 0

    def _send(self, message: Any) -> None:
        data = marshal.dumps(message)
        self._waiting.append(memoryview(HEADER.pack(len(data)) + data))
        self.flush_some()


def _step_back() -> None:
    """Decoding can wait; what streams meanwhile, and the server, can't."""
    if hasattr(os, "SCHED_BATCH"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    os.nice(CHILD_NICE)


def _write_records(read_end: int, out: int, keep_text: bool) -> int:
    """The child: until the pipe ends. Each line goes out with one write; a full disk ends with status 1."""
    tokens: Dict[int, int] = {}
    with os.fdopen(read_end, "rb", buffering=PIPE_BYTES) as source:
        while True:
            header = source.read(HEADER.size)
            if len(header) < HEADER.size:
                return 0
            data = source.read(HEADER.unpack(header)[0])
            if len(data) < HEADER.unpack(header)[0]:
                return 0  # the parent died in the middle of a message: what came before stands
            record, pieces = marshal.loads(data)  # noqa: S302 - our own parent wrote it
            if pieces:
                stream = read_stream(Response(pieces))
                add_stream(record, stream, keep_text)
                tokens[record["point"]] = tokens.get(record["point"], 0) + (stream.completion_tokens or 0)
            if record["kind"] == "progress":
                record["tokens"] = tokens.get(record["point"], 0)
            line = memoryview((json.dumps(record, separators=(",", ":")) + "\n").encode())
            try:
                while line:
                    line = line[os.write(out, line) :]
            except OSError as error:
                sys.stderr.write("loadgen: records can't be written: %s\n" % error)
                return 1


def add_stream(record: Dict[str, Any], stream: TokenStream, keep_text: bool) -> None:
    """Adds what a response was to its request record.

    `events` is a flat list: microseconds after the request was sent, tokens (or null), and so on, one pair for each
    content event. `error` stays null for a whole answer; a failed request keeps what arrived.
    """
    base_s = record.pop("base_s")
    zero_s = record.pop("zero_s")
    events: List[Optional[int]] = []
    for at_s, count in stream.events:
        events.append(round((at_s - base_s) * 1e6))
        events.append(count)
    if record["error"] is None or (record["error"] == "truncated" and stream.error not in (None, "truncated")):
        record["error"], record["detail"] = stream.error, stream.detail
    record.update(
        events=events,
        first_event_s=round(stream.events[0][0] - zero_s, 6) if stream.events else None,
        prompt_tokens=stream.prompt_tokens,
        completion_tokens=stream.completion_tokens,
        cached_tokens=stream.cached_tokens,
        tokens_from=stream.tokens_from,
        finish_reason=stream.finish_reason,
        spec=stream.spec,
        text_sha256=stream.text_sha256,
    )
    if keep_text:
        record["text"] = stream.text
