"""A reading as text for a person: where it is, when it will answer, why it died, what was just before."""

from __future__ import annotations

from specconsole.core.reading.model import START_PHASES, EtaRange, Failure, Progress, Reading, TimelineEntry

_UNITS = {"shard": "shards", "graph": "graphs", "byte": "bytes", "file": "files", "token": "tokens", "item": "items"}
_MAX_WARNINGS = 12
_MAX_TIMELINE = 40


def describe(reading: Reading, *, width: int = 100, colour: bool = False) -> str:
    """Everything that the reading says, most important first."""
    paint = _Paint(colour)
    blocks = [
        [paint.bold(_headline(reading))],
        _state(reading, paint),
        _failure(reading.failure, "failed", width, paint) if reading.failure else [],
        _failure(reading.suspect, "suspect", width, paint) if reading.suspect else [],
        _metrics(reading),
        _warnings(reading, width, paint),
        _timeline(reading, paint),
        _ranks(reading),
        [paint.dim(_size(reading))],
    ]
    return "\n".join("\n".join(block) for block in blocks if block)


def one_line(reading: Reading) -> str:
    """Where it is now, for following."""
    what = _phase_name(reading.phase, reading.part)
    if reading.failure is not None:
        where = f" (line {reading.failure.line_no})" if reading.failure.line_no else ""
        return f"failed: {reading.failure.failure_class}{where}: {_cut(reading.failure.line or 'no cause stated', 160)}"
    parts = [what]
    if reading.progress is not None:
        parts.append(_progress(reading.progress))
    if reading.ready_eta_s is not None:
        parts.append(f"answers in {span(reading.ready_eta_s)}")
    if reading.stalled:
        parts.append(f"stalled: {reading.stall_reason}" if reading.stall_reason else "stalled")
    metrics = reading.metrics
    if reading.phase == "serving" and metrics is not None:
        parts.extend(_metric_words(reading))
    return " · ".join(parts)


class _Paint:
    def __init__(self, colour: bool) -> None:
        self._on = colour

    def bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self._on else text

    def dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self._on else text

    def bad(self, text: str) -> str:
        return f"\x1b[1;31m{text}\x1b[0m" if self._on else text

    def warn(self, text: str) -> str:
        return f"\x1b[33m{text}\x1b[0m" if self._on else text


def _headline(reading: Reading) -> str:
    server = reading.server
    name = reading.engine if not server.version else f"{reading.engine} {server.version}"
    words = [name]
    if server.model:
        words.append(server.model)
    if server.draft_model:
        words.append(f"draft {server.draft_model}")
    elif server.args.get("speculative_algorithm"):
        words.append(f"speculation {server.args['speculative_algorithm']}")
    for key, short in (("tp_size", "TP"), ("dp_size", "DP"), ("pp_size", "PP"), ("ep_size", "EP")):
        size = server.args.get(key)
        if isinstance(size, int) and size > 1:
            words.append(f"{short} {size}")
    if server.port is not None:
        words.append(f"port {server.port}")
    return " · ".join(words)


def _state(reading: Reading, paint: _Paint) -> list[str]:
    lines = []
    if reading.failure is None:
        line = _phase_name(reading.phase, reading.part)
        if reading.phase == "ready":
            served = any(entry.phase == "serving" for entry in reading.timeline)
            line += " (idle again)" if served else " (the server's own word; nothing was asked of it)"
        if reading.progress is not None:
            line += f"  {_progress(reading.progress)}"
        lines.append(line)
    if reading.ready_eta_s is not None:
        lines.append(f"answers in {span(reading.ready_eta_s)}  (basis: {reading.ready_eta_s.basis})")
    elif reading.phase in START_PHASES and reading.failure is None:
        lines.append(paint.dim("when it answers is not known: no earlier start of this kind to go by"))
    if reading.silent_s is not None and reading.silent_s >= 2:
        lines.append(f"silent for {clock(reading.silent_s)}")
    if reading.stalled:
        lines.append(paint.warn(f"stalled: {reading.stall_reason or 'no progress for longer than usual'}"))
    return lines


def _progress(progress: Progress) -> str:
    if progress.unit == "percent":
        text = f"{progress.done} %"
    else:
        total = "" if progress.total is None else f"/{_amount(progress.total, progress.unit)}"
        text = f"{_amount(progress.done, progress.unit)}{total} {_UNITS.get(progress.unit, progress.unit)}"
    if progress.rate_per_s:
        rate = progress.rate_per_s
        if progress.unit == "byte":
            text += f", {size(rate)}/s"
        elif rate >= 0.5:
            text += f", {rate:.3g} {progress.unit}/s"
        else:
            text += f", {1 / rate:.3g} s per {progress.unit}"
    if progress.eta_s is not None:
        text += f", {span(progress.eta_s)} more in this phase (basis: {progress.eta_s.basis})"
    return text


def _failure(failure: Failure | None, title: str, width: int, paint: _Paint) -> list[str]:
    if failure is None:
        return []
    where = f" in {_phase_name(failure.in_phase, failure.in_part)}" if failure.in_phase else ""
    rank = f", {failure.rank}" if failure.rank else ""
    lines = ["", paint.bad(f"{title}: {failure.failure_class}{where}{rank}")]
    if failure.before:
        lines.append("  just before:")
        lines.extend(paint.dim(f"    {_cut(text, width - 4)}") for text in failure.before[-5:])
    if failure.line is not None:
        lines.append(f"  {'cause' if title == 'failed' else 'said'}, line {failure.line_no}:")
        lines.extend(f"    {paint.bold(text)}" for text in _wrapped(failure.line, width - 4, 6))
    else:
        lines.append("  no line states a cause")
    if failure.messenger:
        lines.append(paint.dim(f"  passed on by: {_cut(failure.messenger, width - 16)}"))
    if failure.advice is not None:
        lines.append("  what to try:")
        lines.extend(f"    {text}" for text in _wrapped(failure.advice.text, width - 4, 8))
        lines.extend(f"    set {key} = {value}" for key, value in (failure.advice.set or {}).items())
    return lines


