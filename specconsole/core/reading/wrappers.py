"""Peels off what container run-times, schedulers, log shippers and Ray put around a server's line.

Wrappers nest (journald around docker around Ray around vLLM), so peeling goes on until nothing fits. What cannot
be named but stands in front of a server's own unmistakable prefix is peeled too and remembered by its shape, so
that the lines of a traceback behind the same wrapper lose it as well.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from specconsole.core.reading.prefixes import Prefix, peel, syslog_stamp
from specconsole.core.reading.stamps import Stamp, of_clock, of_date
from specconsole.core.reading.text import clean_text

_MAX_LAYERS = 8
_MAX_GLUED = 64
_ALONE = 3
"""Depth at which a piece is not cut any more."""


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """A server's message and what its wrappers and its own prefix said."""

    text: str
    whole: str
    """The line without wrappers, with the server's own prefix."""
    form: str = ""
    level: str = ""
    rank: str | None = None
    source: str = ""
    stamp: Stamp | None = None
    stamp_source: str = ""
    """Which writer's clock `stamp` is on: the form, or the wrapper's name."""
    tags: tuple[str, ...] = ()
    """Process tags, outermost first: `vLLMHttpServer`, `Worker_TP0`."""


@dataclass(slots=True)
class Layers:
    """What is known of the line while it is peeled."""

    stamp: Stamp | None = None
    stamp_source: str = ""
    level: str = ""
    rank: str | None = None
    task: str | None = None
    """The job step's task, where nothing nearer to the server names a rank."""
    tags: list[str] = field(default_factory=list)


