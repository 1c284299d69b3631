"""A host's GPUs as lines: bars and numbers, one line a GPU, or one line for all of them.

Colour only repeats what the text says: what is wrong has a letter or a sign as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from textual.content import Content

from specconsole.ui.formatters import duration, fit, line_bar, row, spread, styled
from specconsole.ui.widgets.gpu_graphs import spark

if TYPE_CHECKING:
    from specconsole.core.views.host import GpuView, HostView

HELP = (
    "GPUs. The bar is utilisation, the dots are the last ten minutes, both on a fixed scale of 0 to 100 %. Letters: "
    "P held by the power limit, T by heat, H by the hardware, B by the power brake, S by sync boost, A by set clocks; "
    "E uncorrected memory errors, X a fault in the kernel's messages, ? memory that no visible process holds. "
    "Enter shows one GPU: histories, processes, throttling, links."
)


class GpuLevels(NamedTuple):
    """From where a figure is shown as a warning or as an error; a theme may set each one (`gpu-warm-c`)."""

    warm_c: float = 80.0
    hot_c: float = 88.0
    full_ratio: float = 0.97
    power_ratio: float = 0.98
    old_s: float = 10.0
    """GPU figures older than this while the host still talks: the tool hangs."""

    @classmethod
    def of_theme(cls, variables: Mapping[str, str]) -> GpuLevels:
        """Levels from a theme's variables; what is no number keeps its default."""
        found = {}
        for name in cls._fields:
            try:
                found[name] = float(variables[f"gpu-{name.replace('_', '-')}"])
            except (KeyError, ValueError):
                continue
        return cls(**found)


DEFAULT_LEVELS = GpuLevels()

_FLAGS = {
    "power-cap": ("P", "$warning"), "thermal": ("T", "$error"), "hw-thermal": ("T", "$error"),
    "hw-slowdown": ("H", "$error"), "power-brake": ("B", "$error"), "sync-boost": ("S", "$muted"),
    "app-clocks": ("A", "$muted"), "display-clocks": ("D", "$muted"),
}  # fmt: skip
_VERTICAL = " ▁▂▃▄▅▆▇"
"""Not up to the full block: columns of busy GPUs would be a slab that hides the line above."""

Part = str | tuple[str, str]