def _metric_words(reading: Reading) -> list[str]:
    metrics = reading.metrics
    words: list[str] = []
    if metrics is None:
        return words
    if metrics.accept_length is not None:
        words.append(f"accept length {metrics.accept_length:.2f}")
    if metrics.gen_throughput_tok_s is not None:
        words.append(f"{metrics.gen_throughput_tok_s:.1f} tok/s")
    if metrics.running is not None:
        words.append(f"{metrics.running} running")
    if metrics.queued is not None:
        words.append(f"{metrics.queued} queued")
    if metrics.kv_usage is not None:
        words.append(f"KV {100 * metrics.kv_usage:.1f} %")
    return words


def _metrics(reading: Reading) -> list[str]:
    words = _metric_words(reading)
    return ["", "last full window: " + " · ".join(words)] if words else []


def _warnings(reading: Reading, width: int, paint: _Paint) -> list[str]:
    if not reading.warnings:
        return []
    lines = ["", "warnings:"]
    for warning in reading.warnings[:_MAX_WARNINGS]:
        head = f"  line {warning.line_no}  {warning.warning_class}  "
        lines.append(paint.warn(head) + _cut(warning.text, max(20, width - len(head))))
    if len(reading.warnings) > _MAX_WARNINGS:
        lines.append(f"  and {len(reading.warnings) - _MAX_WARNINGS} more")
    return lines


def _timeline(reading: Reading, paint: _Paint) -> list[str]:
    entries = reading.timeline
    if len(entries) < 2:
        return []
    longest = max((entry.seconds or 0.0 for entry in entries if entry.phase in START_PHASES), default=0.0)
    lines = ["", paint.dim("  from start      took   line  phase")]
    shown = entries if len(entries) <= _MAX_TIMELINE else (*entries[: _MAX_TIMELINE - 10], *entries[-10:])
    lines.extend(_timeline_row(entry, longest) for entry in shown)
    if len(shown) < len(entries):
        lines.insert(2 + _MAX_TIMELINE - 10, f"  ... {len(entries) - len(shown)} more ...")
    return lines


def _timeline_row(entry: TimelineEntry, longest: float) -> str:
    start = "?" if entry.start_s is None else clock(entry.start_s)
    took = "?" if entry.seconds is None else clock(entry.seconds, fine=True)
    name = _phase_name(entry.phase, entry.part)
    again = f" ({entry.count} times)" if entry.count > 1 else ""
    bar = ""
    if entry.phase in START_PHASES and entry.seconds and longest:
        bar = "  " + "▪" * max(1, round(20 * entry.seconds / longest))
    return f"  {start:>10} {took:>9} {entry.line_no:>6}  {name + again:<24}{bar}".rstrip()


def _ranks(reading: Reading) -> list[str]:
    """Only where ranks differ: who is behind."""
    ranks = reading.ranks
    if len(ranks) < 2:
        return []
    groups: dict[str, list[str]] = {}
    for rank in ranks:
        groups.setdefault(rank.phase, []).append(rank.rank)
    if len(groups) < 2:
        return ["", f"{len(ranks)} ranks, all in {next(iter(groups))}"]
    return ["", "ranks:"] + [f"  {phase}: {', '.join(names[:16])}" for phase, names in groups.items()]


def _size(reading: Reading) -> str:
    start = f", start {reading.starts} of {reading.starts}" if reading.starts > 1 else ""
    tail = ", from its tail alone" if reading.basis == "tail" else ""
    return f"\n{reading.lines:,} lines, {size(reading.bytes)}{start}{tail}"


# ------------------------------------------------------------------ words and numbers


def _phase_name(phase: str | None, part: str | None) -> str:
    return f"{phase} ({part})" if part else str(phase)


def _amount(value: int, unit: str) -> str:
    return size(value) if unit == "byte" else str(value)


def span(eta: EtaRange) -> str:
    """`12 to 18 s`, `7 to 9 min`: as fine as it is known."""
    low, high = eta.low, eta.high
    if high < 1:
        return "under 1 s"
    if high < 90:
        first, last = f"{low:.0f}", f"{high:.0f}"
        return f"{first} to {last} s" if first != last else f"{last} s"
    if high < 5400:
        first, last = f"{low / 60:.0f}", f"{high / 60:.0f}"
        if low < 60:
            return f"{low:.0f} s to {last} min"
        return f"{first} to {last} min" if first != last else f"{last} min"
    return f"{clock(low)} to {clock(high)} h"


def clock(seconds: float, *, fine: bool = False) -> str:
    """`0:25`, `12:40`, `1:02:03`; `fine` shows tenths below ten seconds."""
    if fine and seconds < 10:
        return f"{seconds:.1f} s"
    whole = int(seconds + 0.5)
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def size(value: float) -> str:
    """Bytes with a decimal prefix."""
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(1, width - 1)] + "…"


def _wrapped(text: str, width: int, limit: int) -> list[str]:
    import textwrap

    lines = textwrap.wrap(text, max(20, width), break_long_words=True) or [""]
    return lines if len(lines) <= limit else [*lines[: limit - 1], _cut(lines[limit - 1] + " …", width)]