_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
# CRI (containerd, cri-o): `2025-06-01T10:00:00.123456789Z stderr F [2025-06-01 10:00:00 TP0] Load weight begin.`
_CRI = re.compile(rf"({_ISO}) (?:stdout|stderr) [FP] ?(.*)", re.DOTALL)
# `kubectl logs --timestamps`, `docker logs -t`, GitHub Actions: a stamp with T and zone in front of the line.
_ISO_FIRST = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d))(?: (.*)|$)", re.DOTALL)
# Job platforms: `[2025-12-19T10:05:41+08:00] job-a-head-0 >> text`
_JOB = re.compile(rf"\[({_ISO})\] (?:[\w.\-/]+ (?:>>|>|\||:) ?)(.*)", re.DOTALL)
_JOB_BARE = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)\] ?(.*)", re.DOTALL)
# `kubectl logs --prefix`: `[pod/sglang-0/server] text`
_POD = re.compile(r"\[pod/[\w.\-]+/[\w.\-]+\] ?(.*)", re.DOTALL)
# docker compose: `triton-models-1    | text`. One word, then the bar (a tqdm bar has text or digits before it).
_COMPOSE = re.compile(r"([A-Za-z][\w.\-]*?)\s*\| ?(.*)", re.DOTALL)
# journald short and syslog: `Nov 29 14:05:01 gpu-a sglang[123]: text`, with micros (short-precise), `<30>` before
_JOURNAL = re.compile(
    r"(?:<\d{1,3}>)?([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d(?:\.\d+)?) [\w.\-]+ [\w.\-@\\/]+(?:\[\d+\])?: ?(.*)",
    re.DOTALL,
)
# journald short-iso, rsyslog: `2026-11-29T14:05:01+0000 gpu-a sglang[123]: text`
_JOURNAL_ISO = re.compile(rf"({_ISO}) [\w.\-]+ [\w.\-@\\/]+\[\d+\]: ?(.*)", re.DOTALL)
# Ray actors and vLLM's process tags: `(SGLangEngine pid=3342) `, `(RayWorkerWrapper pid=5, ip=10.0.0.1) `,
# `(EngineCore_DP0 pid=123) `, `(VllmWorker rank=0 pid=301) `, `(Worker_TP0 pid=7)`, `(APIServer pid=1) `
_TAG = re.compile(r"\(([A-Za-z_][\w.:\-<>]*)((?:,? \w+=[\w.:\-]+)+)\) ?(.*)", re.DOTALL)
_TAG_PID = re.compile(r"pid=(\d+)")
_TAG_RANK = re.compile(r"rank=(\d+)")
_RAYLET = re.compile(r"\((?:raylet|autoscaler[^)]*)(?:, ip=[\w.:]+)?\) ?(.*)", re.DOTALL)
_REPEATED = re.compile(r"\s*\[repeated \d+x across cluster\](?: \(Ray deduplicates logs by default.*\))?\s*$")
# torch elastic, torchrun --tee, mpirun --tag-output: `[rank0]: text`, `[default0]:text`, `[1,0]<stderr>:text`
_RANKED = re.compile(r"\[(?:rank|default)(\d+)\]:? ?(.*)", re.DOTALL)
_MPI = re.compile(r"\[\d+,(\d+)\]<std(?:out|err)>: ?(.*)", re.DOTALL)
# srun --label: `0: text`, ` 12: text`
_SRUN = re.compile(r" {0,5}(\d{1,5}):(?: (.*)|$)", re.DOTALL)
# Numbered: `cat -n` (blanks, number, TAB that became blanks), `grep -n` (`12:[2025-...`), `nl`, `less -N`
_NUMBERED = re.compile(r"(?=[ \d]{6}) {0,6}\d{1,9} {4}(.*)|(?: {0,6}\d{1,9} {2,8})(?=[\[({A-Z])(.*)", re.DOTALL)
_GREP_N = re.compile(
    r"\d{1,9}[:\-](?=\[\d|\(\w+ pid=|(?:INFO|WARNING|ERROR|DEBUG)(?: \d\d-|: {4})|\d+\.\d\d\.\d{3}\.\d{3} )(.*)",
    re.DOTALL,
)
# pdsh, clush, deepspeed: `node-1: text`, only in front of what is surely a server's line.
_HOST = re.compile(
    r"[\w.\-]{2,63}: (?=\[\d{4}-|\(\w+ pid=|(?:INFO|WARNING|ERROR|DEBUG)(?: \d\d-|: {4}))(.*)", re.DOTALL
)
# A server's own prefix that nothing else looks like: where it stands inside a line, what is before is not its text.
STRONG = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?: [A-Z][A-Z_]*\d+)*\] "
    r"|\[\d\d:\d\d:\d\d(?: [A-Z][A-Z_]*\d+)+\] "
    r"|(?:DEBUG|INFO|WARNING|ERROR) (?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \[?[\w./\-]+:\d+\] "
    r"|\((?:EngineCore|Worker|APIServer|VllmWorker|RayWorker|vLLM|SGLang|ApiServer|DPCoordinator)[\w\-]*(?: rank=\d+)? pid=\d+[^)]{0,40}\) "
    r"|(?<![\w.])\d+\.\d\d\.\d{3}\.\d{3} [IWED] "
)
# Without any of these no strong prefix stands inside a line.
_SECOND_SIGNS = (" pid=", "INFO ", "WARNING ", "ERROR ", "DEBUG ", " I ", " W ", " E ", " D ", "cluster]")
_WRAPPER_ENDS = (" ", "|", ">", "]", ":", ")", "#", "-")
_QUOTES = ("'", '"', "`")


@dataclass(slots=True)
class Shapes:
    """Shapes of wrappers that were met in front of strong prefixes in this file; part of a checkpoint."""

    seen: list[str] = field(default_factory=list)

    def learn(self, prefix: str) -> None:
        """Remembers a wrapper by its letters, with numbers free."""
        shape = re.sub(r"\d+", r"\\d+", re.escape(prefix))
        if shape not in self.seen and len(self.seen) < 24:
            self.seen.append(shape)

    def strip(self, text: str) -> str:
        """`text` without a wrapper of a known shape."""
        for shape in self.seen:
            if m := re.match(shape, text):
                return text[m.end() :]
        return text


def unwrap(text: str, shapes: Shapes) -> list[Unwrapped]:
    """The messages in one clean line; several where JSON holds line ends or lines were glued together."""
    if text.startswith("[20") and (plain := _plain_sglang(text)) is not None:
        return [plain]
    found: list[Unwrapped] = []
    _peel_all(text, Layers(), shapes, found, 0)
    return found


def _plain_sglang(text: str) -> Unwrapped | None:
    """The commonest line by far, without a second look: SGLang's own prefix and nothing else that is strong."""
    if text[5:6] != "-" or text[11:12] != " " or any(sign in text for sign in _SECOND_SIGNS) or "[20" in text[20:]:
        return None
    prefix = peel(text)
    if prefix is None or prefix.form not in ("sglang", "uvicorn"):
        return None
    rest, form, level = prefix.text, prefix.form, prefix.level
    if rest[:1] in "[({ " or rest[:1].isdigit():
        return None
    if form == "sglang" and ": " in rest[:10] and (inner := peel(rest)) is not None:
        if inner.form != "uvicorn":
            return None
        rest, level = inner.text, inner.level
    return Unwrapped(rest, text, form, level, prefix.rank, "", prefix.stamp, form)


