"""Hosts as text: the marks in the header, the lines of the hosts pane, one line of GPU bars for a small screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from specconsole.ui.formatters import duration, fit, gib, row, spread, styled
from specconsole.ui.widgets.gpu_lines import DEFAULT_LEVELS, GpuLevels, gpu_lines, gpu_summary

if TYPE_CHECKING:
    from specconsole.core.views.host import HostView

MARKS: dict[str, tuple[str, str]] = {
    "connecting": ("◌", "$primary"), "up": ("●", "$success"), "unreachable": ("✗", "$error"),
    "refused": ("✗", "$error"), "auth-failed": ("✗", "$error"), "key-unknown": ("?", "$warning"),
    "key-changed": ("✗", "$error"), "needs-person": ("?", "$warning"), "stale": ("◐", "$warning"),
    "off": ("○", "$muted"),
}  # fmt: skip


def header(hosts: list[HostView], clock: str, width: int, badge: str = "") -> Content:
    """` specconsole   gpu-a ●  gpu-b ●  local ○          14:02:11`."""
    parts: list[str | tuple[str, str]] = [(" specconsole ", "bold $primary")]
    if badge:
        parts += [" ", (f" {badge} ", "bold $background on $warning")]
    for host in hosts:
        mark, style = MARKS[host.state]
        parts += ["  ", (f"{host.name} ", ""), (mark, style)]
    return spread(row(*parts), row((f" {clock} ", "$muted")), width)


def host_lines(
    host: HostView,
    width: int,
    now_s: float,
    *,
    selected: bool,
    focused: bool,
    gpu_rows: int,
    levels: GpuLevels = DEFAULT_LEVELS,
) -> list[Content]:
    """Name and state, GPUs, CPU and memory of one host."""
    mark, style = MARKS[host.state]
    head = spread(row((mark, style), " ", (host.name, "bold")), row((_models(host), "$muted")), width)
    if selected:
        head = head.stylize("on $selection" if focused else "on $panel")
    lines = [head]
    if host.state not in ("up", "connecting", "stale", "off") or (host.detail and host.state != "up"):
        lines.append(fit(styled(f"  {state_text(host, now_s)}", style), width))
    elif host.stale_since_s is not None:
        lines.append(fit(styled(f"  as of {duration(now_s - host.stale_since_s)} ago", "$warning"), width))
    if host.gpus:
        lines += gpu_lines(host, width, gpu_rows, levels=levels) if gpu_rows else []
    elif host.gpu_note:
        lines.append(fit(styled(f"  {host.gpu_note}", "$muted"), width))
    load = machine_line(host, width)
    if load is not None:
        lines.append(load)
    lines += [fit(styled(f"  {note}", "$warning"), width) for note in (*host.notes, *host.hardware_notes)]
    return lines


def host_line(host: HostView, width: int, now_s: float, *, levels: GpuLevels = DEFAULT_LEVELS) -> Content:
    """One host in one line, for when there are more than fit."""
    mark, style = MARKS[host.state]
    if host.state not in ("up", "stale"):
        return fit(row((mark, style), f" {host.name} ", (state_text(host, now_s), style)), width)
    return fit(row((mark, style)) + gpu_summary(host, width - 1, levels=levels), width)


def shows_time(host: HostView) -> bool:
    """Whether the host's lines change with time alone (`again in 5 s`, `as of 9 s ago`)."""
    return host.retry_at_s is not None or host.stale_since_s is not None


def state_text(host: HostView, now_s: float) -> str:
    """The state as a person says it, with what comes next."""
    text = host.detail or host.state
    if host.retry_at_s is not None and host.retry_at_s > now_s:
        text += f" · again in {duration(host.retry_at_s - now_s)}"
    return text


def _models(host: HostView) -> str:
    names: dict[str, int] = {}
    for gpu in host.gpus:
        name = gpu.name.removeprefix("NVIDIA ").removeprefix("GeForce ")
        names[name] = names.get(name, 0) + 1
    return ", ".join(f"{number} × {name}" for name, number in names.items())


def machine_line(host: HostView, width: int) -> Content | None:
    """`cpu 12%  ram 301/1511G`; None when nothing is known."""
    parts: list[str | tuple[str, str]] = []
    if host.cpu_pct is not None:
        parts += [("cpu ", "$muted"), f"{host.cpu_pct:.0f}%"]
    if host.memory_total_bytes:
        used, total = gib(host.memory_used_bytes), gib(host.memory_total_bytes)
        parts += [("  ram " if parts else "ram ", "$muted"), f"{used}/{total}G"]
    if host.shm_total_bytes and host.shm_used_bytes and host.shm_used_bytes > 0.5 * host.shm_total_bytes:
        parts += [("  shm ", "$muted"), (f"{host.shm_used_bytes / host.shm_total_bytes:.0%}", "$warning")]
    return fit(row("  ", *parts), width) if parts else None