class LineCache:
    """Lines by host, built anew only when the host's view is another object or what else they hang on changed."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[HostView, object, list[Content]]] = {}

    def lines(self, host: HostView, depends_on: object, build: Callable[[], list[Content]]) -> list[Content]:
        """`build()`, or what it gave for the same view and an equal `depends_on` (width, selection, ...)."""
        kept = self._kept.get(host.name)
        if kept is not None and kept[0] is host and kept[1] == depends_on:
            return kept[2]
        lines = build()
        self._kept[host.name] = (host, depends_on, lines)
        return lines


def gpu_lines(host: HostView, width: int, height: int, *, levels: GpuLevels = DEFAULT_LEVELS) -> list[Content]:
    """One line a GPU, at most `height`; the more room, the more figures. Nothing of a host is read as markup."""
    if height <= 0:
        return []
    stale = old_text(host, levels)
    room = height - 1 if stale else height
    flags = max((len(flag_parts(gpu)) for gpu in host.gpus), default=0)
    shown = [gpu_line(gpu, width, levels=levels, dim=bool(stale), flags_width=flags) for gpu in host.gpus[:room]]
    if len(host.gpus) > room and shown:
        hidden = host.gpus[room - 1 :]
        busy = [gpu.util_pct for gpu in hidden if gpu.util_pct is not None]
        mean = f", {sum(busy) / len(busy):.0f}% on average" if busy else ""
        shown[-1] = fit(styled(f"  … {len(hidden)} more{mean}", "$muted"), width)
    if stale:
        shown.insert(0, fit(styled(f"  {stale}", "$warning"), width))
    return shown


def old_text(host: HostView, levels: GpuLevels = DEFAULT_LEVELS) -> str:
    """What to say when GPU figures are old although the host talks; "" when they are fresh."""
    if not host.gpus:
        return ""
    age_s = 0.0 if host.gpu_as_of_s is None else host.as_of_s - host.gpu_as_of_s
    if host.gpu_note:
        return f"GPUs as of {duration(age_s)} ago: {host.gpu_note}"
    return f"GPUs as of {duration(age_s)} ago: {host.gpu_tool} is silent" if age_s > levels.old_s else ""


def gpu_line(
    gpu: GpuView, width: int, *, levels: GpuLevels = DEFAULT_LEVELS, dim: bool = False, flags_width: int = 0
) -> Content:
    """` 0 ██████▏ 97%  91/141G 71° P`, with power, history and owner where there is room.

    `flags_width`: letters that any GPU of the host has, kept free so that the bars of all are of one length.
    """
    if gpu.lost:
        return fit(row((f" {gpu.index:>2} ", "$muted"), ("gone: it does not answer any more", "bold $error")), width)
    wide = width - 31
    flags_width = max(flags_width, len(flag_parts(gpu)))
    cells = max(4, min(10, width - 23 - (flags_width + 1 if flags_width else 0)))
    share = None if gpu.util_pct is None else gpu.util_pct / 100
    bar_style = "$muted" if dim or not gpu.util_pct else "$primary"
    filled, left = line_bar(share, cells)
    parts: list[Part] = [(f" {gpu.index:>2} ", "$muted"), (filled, bar_style), (left, "$rule"), _util(gpu)]
    parts.append(_memory(gpu, levels))
    parts.append(_degrees(gpu, levels))
    if wide >= 12:
        parts.append(_watts(gpu, levels))
    if wide >= 32:
        cells = 20 if wide >= 72 else 14
        parts += ["  ", (spark(gpu.util_history_pct, cells), bar_style)]
    flags = flag_parts(gpu)
    if flags:
        parts += [" ", *flags]
    line = row(*parts)
    room = width - line.cell_length - 2
    owner = owners(gpu)
    if room >= 12 and owner:
        line = line + row("  ", (owner, "$muted" if any(p.launch_id for p in gpu.processes) else "$warning"))
    return fit(line, width)


def flag_parts(gpu: GpuView) -> list[Part]:
    """One letter for each thing that holds the GPU down or is wrong with it."""
    parts: list[Part] = []
    for reason in gpu.throttle:
        letter = _FLAGS.get(reason, ("H", "$warning"))
        if letter not in parts:
            parts.append(letter)
    if gpu.ecc_uncorrected:
        parts.append(("E", "bold $error"))
    if gpu.faults:
        parts.append(("X", "bold $error"))
    if gpu.hidden:
        parts.append(("?", "$warning"))
    return parts


def owners(gpu: GpuView) -> str:
    """Who holds the GPU, the largest first, in a few words."""
    if not gpu.processes:
        return gpu.hidden
    first, *others = gpu.processes
    return first.label + (f" +{len(others)}" if others else "")


def gpu_summary(host: HostView, width: int, *, levels: GpuLevels = DEFAULT_LEVELS) -> Content:
    """All GPUs in one line: a column each for utilisation, then the figures that matter over all of them."""
    name: Part = (f" {host.name} ", "bold")
    alive = [gpu for gpu in host.gpus if not gpu.lost]
    machine = _machine(host)
    if not host.gpus:
        return spread(row(name, (host.gpu_note or host.detail or "no GPU figures yet", "$muted")), machine, width)
    loads = [gpu.util_pct for gpu in alive if gpu.util_pct is not None]
    columns: list[Part] = []
    for gpu in host.gpus:
        if gpu.lost:
            columns.append(("✗", "$error"))
        elif gpu.util_pct is None:
            columns.append(("·", "$muted"))
        else:
            columns.append(
                (
                    _VERTICAL[max(1, round(gpu.util_pct / 100 * (len(_VERTICAL) - 1)))],
                    "$primary" if gpu.util_pct else "$muted",
                )
            )
    parts: list[Part] = [name, (f"{len(host.gpus)}× ", "$muted"), *columns]
    if loads:
        low, high = min(loads), max(loads)
        parts.append(f" {high:.0f}%" if high - low < 5 else f" {low:.0f}-{high:.0f}%")
    fullest = max(alive, key=lambda gpu: _ratio(gpu) or 0.0, default=None)
    if fullest is not None and fullest.memory_total_bytes:
        parts.append(_memory(fullest, levels))
    hottest = max(alive, key=lambda gpu: gpu.temperature_c or 0.0, default=None)
    if hottest is not None:
        parts.append(_degrees(hottest, levels))
    watts = [gpu.power_w for gpu in alive if gpu.power_w is not None]
    if watts:
        total = sum(watts)
        parts.append((f" {total / 1000:.1f}kW" if total >= 1000 else f" {total:.0f}W", "$muted"))
    flags: list[Part] = []
    for gpu in alive:
        flags += [flag for flag in flag_parts(gpu) if flag not in flags]
    if flags:
        parts += [" ", *flags]
    if old_text(host, levels):
        parts.append((" old", "bold $warning"))
    return spread(row(*parts), machine, width)


def _machine(host: HostView) -> Content:
    """` cpu 12% ram 20% `; empty when nothing is known."""
    words = []
    if host.cpu_pct is not None:
        words.append(f"cpu {host.cpu_pct:.0f}%")
    if host.memory_total_bytes and host.memory_used_bytes is not None:
        words.append(f"ram {host.memory_used_bytes / host.memory_total_bytes:.0%}")
    return row((" " + " ".join(words) + " ", "$muted")) if words else Content("")


def _util(gpu: GpuView) -> Part:
    return "   – " if gpu.util_pct is None else f" {gpu.util_pct:3.0f}%"


def _ratio(gpu: GpuView) -> float | None:
    if gpu.memory_used_bytes is None or not gpu.memory_total_bytes:
        return None
    return gpu.memory_used_bytes / gpu.memory_total_bytes


def _memory(gpu: GpuView, levels: GpuLevels) -> Part:
    used = "–" if gpu.memory_used_bytes is None else f"{gpu.memory_used_bytes / 2**30:.0f}"
    total = "–" if gpu.memory_total_bytes is None else f"{gpu.memory_total_bytes / 2**30:.0f}"
    full = (_ratio(gpu) or 0.0) >= levels.full_ratio
    return (f" {used:>3}/{total}G", "$warning" if full else "")


def _degrees(gpu: GpuView, levels: GpuLevels) -> Part:
    if gpu.temperature_c is None:
        return ""
    warm = gpu.temperature_c >= levels.warm_c
    sign = "!" if warm else " "
    style = "bold $error" if gpu.temperature_c >= levels.hot_c else "$warning" if warm else ""
    return (f" {gpu.temperature_c:.0f}°{sign}", style)


def _watts(gpu: GpuView, levels: GpuLevels) -> Part:
    if gpu.power_w is None:
        return ("    –W", "$muted")
    limit = f"/{gpu.power_limit_w:.0f}" if gpu.power_limit_w is not None else ""
    at_limit = bool(gpu.power_limit_w) and gpu.power_w >= levels.power_ratio * (gpu.power_limit_w or 0.0)
    return (f" {gpu.power_w:4.0f}{limit}W", "$warning" if at_limit else "$muted")