def _peel_all(text: str, layers: Layers, shapes: Shapes, found: list[Unwrapped], depth: int) -> None:
    prefix: Prefix | None = None
    for _ in range(_MAX_LAYERS):
        if text[:1] == "{" and depth < 3 and (inner := _json_line(text)) is not None:
            _peel_json(inner, layers, shapes, found, depth + 1)
            return
        rest = _peel_wrapper(text, layers)
        if rest is None:
            break
        text = rest
    text = _REPEATED.sub("", text) if text.endswith((")", "cluster]")) else text
    for _ in range(_MAX_GLUED):
        at = _inner_prefix(text)
        if not at or not _cut(text[:at], layers, shapes, found, depth):
            break
        text = text[at:]
    if shapes.seen and not STRONG.match(text):
        text = shapes.strip(text)
    whole = text
    form, level, source = "", layers.level, ""
    stamp, stamp_source, rank = layers.stamp, layers.stamp_source, layers.rank
    for _ in range(3):
        prefix = peel(text)
        if prefix is None:
            break
        if prefix.text == text:
            break
        form = prefix.form if not form or prefix.form != "uvicorn" else form
        level = prefix.level or level
        source = prefix.source or source
        rank = prefix.rank or rank
        if prefix.stamp is not None:
            stamp, stamp_source = prefix.stamp, prefix.form
        text = prefix.text
        if _TAG.match(text) or _RANKED.match(text):
            rest = _peel_wrapper(text, layers)
            text = text if rest is None else rest
            rank = layers.rank or rank
    if rank is None:
        rank = layers.tags[-1] if layers.tags else layers.task
    found.append(Unwrapped(text, whole, form, level, rank, source, stamp, stamp_source, tuple(layers.tags)))


def _inner_prefix(text: str) -> int:
    """Where a server's own prefix stands inside the line; 0 for nowhere. A prefix right behind another is nested."""
    if "[" not in text and not any(sign in text for sign in _SECOND_SIGNS):
        return 0
    end = 0
    for found in STRONG.finditer(text):
        if found.start() > end:
            return found.start()
        end = found.end()
    return 0


def _cut(before: str, layers: Layers, shapes: Shapes, found: list[Unwrapped], depth: int) -> bool:
    """What stands before a server's own prefix inside a line: a wrapper is dropped and learned, anything else (a bar,
    another rank's line without its end) is a line of its own. False where the prefix is only quoted."""
    if _is_wrapper(before) and not peel(before):
        shapes.learn(before)
        return True
    if before.rstrip().endswith(("(", "[", "=", ":", *_QUOTES)):
        return False
    if depth < _ALONE:
        _peel_all(before.rstrip(), replace(layers, tags=list(layers.tags)), shapes, found, _ALONE)
    return True


def _is_wrapper(text: str) -> bool:
    """A few short words and a sign, no sentence and no quotation."""
    return (
        len(text) <= 120
        and text.endswith(_WRAPPER_ENDS)
        and len(text.split()) <= 3
        and "%" not in text
        and not any(quote in text for quote in _QUOTES)
    )


def _peel_wrapper(text: str, layers: Layers) -> str | None:
    """One wrapper less, or None when none fits."""
    first = text[:1]
    if first == "[":
        return _peel_bracketed(text, layers)
    if first == "(":
        if m := _TAG.match(text):
            name, pairs, rest = m.groups()
            rank = _TAG_RANK.search(pairs)
            pid = _TAG_PID.search(pairs)
            if rank:
                layers.rank = f"rank {rank[1]}"
            elif pid is None:
                return None
            tag = (
                name if any(c.isdigit() for c in name) or not name.startswith("Ray") or not pid else f"{name} {pid[1]}"
            )
            layers.tags.append(tag)
            return str(rest)
        if m := _RAYLET.match(text):
            return m[1]
        return None
    if first.isdigit() or first == " ":
        return _peel_numbered(text, layers)
    if first.isalpha() or first == "<":
        if (m := _JOURNAL.match(text)) and (stamp := syslog_stamp(m[1], m[2], m[3])):
            layers.stamp, layers.stamp_source = stamp, "journal"
            return m[4]
        if " |" in text[:80] and (m := _COMPOSE.match(text)) and text[m.end(1) :].lstrip().startswith("|"):
            return m[2]
        if m := _HOST.match(text):
            return m[1]
    return None


