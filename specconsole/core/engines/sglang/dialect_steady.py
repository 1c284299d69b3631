"""Which decode and prefill lines of a busy SGLang make a difference, found without decoding them.

A server under load prints little else, by the million. `Serving` keeps the last `KEPT_WINDOWS` windows of a rank,
whether idle time came before each, and whether requests are being worked on. So of a run of work without a pause
only the first line, the first decode line, the last few decode lines and the last line matter, and of a run of
health probes the first and the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from specconsole.core.reading.events import Prefill, Window
from specconsole.core.reading.prefilter import LOOK, NOTHING, SteadyRead
from specconsole.core.reading.serving import IDLE_GAP_S, KEPT_WINDOWS
from specconsole.core.reading.stamps import of_clock, of_date

_WORK, _PROBE = 1, 2
# `[2026-11-29 14:13:08 DP0 TP0] Decode batch, #running-req: 8, ...`
_STAMP_BYTES = 20
_MAX_PREFIX_BYTES = 120


class _Rank:
    """What one rank did in the present run."""

    __slots__ = ("decodes", "first", "first_decode", "last", "second", "stamp", "state")

    def __init__(self) -> None:
        self.state = 0
        self.stamp = b""
        self.second = 0
        self.clear()

    def clear(self) -> None:
        self.first = -1
        self.first_decode = -1
        self.last = -1
        self.decodes: list[int] = []

    def kept(self) -> list[int]:
        return [self.first, self.first_decode, *self.decodes[-KEPT_WINDOWS:], self.last]


class SteadyLines:
    """See `core.reading.prefilter.Steady`."""

    template = re.compile(rb"\] (?:Decode|Prefill) batch(?: \[\])?[.,] #(?:running-req|new-seq): ")

    def thin(self, lines: list[bytes], kinds: list[int]) -> list[int]:
        chosen: list[int] = []
        ranks: dict[bytes, _Rank] = {}
        for i, kind in enumerate(kinds):
            if kind == NOTHING:
                continue
            if kind == LOOK:
                _flush(ranks, chosen)
                chosen.append(i)
                continue
            line = lines[i]
            begin = 0 if line[:3] == b"[20" else line.find(b"[20", 0, _MAX_PREFIX_BYTES)
            end = line.find(b"] ", begin + _STAMP_BYTES, begin + _MAX_PREFIX_BYTES) if begin >= 0 else -1
            if end < 0:
                # No date, or a wrapper of an unknown length: every line counts.
                _flush(ranks, chosen)
                chosen.append(i)
                ranks.clear()
                continue
            name = line[begin + _STAMP_BYTES : end]
            rank = ranks.get(name)
            if rank is None:
                rank = ranks[name] = _Rank()
            empty = b"#running-req: 0," in line
            if line[end + 2] == 68:  # D: a decode line
                if empty or rank.state != _WORK:
                    _flush(ranks, chosen)
                    chosen.append(i)
                    rank.state = 0 if empty else _WORK
                else:
                    if rank.first < 0:
                        rank.first = i
                    if rank.first_decode < 0:
                        rank.first_decode = i
                    rank.decodes.append(i)
                    rank.last = i
                rank.stamp = line[begin + 1 : begin + _STAMP_BYTES]
                continue
            if empty and b"#new-token: 1," in line and b"#cached-token: 0," in line:
                if rank.state == _PROBE:
                    rank.last = i
                    if rank.first < 0:
                        rank.first = i
                else:
                    _flush(ranks, chosen)
                    chosen.append(i)
                    rank.state = _PROBE
                continue
            stamp = line[begin + 1 : begin + _STAMP_BYTES]
            if rank.state != _WORK or (empty and stamp != rank.stamp and _pause(rank.stamp, stamp)):
                _flush(ranks, chosen)
                chosen.append(i)
                rank.state = _WORK
            else:
                if rank.first < 0:
                    rank.first = i
                rank.last = i
            rank.stamp = stamp
        _flush(ranks, chosen)
        return chosen

    def read(self, raw: bytes) -> SteadyRead | None:
        if raw[:3] != b"[20" or raw[11:12] != b" " or not raw.isascii() or b"\x1b" in raw:
            return None
        end = raw.find(b"] ", 20, _MAX_PREFIX_BYTES)
        name = raw[20:end]
        if end < 0 or b"[" in raw[end:] or (name and name[:1] != b" "):
            return None
        rank = name[1:].decode() or None
        if rank is not None and "PP" in rank:
            return None
        text = raw[end + 2 :]
        fields = dict(_pairs(text))
        try:
            stamp = of_date(int(raw[1:5]), int(raw[6:8]), int(raw[9:11]), of_clock(raw[12:20].decode()))
            kv_text = fields.get(b"token usage", fields.get(b"full token usage"))
            kv_usage = None if kv_text is None else float(kv_text)
            running = int(fields[b"#running-req"])
            queued_text = fields.get(b"#queue-req")
            queued = None if queued_text is None else int(queued_text)
            group = _group(rank)
            event: Window | Prefill
            if text[:1] == b"D":
                accept, rate = fields.get(b"accept len"), fields.get(b"gen throughput (token/s)")
                event = Window(
                    None if accept is None else float(accept),
                    None if rate is None else float(rate),
                    running,
                    queued,
                    kv_usage,
                    group,
                )
            else:
                tokens = int(fields[b"#new-token"]) + (1 if float(fields.get(b"#cached-token", b"0")) > 0 else 0)
                event = Prefill(tokens, running, queued, kv_usage, group)
        except (KeyError, ValueError):
            return None
        return SteadyRead(rank, "sglang", stamp, event)


def _pairs(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """`Decode batch, #running-req: 8, #token: 620, ...` to its keys and values."""
    for piece in text.rstrip().rstrip(b",").split(b", ")[0 if text[12:13] == b"." else 1 :]:
        key, colon, value = piece.rpartition(b": ")
        if colon:
            yield key.rpartition(b". ")[2], value


def _group(rank: str | None) -> str:
    if rank is None or "DP" not in rank:
        return ""
    return next((part for part in rank.split(" ") if part[:2] == "DP"), "")


def _pause(before: bytes, stamp: bytes) -> bool:
    """Whether so much time lies between two stamps that the server may have been idle; True when in doubt."""
    if before[:16] != stamp[:16]:
        return True
    try:
        return abs(int(stamp[17:19]) - int(before[17:19])) >= int(IDLE_GAP_S)
    except ValueError:
        return True


def _flush(ranks: dict[bytes, _Rank], chosen: list[int]) -> None:
    """The lines of the run that matter, of all ranks, in their order."""
    picked: set[int] = set()
    for rank in ranks.values():
        if rank.last >= 0:
            picked.update(rank.kept())
            rank.clear()
    if picked:
        picked.discard(-1)
        chosen += sorted(picked)
