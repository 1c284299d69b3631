"""Progress bars in a server's log: every update in a piece of clean text, as values.

Knows the bars that inference servers print (tqdm in its default form and in the form that SGLang and vLLM share,
hub downloads in bytes, bars without a total, bars that give only a percentage, Ollama's and TGI's own). Knows nothing
of time or phases; what a bar means for the time to come is the business of `eta`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

LITERALS: tuple[bytes, ...] = (
    b"%|", b"% Completed", b"it/s", b"s/it", b"B/s]", "% \u2595".encode(), b" -- ETA: ",
)  # fmt: skip
"""One of these stands in every line that holds a bar; lines without one need no look. (A bar of nothing but
`desc: 45%` has none of them: `find_bars` reads it where the caller has other reasons to decode the line.)"""

MAX_DESC_CHARS = 200
"""A description longer than this is a log line glued to the bar; only its end is looked at."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One update of one bar, as printed."""

    desc: str
    """What it counts, without the parts that change from update to update; "" for a bare bar."""
    done: int
    total: int | None
    """None where the bar has no total."""
    unit: str
    """`shard`, `graph`, `percent`, `byte`, `file`, `token` or `item` (nothing better is known)."""
    percent: int | None
    elapsed_s: float | None
    """The bar's own clock, whole seconds rounded down; None where it was not printed, or not printed whole."""
    remaining_s: float | None
    """The bar's own claim. Kept to be compared with, never to be shown: after a slow first item it is wrong by
    a factor of a thousand."""
    printed_rate_per_s: float | None
    """Units per second, `s/it` inverted; None for `?it/s`. tqdm smooths it (see `eta`)."""
    start: int
    """Offset in the text of the description's first character."""
    end: int
    finished: bool
    """False for a bar cut before its closing bracket."""
    tail: str = ""
    """What is glued behind it, up to the end of its line or to the next bar; "" if nothing."""


# A count: 22, 2.20G, 1.2k, 145M. No sign, no thousands separators (tqdm prints none). Bounded, so that a megabyte of
# digits costs linear time.
_COUNT = r"(?<![\d.])\d{1,15}(?:\.\d{1,3})?[kKMGTP]?"
# Elapsed and remaining: 00:12, 1:08:20, 1 day, 2:03:04 and 1d 02:03:04.
_SPAN = r"(?:\d{1,4}\s?d(?:ays?)?,?\s?)?(?:\d{1,12}:)?\d{1,2}:\d{2}"

# Multi-thread loading shards:  34% Completed | 22/64 [00:01<00:02, 19.3it/s]       SGLang 0.5.17, srt/utils/common.py
# Loading safetensors checkpoint shards:  63% Completed | 31/49 [10:02<05:33, 18.52s/it]
#                                              vLLM 0.10 to 0.33, model_executor/model_loader/weight_utils.py
# Capturing batches (bs=48 avail_mem=11.43 GB):   5%|▌  | 1/20 [00:01<00:20,  1.1s/it]   SGLang, tqdm's default form
# model-00001-of-00004.safetensors:  45%|████▌     | 2.20G/4.98G [00:12<00:15, 180MB/s]  huggingface_hub
# The head is optional: a line cut at the left starts anywhere. Cut at the right, the bracket is missing in parts.
_COUNTED = re.compile(
    r"(?:(?<!\d)(?P<pct>\d{1,3})%\s?(?:\|[^|\r\n\[]{0,300}\||\s*Completed\s\|)\s*)?"
    rf"(?P<done>{_COUNT})/(?P<total>{_COUNT}|\?)(?:it)?\s?"
    rf"\[(?:(?P<elapsed>{_SPAN})<(?:(?P<remaining>{_SPAN}|\?)(?P<rest>,\s*[^\]\r\n\[]{{0,300}})?)?)?(?P<close>\])?"
)

# The commonest forms of the above, whole: nearly every bar, at a fraction of the cost.
_COMMON = re.compile(
    r"(?<!\d)(\d{1,3})%(?:\|[^|\r\n\[]{0,100}\| | Completed \| )(\d{1,9})/(\d{1,9}) "
    r"\[(?:(\d{1,4}):)?(\d\d):(\d\d)<(?:([\d:]{5,18})|\?), +(?:(\d{1,9}(?:\.\d{1,2})?)(it/s|s/it)|\?it/s)\]"
)

