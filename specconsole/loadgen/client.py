"""Carries out a plan: point after point, each request on a kept connection, every answer into the records.

Finished streams go to the record-writing child as raw pieces, so that decoding never delays the time stamp of a stream
that is still running. The garbage collector is off while a point runs: nothing here makes cycles, and its pauses would
be read as latency.
"""

from __future__ import annotations

import gc
import os
import platform
import signal
import socket
import time
from typing import Any, Dict, List, Optional, Tuple

from .beside import Beside
from .loop import Loop
from .pace import Pace
from .plan import Plan, Point, Probe, read_bodies
from .records import RecordPipe
from .wire import Exchange, Response, build_request

PROGRESS_EVERY_S = 1.0
LOOK_EVERY_S = 0.1
GONE_AFTER_S = 5.0
"""A server that refuses every connection for so long is not there any more."""
STARTS_A_TURN = 4
"""A burst is started a few at a time, so that the first answers are not stamped behind the last start."""
Sent = Tuple[Exchange, int, bool, Optional[float], Optional[int]]
"""The exchange, its body's line, whether it warms up, when it was due, how long the server's log was then."""


class Client:
    """One run. `cancel` may come from a signal handler at any moment."""

    def __init__(self, plan: Plan, records: RecordPipe) -> None:
        self.plan = plan
        self.records = records
        self.cancelled: Optional[str] = None
        self.bodies = read_bodies(plan)
        self.headers = plan.headers()
        self.address = (socket.gethostbyname(plan.host) if ":" not in plan.host else plan.host, plan.port)
        self.zero_s = time.perf_counter()
        self.loop = Loop()
        self.idle: List[socket.socket] = []
        self.counts: Dict[str, int] = {}
        self.sampling: Optional[Exchange] = None
        self.beside = Beside(plan.beside, plan.beside_every_s) if plan.beside else None
        self.point_index = 0
        self.refused_since_s: Optional[float] = None

    def cancel(self, reason: str) -> None:
        self.cancelled = self.cancelled or reason

    def run(self) -> int:
        """0: the plan was carried out; 3: cancelled or out of time (what was measured is kept)."""
        self.records.write(
            "run",
            version=1,
            client_host=platform.node(),
            client_pid=os.getpid(),
            python=platform.python_version(),
            cpu_count=os.cpu_count(),
            wall_s=time.time(),
            api=self.plan.api,
            points=[dict(p.label, concurrency=p.concurrency, rate_per_s=p.rate_per_s) for p in self.plan.points],
            planned_requests=[None if p.requests is None else p.requests for p in self.plan.points],
        )
        for index, point in enumerate(self.plan.points):
            if self.cancelled:
                break
            if index in self.plan.skipped():
                self.records.write("skipped", point=index, at_s=self._now())
                continue
            self._run_point(index, point)
        self._close_idle()
        self.loop.close()
        reason = self.cancelled or "done"
        self.records.write("end", reason=reason, at_s=self._now(), wall_s=time.time())
        return 0 if self.cancelled is None else 3

    def _now(self) -> float:
        return round(time.perf_counter() - self.zero_s, 6)

    def _run_point(self, index: int, point: Point) -> None:
        for probe in self.plan.before_point:
            self._probe_now(index, "prepare", probe)
        for probe in self.plan.snapshot:
            self._probe_now(index, "before", probe)
        self.records.write("point", point=index, at_s=self._now(), wall_s=time.time(), label=point.label)
        self.point_index = index
        self.counts = {}
        self.loop.reset_load()
        gc.disable()
        cpu_start_s, start_s = time.process_time(), time.perf_counter()
        pace = Pace(point, start_s)
        live: Dict[Exchange, Sent] = {}
        next_tick_s = start_s + PROGRESS_EVERY_S
        next_sample_s = start_s
        next_look_s = start_s
        if self.beside is not None:
            self.beside.again()
        next_check_s = start_s
        drain_until_s: Optional[float] = None
        log_from: Optional[int] = None
        while True:
            now_s = time.perf_counter()
            started = pace.started
            if log_from is None and pace.window_start_s is not None:
                log_from = self._log_bytes()
            self._start_what_may(pace, point, live, now_s)
            if pace.over(now_s):
                break
            if self.cancelled is None and now_s - self.zero_s > self.plan.deadline_s:
                self.cancel("deadline")
            if self.cancelled is not None and drain_until_s is None:
                pace.stop(now_s)
                drain_until_s = now_s
            if now_s >= next_check_s or drain_until_s is not None:
                next_check_s = now_s + 0.05
                self._enforce_limits(live, pace, index, now_s, drain_until_s)
            if self.beside is not None and pace.window_start_s is not None and now_s >= next_look_s:
                next_look_s = now_s + LOOK_EVERY_S
                self._beside(index, self.beside.look(now_s))
            if now_s >= next_tick_s:
                next_tick_s = now_s + PROGRESS_EVERY_S
                self._progress(index, point, pace, start_s)
            if self.plan.sample is not None and self.sampling is None and now_s >= next_sample_s:
                next_sample_s = now_s + self.plan.sample.every_s
                self.sampling = self._open(self.plan.sample.method, self.plan.sample.path, self.plan.sample.body, [])
                if self.sampling.state == "failed":
                    self._sampled(index, self.sampling)
                else:
                    self.loop.add(self.sampling)
            # Its own last look at the time is `now_s`; what is due by then must not wait for the loop's return.
            until_s = now_s if pace.started > started else min(now_s + pace.wait_s(now_s), next_check_s)
            if self.plan.sample is not None and self.sampling is None:
                until_s = min(until_s, next_sample_s)
            for exchange in self.loop.serve(until_s):
                if exchange is self.sampling:
                    self._sampled(index, exchange)
                else:
                    self._ended(exchange, live, pace)
            self.records.flush_some()
        measured_s = time.perf_counter() - start_s
        cpu_s = time.process_time() - cpu_start_s
        gc.enable()
        self._drop_sampling()
        if self.beside is not None:
            self._beside(index, self.beside.wait())
        self._end_point(index, pace, measured_s, cpu_s, log_from)
        for probe in self.plan.snapshot:
            self._probe_now(index, "after", probe)

    def _start_what_may(self, pace: Pace, point: Point, live: Dict[Exchange, Sent], now_s: float) -> None:
        log_from: Optional[int] = None
        for _ in range(STARTS_A_TURN):
            number = pace.started
            turn = pace.take(now_s)
            if turn is None:
                return
            warmup, scheduled_s = turn
            if log_from is None:
                log_from = self._log_bytes()
            body_index = (point.first + number) % len(self.bodies)
            exchange = self._open("POST", self.plan.path, self.bodies[body_index], self.idle)
            live[exchange] = (exchange, body_index, warmup, scheduled_s, log_from)
            if exchange.state == "failed":
                self._ended(exchange, live, pace)
            else:
                self.loop.add(exchange)

    def _open(self, method: str, path: str, body: bytes, idle: List[socket.socket]) -> Exchange:
        payload = build_request(method, path, self.headers, body)
        sock = idle.pop() if idle else None
        return self.plan.exchange(sock, self.address, payload)

    def _ended(self, exchange: Exchange, live: Dict[Exchange, Sent], pace: Pace) -> None:
        sent = live.pop(exchange)
        if exchange.reused and exchange.error == "reset" and not exchange.pieces and self.cancelled is None:
            # A kept connection that the server had closed meanwhile: no fault of the request. Sent again, once.
            exchange.close()
            body = self.bodies[sent[1]]
            again = self._open("POST", self.plan.path, body, [])
            live[again] = (again, *sent[1:])
            if again.state == "failed":
                self._ended(again, live, pace)
            else:
                self.loop.add(again)
            return
        pace.ended(sent[2], time.perf_counter())
        if exchange.state == "done" and exchange.keep_alive:
            self.idle.append(exchange.sock)
        else:
            exchange.close()
        self._record(self.point_index, sent)
        name = "warmup" if sent[2] else ("failed" if exchange.error else "ended")
        self.counts[name] = self.counts.get(name, 0) + 1
        if exchange.error in ("refused", "connect-failed"):
            now_s = time.perf_counter()
            self.refused_since_s = self.refused_since_s or now_s
            if now_s - self.refused_since_s > GONE_AFTER_S:
                self.cancel("server-died")
            time.sleep(0.05)  # nobody there: do not spin, and do not use the plan up on it
        elif exchange.error != "reset":
            self.refused_since_s = None

    def _enforce_limits(
        self, live: Dict[Exchange, Sent], pace: Pace, index: int, now_s: float, drain_until_s: Optional[float]
    ) -> None:
        plan = self.plan
        for exchange in list(live):
            if drain_until_s is not None and now_s >= drain_until_s:
                exchange.abort("cancelled", self.cancelled or "")
            elif exchange.state == "connecting" and now_s - exchange.started_s > plan.connect_timeout_s:
                exchange.abort("connect-timeout", "%.0f s" % plan.connect_timeout_s)
            elif now_s - exchange.started_s > plan.request_timeout_s:
                exchange.abort("timeout", "%.0f s for the whole request" % plan.request_timeout_s)
            elif now_s - exchange.last_s > plan.stall_timeout_s:
                exchange.abort("stall", "no byte for %.0f s" % plan.stall_timeout_s)
            else:
                continue
            self.loop.remove(exchange)
            self._ended(exchange, live, pace)

    def _record(self, index: int, sent: Sent) -> None:
        exchange, body_index, warmup, scheduled_s, log_from = sent

        def since(moment_s: Optional[float]) -> Optional[float]:
            return None if moment_s is None else round(moment_s - self.zero_s, 6)

        fields = {
            "point": index,
            "body": body_index,
            "warmup": warmup,
            "scheduled_s": since(scheduled_s),
            "started_s": since(exchange.started_s),
            "sent_s": since(exchange.sent_s),
            "end_s": since(exchange.last_s),
            "reused_connection": exchange.reused,
            "error": exchange.error,
            "detail": exchange.detail,
            "log_from": log_from,
            "log_to": self._log_bytes(),
            "response_bytes": sum(len(piece) for _, piece in exchange.pieces),
        }
        if exchange.pieces:
            fields["base_s"] = exchange.sent_s if exchange.sent_s is not None else exchange.started_s
            fields["zero_s"] = self.zero_s
        self.records.write_request(fields, exchange.pieces)
        exchange.pieces = []

    def _progress(self, index: int, point: Point, pace: Pace, start_s: float) -> None:
        self.records.write(
            "progress",
            point=index,
            at_s=self._now(),
            point_s=round(time.perf_counter() - start_s, 3),
            in_flight=pace.in_flight,
            started=pace.started,
            planned=None if point.requests is None else point.requests + point.warmup,
            duration_s=point.duration_s,
            **{name: self.counts.get(name, 0) for name in ("ended", "failed", "warmup")},
        )

    def _log_bytes(self) -> Optional[int]:
        try:
            return None if self.plan.log_file is None else os.stat(self.plan.log_file).st_size
        except OSError:
            return None

    def _end_point(self, index: int, pace: Pace, measured_s: float, cpu_s: float, log_from: Optional[int]) -> None:
        for at_s, length_s in self.loop.stalls:
            self.records.write("stall", point=index, at_s=round(at_s - self.zero_s, 6), seconds=round(length_s, 6))

        def since(moment_s: Optional[float]) -> Optional[float]:
            return None if moment_s is None else round(moment_s - self.zero_s, 6)

        fields: Dict[str, Any] = {
            "wall_s": round(measured_s, 6),
            "cpu_s": round(cpu_s, 6),
            "busy_s": round(self.loop.busy_s, 6),
            "socket_events": self.loop.events,
            "stamped_by": self.loop.stamped_by,
            "lag_p50_s": self.loop.lag_s(0.50),
            "lag_p99_s": self.loop.lag_s(0.99),
            "lag_max_s": self.loop.lag_max_s,
            "stalled_s": round(sum(length for _, length in self.loop.stalls), 6),
            "window_start_s": since(pace.window_start_s),
            "window_end_s": since(pace.window_end_s),
            "cancelled": self.cancelled,
            "log_from": log_from,
            "log_to": self._log_bytes(),
        }
        self.records.write("point-end", point=index, at_s=self._now(), **fields, **pace.figures())

    def _sampled(self, index: int, exchange: Exchange) -> None:
        self.sampling = None
        exchange.close()
        assert self.plan.sample is not None
        self._write_probe("sample", index, "during", self.plan.sample, exchange)

    def _beside(self, index: int, came: Optional[Tuple[Optional[int], bytes]]) -> None:
        if came is not None:
            status, text = came
            self.records.write(
                "beside", point=index, at_s=self._now(), status=status, output=text.decode("utf-8", "replace")
            )

    def _drop_sampling(self) -> None:
        if self.sampling is not None:
            self.loop.remove(self.sampling)
            self.sampling.close()
            self.sampling = None

    def _probe_now(self, index: int, when: str, probe: Probe) -> None:
        """A probe outside the load, waited for; its failure is a record, not an end."""
        exchange = self._open(probe.method, probe.path, probe.body, [])
        if exchange.state != "failed":
            self.loop.add(exchange)
            limit_s = time.perf_counter() + 30.0
            while exchange.state not in ("done", "failed") and self.cancelled is None:
                if time.perf_counter() > limit_s:
                    exchange.abort("timeout", "30 s")
                    break
                self.loop.serve(time.perf_counter() + 0.05)
            self.loop.remove(exchange)
        exchange.close()
        self._write_probe("snapshot", index, when, probe, exchange)

    def _write_probe(self, kind: str, index: int, when: str, probe: Probe, exchange: Exchange) -> None:
        response = Response(exchange.pieces)
        body = response.body.decode("utf-8", "replace")
        if probe.keep:
            body = "\n".join(line for line in body.splitlines() if any(word in line for word in probe.keep))
        self.records.write(
            kind,
            point=index,
            when=when,
            at_s=self._now(),
            path=probe.path,
            status=response.status,
            error=exchange.error,
            body=body[:1_000_000],
        )

    def _close_idle(self) -> None:
        for sock in self.idle:
            sock.close()
        self.idle = []


def install_signals(client: Client) -> None:
    """TERM and INT end the run early; the file is whole at every moment."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: client.cancel("cancelled"))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
