"""One GPU in full as lines: histories, figures, who holds it, what held it down, how it is connected."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from specconsole.core.hardware.report import rate_text
from specconsole.core.views.host import GpuView, HostView
from specconsole.ui.formatters import duration, fit, row, spread, styled
from specconsole.ui.widgets.gpu_graphs import plot
from specconsole.ui.widgets.gpu_lines import DEFAULT_LEVELS, GpuLevels, flag_parts, old_text

_GIB = 2**30


def gpu_detail(
    host: HostView, index: int, width: int, height: int, *, levels: GpuLevels = DEFAULT_LEVELS
) -> list[Content]:
    """Lines for the GPU with this index; all of them, `height` only decides how tall the graphs are."""
    gpu = next((gpu for gpu in host.gpus if gpu.index == index), None)
    if gpu is None:
        return [fit(styled(f"no GPU {index} on {host.name}", "$muted"), width)]
    lines = [_head(host, gpu, width)]
    old = old_text(host, levels)
    if gpu.lost:
        lines.append(fit(styled("It does not answer any more; the histories end where it went.", "bold $error"), width))
    elif old:
        lines.append(fit(styled(old, "$warning"), width))
    lines += [fit(styled(fault, "$error"), width) for fault in gpu.faults]
    text = [*_processes(gpu, width), *_throttling(host, gpu, width), *_links(host, gpu, width), *_machine(host, width)]
    graph_rows = max(2, min(6, (height - len(lines) - len(text) - 4) // 2))
    lines += _graphs(gpu, width, graph_rows)
    return [*lines, *text]


def _head(host: HostView, gpu: GpuView, width: int) -> Content:
    facts = [gpu.bus_id or "", f"driver {host.gpu_driver}" if host.gpu_driver else "", gpu.pstate or "", gpu.detail]
    left = row((f" GPU {gpu.index} ", "bold"), f"{gpu.name} ", *flag_parts(gpu))
    return spread(left, row((" · ".join(fact for fact in facts if fact) + " ", "$muted")), width)


def _graphs(gpu: GpuView, width: int, rows: int) -> list[Content]:
    """Four graphs over ten minutes in two columns, each on its fixed scale."""
    half = max(10, (width - 3) // 2)
    memory = [None if ratio is None else ratio * 100 for ratio in gpu.memory_history_ratio]
    used, total = gpu.memory_used_bytes, gpu.memory_total_bytes
    memory_now = f"{used / _GIB:.1f} of {total / _GIB:.1f} GiB" if used is not None and total else "–"
    limit = gpu.power_limit_w or 1000.0
    power_now = "–" if gpu.power_w is None else f"{gpu.power_w:.0f} of {limit:.0f} W"
    clock = "" if gpu.sm_clock_mhz is None else f" · {gpu.sm_clock_mhz:.0f}"
    clock += f" of {gpu.sm_clock_max_mhz:.0f} MHz" if clock and gpu.sm_clock_max_mhz else " MHz" if clock else ""
    heat = "–" if gpu.temperature_c is None else f"{gpu.temperature_c:.0f}°C"
    heat += "" if gpu.memory_temperature_c is None else f" · memory {gpu.memory_temperature_c:.0f}°C"
    traffic = "" if gpu.memory_util_pct is None else f" · memory traffic {gpu.memory_util_pct:.0f} %"
    util = "–" if gpu.util_pct is None else f"{gpu.util_pct:.0f} %"
    pairs = (
        (
            ("utilisation", f"{util}{traffic}", plot(gpu.util_history_pct, half, rows)),
            ("memory", memory_now, plot(memory, half, rows)),
        ),
        (
            ("power", power_now + clock, plot(gpu.power_history_w, half, rows, high=limit)),
            ("heat", f"{heat} (0 to 100)", plot(gpu.temperature_history_c, half, rows)),
        ),
    )
    lines: list[Content] = []
    if not any(value is not None for value in gpu.util_history_pct):
        # Two empty graphs would look like a GPU that does nothing.
        rows = 0
    for left, right in pairs:
        titles = [fit(row((f" {name} ", "$muted"), now), half) for name, now, _ in (left, right)]
        lines.append(fit(titles[0] + Content(" ") + titles[1], width))
        for first, second in zip(left[2][:rows], right[2][:rows], strict=True):
            lines.append(fit(row(" ", (first, "$primary"), " ", (second, "$primary")), width))
    if rows:
        lines.append(spread(styled(" 10 min ago", "$muted"), styled("now ", "$muted"), width))
    else:
        lines.append(fit(styled(" no history yet: the first one stands after five seconds", "$muted"), width))
    return lines


def _processes(gpu: GpuView, width: int) -> list[Content]:
    lines = [fit(styled(" held by", "$muted"), width)]
    for process in gpu.processes:
        held = "     –" if process.used_bytes is None else f"{process.used_bytes / _GIB:6.1f}"
        mine = process.launch_id is not None
        facts = [] if not mine else [f"pid {process.pid}", process.user or "", duration(process.age_s)]
        tail = " · ".join(fact for fact in facts if fact)
        style = "" if mine else "$warning"
        lines.append(spread(row(f" {held} GiB  ", (process.label, style)), row((f" {tail} ", "$muted")), width))
    if gpu.hidden:
        lines.append(fit(styled(f"   {gpu.hidden}", "$warning"), width))
    if len(lines) == 1 and not gpu.lost:
        lines.append(fit(styled("   nobody", "$muted"), width))
    return lines


def _throttling(host: HostView, gpu: GpuView, width: int) -> list[Content]:
    if not gpu.throttle_history:
        return [fit(styled(" not held below its clocks in the last ten minutes", "$muted"), width)]
    lines = [fit(styled(" held below its clocks", "$muted"), width)]
    for span in list(reversed(gpu.throttle_history))[:5]:
        ago = duration(max(0.0, host.as_of_s - span.start_s))
        length = "since then" if span.end_s is None else f"for {duration(span.end_s - span.start_s)}"
        lines.append(fit(row(f"   {', '.join(span.reasons)}, {ago} ago ", (length, "$muted")), width))
    if len(gpu.throttle_history) > 5:
        lines.append(fit(styled(f"   and {len(gpu.throttle_history) - 5} times before", "$muted"), width))
    return lines


def _links(host: HostView, gpu: GpuView, width: int) -> list[Content]:
    lines = []
    facts = [gpu.nvlink, f"NUMA node {gpu.numa_node}" if gpu.numa_node is not None else ""]
    if any(facts):
        lines.append(fit(styled(" " + " · ".join(fact for fact in facts if fact), "$muted"), width))
    if gpu.index < len(host.gpu_links) and len(host.gpu_links) > 1:
        pairs = [f"{other}:{link}" for other, link in enumerate(host.gpu_links[gpu.index]) if other != gpu.index]
        lines.append(fit(styled(" links to " + "  ".join(pairs), "$muted"), width))
    lines += [fit(styled(f" MIG {device}", ""), width) for device in gpu.mig_devices]
    if gpu.mig and not gpu.mig_devices:
        lines.append(fit(styled(" MIG is on; its devices are not known yet", "$muted"), width))
    if host.gpu_source_note:
        lines.append(fit(styled(f" {host.gpu_source_note}", "$warning"), width))
    return lines


def _machine(host: HostView, width: int) -> list[Content]:
    """The host around the GPU: what a stall or a slow load needs to be told from."""
    parts = []
    if host.cpu_pct is not None:
        waits = f", {host.iowait_pct:.0f} % waiting for disks" if host.iowait_pct and host.iowait_pct >= 1 else ""
        parts.append(f"cpu {host.cpu_pct:.0f} % of {host.cpu_count}{waits}")
    if len(host.numa_pct) > 1:
        parts.append("NUMA " + " ".join(f"{node}:{share:.0f}%" for node, share in host.numa_pct))
    if host.memory_total_bytes:
        cache = f", {host.page_cache_bytes / _GIB:.0f} page cache" if host.page_cache_bytes is not None else ""
        parts.append(
            f"ram {(host.memory_used_bytes or 0) / _GIB:.0f} of {host.memory_total_bytes / _GIB:.0f} GiB{cache}"
        )
    if host.cgroup_memory_limit_bytes:
        used = (host.cgroup_memory_used_bytes or 0) / _GIB
        parts.append(f"cgroup {used:.0f} of {host.cgroup_memory_limit_bytes / _GIB:.0f} GiB")
    if host.disk_read_bytes_s is not None:
        parts.append(f"{host.disk_name} reads {rate_text(host.disk_read_bytes_s)}")
    parts += [f"{disk.path} is on a network file system" for disk in host.disks if disk.over_network]
    if host.network_rx_bytes_s is not None:
        parts.append(f"net ↓{rate_text(host.network_rx_bytes_s)} ↑{rate_text(host.network_tx_bytes_s)}")
    return _wrap(parts, width)


def _wrap(parts: Sequence[str], width: int) -> list[Content]:
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) + 3 <= width - 1:
            lines[-1] += f" · {part}"
        else:
            lines.append(f" {part}")
    return [fit(styled(line, "$muted"), width) for line in lines]