# 12it [00:03,  3.41it/s]          tqdm without a total
# Downloading: 1.20GB [00:12, 98.3MB/s]
_UNCOUNTED = re.compile(
    rf"(?P<done>{_COUNT})(?P<unit>it|B|iB|[A-Za-z]{{2,12}})?\s"
    rf"\[(?P<elapsed>{_SPAN}),\s*(?P<rest>[^\]\r\n\[]{{1,300}})(?P<close>\])"
)

# Loading model weights:  45%          nothing but a percentage
# Loading safetensors checkpoint shards:  34% Completed        cut before the counts
# pulling 8934d96d3f08:  45% ▕████    ▏ 2.1 GB/4.7 GB  110 MB/s     39s        ollama pull
_PERCENT = re.compile(
    r"(?<![\d.])(?P<pct>\d{1,3})(?:\.\d{1,2})?%(?=\s*(?:$|[\r\n]|\||\u2595|Completed))"
    r"(?:\s*\u2595[^\u2595\u258f\r\n]{0,200}\u258f\s*(?P<done>[\d.]{1,9}\s?[kKMGT]?B)/(?P<total>[\d.]{1,9}\s?[kKMGT]?B)"
    r"(?:\s+(?P<rate>[\d.]{1,9}\s?[kKMGT]?B)/s)?)?"
)
_PERCENT_SUBJECT = re.compile(
    r"(?i)\b(?:load|download|fetch|pull|captur|convert|warm|compil|quanti[sz]|repack|unpack|read|copy|progress|shard)"
)

# Download: [3/17] -- ETA: 0:01:52       TGI text_generation_server/cli.py, utils/hub.py
_TGI = re.compile(r"(?P<desc>Download): \[(?P<done>\d{1,6})/(?P<total>\d{1,6})\] -- ETA: (?P<remaining>[\d:.]{1,20}|0)")

_RATE = re.compile(
    r"(?P<n>\d{1,12}(?:\.\d{1,4})?)\s?(?P<scale>[kKMGTP]?)(?P<unit>i?B|[A-Za-z]{1,20}|\s[a-z]{1,20})/s\b"
)
_PACE = re.compile(r"(?P<n>\d{1,12}(?:\.\d{1,4})?)s/(?P<unit>[A-Za-z]{1,20})")
_NO_RATE = re.compile(r"\?\s?(?P<unit>[A-Za-z]{1,20})/s")

# Where a description begins when a log line stands right before it on the same line.
_SUBJECT = re.compile(
    r"(?:\[BCG\] )?(?:Multi-thread [Ll]oading|Loading|Capturing|Fetching|Downloading|DeepGEMM|Warming|Compiling|"
    r"Converting|Materializing|Quantizing|Repacking|pulling)\b"
)
# What may stand behind the part of a cut bar that could be read: "Completed | 22/6", "00:0", "<00:1".
_BAR_REST = re.compile(r"^\s*(?:\|?\s*Completed)?[\s|\d/:<\[,.?\u2588-\u258f]*(?:it|s|it/s?|s/it?)?$")
_SPAN_PARTS = re.compile(r"(?:(\d{1,4})\s?d(?:ays?)?,?\s?)?(?:(\d{1,12}):)?(\d{1,2}):(\d{2}(?:\.\d{1,6})?)")
_LINE_END = re.compile(r"[\r\n]")

_SCALE = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}


def find_bars(text: str) -> tuple[Bar, ...]:
    """Every bar update in `text` (clean, one line or several updates with or without \\r between), in order."""
    if "%" not in text and "/s]" not in text and " -- ETA: " not in text and "it [" not in text:
        return ()
    common = list(_COMMON.finditer(text))
    if common and len(common) == text.count("%"):
        return _placed(text, [(m, _common) for m in common])
    return _placed(text, _any_form(text))


_Parser = Callable[["re.Match[str]", str, int], "Bar | None"]
"""Makes a bar of a match, its description and where that begins; None for text that only looks like one."""


