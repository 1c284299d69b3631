"""What `specconsole logs --probe` prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from specconsole.core.launching.toml_place import nearest
from specconsole.core.reading.probe_series import Series, sampled
from specconsole.errors import NotFoundError

_BARS = "▁▂▃▄▅▆▇█"
_CELLS = 60


def chosen(series: Sequence[Series], names: Sequence[str]) -> list[Series]:
    """Those that were asked for; `all` is every one. Raises NotFoundError."""
    known = {one.name: one for one in series}
    if not known:
        raise NotFoundError("its profile has no probes", try_="a table [probes] in the profile (docs/profiles.md)")
    if "all" in names and "all" not in known:
        return list(series)
    for name in names:
        if name not in known:
            close = nearest(name, known)
            hint = f"did you mean {close}?" if close else f"one of {', '.join(known)}, or all"
            raise NotFoundError(f"its profile has no probe {name}", try_=hint)
    return [known[name] for name in dict.fromkeys(names)]


def series_lines(series: Sequence[Series], *, as_json: bool) -> list[str]:
    """One line a number, or a bucket of them: name, seconds of the log, wall clock, byte, value, how many it is of."""
    if as_json:
        return [json.dumps({"probe": one.name, **asdict(bucket)}) for one in series for bucket in one.buckets]
    lines = ["probe\tlog_s\tat_s\tbyte\tvalue\tcount"]
    for one in series:
        for b in one.buckets:
            when = [f"{value:.3f}" if value is not None else "" for value in (b.log_s, b.at_s)]
            lines.append("\t".join([one.name, *when, str(b.offset), f"{b.mean:g}", str(b.count)]))
    return lines


def summary_line(series: Series) -> str:
    """`draft_ms: 412 numbers, mean 12.4, last 11.9  ▁▂▂▃▇`."""
    odd = f", {series.unreadable} lines without a number" if series.unreadable else ""
    if series.mean is None or series.last is None:
        return f"{series.name}: nothing was read{odd}"
    return f"{series.name}: {series.count} numbers, mean {series.mean:g}, last {series.last:g}{odd}  {spark(series)}"


def spark(series: Series) -> str:
    """A line of bars from the least to the most."""
    values = sampled(series, _CELLS)
    low, high = min(values), max(values)
    span = high - low
    return "".join(_BARS[min(7, int((value - low) / span * 8))] if span else _BARS[3] for value in values)