def _peel_bracketed(text: str, layers: Layers) -> str | None:
    if (m := _JOB.match(text)) or (m := _JOB_BARE.match(text)):
        layers.stamp, layers.stamp_source = _iso(m[1]), "job"
        return m[2]
    if m := _POD.match(text):
        return m[1]
    if m := _RANKED.match(text):
        layers.rank = f"rank {m[1]}"
        return m[2]
    if m := _MPI.match(text):
        layers.rank = f"rank {m[1]}"
        return m[2]
    return None


def _peel_numbered(text: str, layers: Layers) -> str | None:
    if (m := _CRI.match(text)) or (m := _JOURNAL_ISO.match(text)):
        layers.stamp, layers.stamp_source = _iso(m[1]), "container"
        return m[2]
    if m := _ISO_FIRST.match(text):
        # Rust tracing looks the same up to the level: leave its own prefix to `peel`, unless it peels nothing.
        own = peel(text)
        if own is None or (own.form == "python" and not own.level):
            layers.stamp, layers.stamp_source = _iso(m[1]), "container"
            return m[2] or ""
        return None
    if m := _GREP_N.match(text):
        return m[1]
    if m := _NUMBERED.match(text):
        return m[1] if m[1] is not None else m[2]
    if (m := _SRUN.match(text)) and not (m[2] or "").startswith(("error", "%")):
        layers.task = f"task {m[1]}"
        return m[2] or ""
    return None


def _iso(text: str) -> Stamp:
    clock = re.sub(r"(?:Z|[+-]\d\d:?\d\d)$", "", text[11:])
    return of_date(int(text[0:4]), int(text[5:7]), int(text[8:10]), of_clock(clock))


def _json_line(text: str) -> dict[str, Any] | None:
    if text[-1:] != "}":
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# docker json-file `{"log":...,"stream":...,"time":...}`, NIM `{"level","time","file_path","line_number","message"}`,
# llama.cpp --log-jsonl `{"type":"log","time":us,"level":"info","msg":...}`, journald -o json `MESSAGE`, structlog `event`
_MESSAGE_KEYS = ("message", "msg", "log", "MESSAGE", "event", "text", "textPayload")
_JSON_LEVELS = {"warn": "WARNING", "err": "ERROR", "fatal": "CRITICAL", "i": "INFO", "w": "WARNING", "e": "ERROR"}


def _peel_json(value: dict[str, Any], layers: Layers, shapes: Shapes, found: list[Unwrapped], depth: int) -> None:
    # Rust's tracing as JSON (TGI, routers): `{"timestamp":...,"level":"INFO","fields":{"message":"Starting shard"},
    # "target":"text_generation_launcher"}`
    fields = value["fields"] if isinstance(value.get("fields"), dict) else value
    message = next((fields[key] for key in _MESSAGE_KEYS if isinstance(fields.get(key), str)), None)
    if message is None:
        return
    target = value.get("target")
    if fields is not value and isinstance(target, str) and target.startswith("text_generation"):
        message = f"{target[:80]}: {message}"  # as it stands in the plain form of the same log
    level = value.get("level") or value.get("levelname") or value.get("severity")
    if isinstance(level, str):
        layers.level = _JSON_LEVELS.get(level.lower(), level.upper()[:12])
    when = next((value[k] for k in ("time", "timestamp", "asctime", "ts", "@timestamp") if k in value), None)
    if isinstance(when, str) and re.match(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d", when):
        layers.stamp, layers.stamp_source = _iso(when[:26].rstrip("Z")), "json"
    elif isinstance(when, str) and (m := re.match(r"(\d\d)-(\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)", when)):
        layers.stamp, layers.stamp_source = of_date(0, int(m[1]), int(m[2]), of_clock(m[3])), "json"
    elif isinstance(when, int | float) and value.get("type") == "log":
        layers.stamp, layers.stamp_source = Stamp("run", when / 1e6), "json"
    for piece in str(message)[:65536].replace("\r", "\n").split("\n"):
        text = clean_text(piece)
        if text:
            _peel_all(text, replace(layers, tags=list(layers.tags)), shapes, found, depth)