def _any_form(text: str) -> list[tuple[re.Match[str], _Parser]]:
    """What looks like a bar, in order, without overlaps; counts win over a bare percentage."""
    found: list[tuple[re.Match[str], _Parser]] = [(m, _counted) for m in _COUNTED.finditer(text)]
    starts, ends = [m.start() for m, _ in found], [m.end() for m, _ in found]
    others: tuple[tuple[re.Pattern[str], _Parser], ...] = ((_UNCOUNTED, _uncounted), (_PERCENT, _percent), (_TGI, _tgi))
    for pattern, parser in others:
        for match in pattern.finditer(text):
            before = bisect_right(starts, match.start()) - 1
            inside = before >= 0 and ends[before] > match.start()
            reaches = before + 1 < len(starts) and starts[before + 1] < match.end()
            if not inside and not reaches:
                found.append((match, parser))
    found.sort(key=lambda item: item[0].start())
    return found


def _placed(text: str, found: list[tuple[re.Match[str], _Parser]]) -> tuple[Bar, ...]:
    """The bars of `found` with their descriptions, and the text glued behind each."""
    bars: list[Bar] = []
    previous_end = 0
    for match, parser in found:
        begin, desc = _description(text, previous_end, match.start())
        bar = parser(match, desc, begin)
        if bar is None:
            continue
        if bars and begin > previous_end:
            bars[-1] = _with_tail(bars[-1], text[previous_end:begin])
        bars.append(bar)
        previous_end = match.end()
    if bars and previous_end < len(text):
        bars[-1] = _with_tail(bars[-1], text[previous_end:])
    return tuple(bars)


def last_bar(text: str) -> Bar | None:
    """The newest update only; looks at the end of a long piece of text first."""
    window = 600
    if len(text) > 2 * window:
        bars = find_bars(text[-window:])
        if bars and bars[-1].start > 0:
            shift = len(text) - window
            bar = bars[-1]
            return replace(bar, start=bar.start + shift, end=bar.end + shift)
    bars = find_bars(text)
    return bars[-1] if bars else None


def text_around(text: str, bars: tuple[Bar, ...]) -> tuple[str, str]:
    """The log text glued before the first bar and behind the last one ("" where there is none)."""
    if not bars:
        return text, ""
    return text[: bars[0].start].strip(), bars[-1].tail.strip()


def parse_span(text: str) -> float | None:
    """Seconds of `MM:SS`, `H:MM:SS` or `N day(s), H:MM:SS`; None for `?` and anything else."""
    if len(text) == 5 and text[2] == ":" and text[:2].isdecimal() and text[3:].isdecimal():
        return int(text[:2]) * 60.0 + int(text[3:])
    match = _SPAN_PARTS.fullmatch(text.strip())
    if match is None:
        return None
    days, hours, minutes, seconds = match.groups()
    return int(days or 0) * 86400.0 + int(hours or 0) * 3600.0 + int(minutes) * 60.0 + float(seconds)


def _description(text: str, floor: int, start: int) -> tuple[int, str]:
    """Where the description before `start` begins (not before `floor`), and its constant part."""
    floor = max(floor, start - MAX_DESC_CHARS)
    raw = text[floor:start]
    changing = raw.rfind(" (")
    if changing >= 0 and "=" in raw[changing:]:
        skipped, desc = _named(raw[:changing])
    else:
        skipped, desc = _named(raw)
    return (start if skipped < 0 else floor + skipped), desc


@lru_cache(maxsize=512)
def _named(raw: str) -> tuple[int, str]:
    """How much of `raw` stands before the description (-1: there is none), and the description."""
    skipped = max(raw.rfind("\r"), raw.rfind("\n")) + 1
    for subject in _SUBJECT.finditer(raw, skipped):
        skipped = subject.start()  # the last one: what stands before it is a log line
    stripped = raw[skipped:].lstrip()
    desc = stripped.rsplit("|", 1)[-1].strip().rstrip(":").rstrip()  # a bar cut at the left leaves "ted |"
    return (len(raw) - len(stripped) if stripped else -1), desc


def _common(match: re.Match[str], desc: str, begin: int) -> Bar:
    percent, done, total, hours, minutes, seconds, remaining, number, unit = match.groups()
    rate = float(number) if number else None
    if rate is not None and unit == "s/it":
        rate = 1.0 / rate if rate > 0 else None
    return Bar(
        desc,
        int(done),
        int(total),
        _unit(desc, "it", False),
        int(percent),
        int(hours or 0) * 3600.0 + int(minutes) * 60.0 + int(seconds),
        parse_span(remaining) if remaining else None,
        rate,
        begin,
        match.end(),
        True,
    )


def _counted(match: re.Match[str], desc: str, begin: int) -> Bar | None:
    total = None if match["total"] == "?" else _count(match["total"])
    done = _count(match["done"])
    if match["elapsed"] is None and match["pct"] is None:
        return None  # "[3/17] [" of some other text
    rate, rate_unit = _rate(match["rest"] or "")
    elapsed = parse_span(match["elapsed"]) if match["elapsed"] else None
    scaled = not (match["done"] + match["total"]).isdigit()
    return Bar(
        desc=desc,
        done=done,
        total=total,
        unit=_unit(desc, rate_unit, scaled),
        percent=int(match["pct"]) if match["pct"] else None,
        elapsed_s=elapsed,
        remaining_s=parse_span(match["remaining"]) if match["close"] and match["remaining"] else None,
        printed_rate_per_s=rate if match["close"] else None,
        start=begin,
        end=match.end(),
        finished=match["close"] is not None,
    )


def _uncounted(match: re.Match[str], desc: str, begin: int) -> Bar | None:
    rate, rate_unit = _rate(match["rest"])
    if rate is None and rate_unit is None:
        return None
    return Bar(
        desc=desc,
        done=_count(match["done"]),
        total=None,
        unit=_unit(desc, rate_unit, scaled=False),
        percent=None,
        elapsed_s=parse_span(match["elapsed"]),
        remaining_s=None,
        printed_rate_per_s=rate,
        start=begin,
        end=match.end(),
        finished=True,
    )


def _tgi(match: re.Match[str], _desc: str, _begin: int) -> Bar | None:
    done, total, remaining_s = int(match["done"]), int(match["total"]), parse_span(match["remaining"])
    return Bar("Download", done, total, "file", None, None, remaining_s, None, match.start(), match.end(), True)


def _percent(match: re.Match[str], desc: str, begin: int) -> Bar | None:
    percent = int(match["pct"])
    if percent > 100 or _PERCENT_SUBJECT.search(desc) is None:
        return None
    if match["done"] is not None:
        return Bar(
            desc=desc,
            done=_size(match["done"]),
            total=_size(match["total"]),
            unit="byte",
            percent=percent,
            elapsed_s=None,
            remaining_s=None,
            printed_rate_per_s=float(_size(match["rate"])) if match["rate"] else None,
            start=begin,
            end=match.end(),
            finished=True,
        )
    return Bar(desc, percent, 100, "percent", percent, None, None, None, begin, match.end(), finished=False)


def _with_tail(bar: Bar, tail: str) -> Bar:
    tail = tail.lstrip(" ")
    if not tail or tail[0] in "\r\n":
        return bar
    tail = _LINE_END.split(tail, maxsplit=1)[0].strip()
    if not bar.finished:
        tail = _BAR_REST.sub("", tail)
    return replace(bar, tail=tail) if tail else bar


def _count(text: str) -> int:
    scale = _SCALE.get(text[-1], 0)
    return round(float(text[:-1]) * scale) if scale else round(float(text))


def _size(text: str) -> int:
    """Bytes of `2.1 GB`."""
    return _count(text.replace(" ", "").removesuffix("B"))


def _rate(text: str) -> tuple[float | None, str | None]:
    """Units per second and the unit's name as printed."""
    if match := _PACE.search(text):
        pace = float(match["n"])
        return (1.0 / pace if pace > 0 else None), match["unit"]
    if match := _RATE.search(text):
        return float(match["n"]) * _SCALE[match["scale"]], match["unit"].strip()
    if match := _NO_RATE.search(text):
        return None, match["unit"]
    return None, None


@lru_cache(maxsize=512)
def _unit(desc: str, rate_unit: str | None, scaled: bool) -> str:
    subject = desc.lower()
    if rate_unit in {"B", "iB"}:
        return "byte"
    if "captur" in subject or "cuda graph" in subject:
        return "graph"
    if "shard" in subject or "safetensors using" in subject or "fastsafetensor" in subject:
        return "shard"
    if (subject.startswith("fetching") and "file" in subject) or rate_unit in {"file", "files"}:
        return "file"
    if rate_unit in {"tok", "token", "tokens"}:
        return "token"
    if scaled and "download" in subject:
        return "byte"
    return "item"
