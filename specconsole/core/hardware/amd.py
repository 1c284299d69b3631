"""AMD GPUs: JSON of `amd-smi` (ROCm 6 and 7) and of the older `rocm-smi`.

Written after outputs published by others (AMD SMI 26.2 on MI300X and MI355X, ROCm 5.6 to 7.2); never run by us
on an AMD GPU, and the screens say so. `N/A` stands for any missing value, and numbers come bare or as
`{"value": 94, "unit": "%"}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from specconsole.core.hardware.gpu import MIB, GpuProcess, GpuSample, GpuTick
from specconsole.core.hardware.values import clean, number, word

NOTE = "AMD figures: written after recorded outputs, not tried on hardware"
METRIC_ARGS = ("metric", "--usage", "--power", "--clock", "--temperature", "--mem-usage", "--ecc", "--json")
PROCESS_ARGS = ("process", "--json")
STATIC_ARGS = ("static", "--asic", "--bus", "--limit", "--json")
ROCM_ARGS = (
    "--showproductname", "--showuse", "--showmemuse", "--showmeminfo", "vram", "--showpower", "--showmaxpower",
    "--showtemp", "--showclocks", "--showbus", "--showuniqueid", "--json",
)  # fmt: skip

_UNITS = {"B": 1, "KB": 1024, "MB": MIB, "GB": 1024 * MIB}
"""amd-smi prints binary amounts under these names (196592 MB for 192 GiB)."""


def parse_amd_smi(metric: str, static: str = "") -> GpuTick | None:
    """`amd-smi metric --json`, with names and limits from `amd-smi static --json`; None when it is not that JSON."""
    entries = _entries(metric)
    if entries is None:
        return None
    statics = {_index(entry): entry for entry in _entries(static) or []}
    return GpuTick(tuple(sorted((_amd_gpu(entry, statics) for entry in entries), key=lambda gpu: gpu.index)))


def parse_amd_processes(text: str, uuids: dict[int, str]) -> tuple[GpuProcess, ...]:
    """`amd-smi process --json`; `uuids` names the GPUs by index."""
    found = []
    for entry in _entries(text) or []:
        uuid = uuids.get(_index(entry), f"amd-{_index(entry)}")
        processes = entry.get("process_list")
        for item in processes if isinstance(processes, list) else []:
            info = item.get("process_info", item) if isinstance(item, dict) else {}
            if not isinstance(info, dict):
                continue  # "No running processes detected"
            pid = _figure(info.get("pid"))
            if pid is not None:
                memory = info.get("memory_usage")
                used = _bytes(memory.get("vram_mem")) if isinstance(memory, dict) else None
                found.append(GpuProcess(uuid, int(pid), word(str(info.get("name", ""))), used))
    return tuple(found)


def parse_rocm_smi(text: str) -> GpuTick | None:
    """`rocm-smi ... --json`: one object a card; keys changed between releases, so several names are tried."""
    try:
        cards = json.loads(text[text.index("{") :])
    except (ValueError, RecursionError):
        return None
    if not isinstance(cards, dict):
        return None
    found = []
    for key, card in cards.items():
        if not key.startswith("card") or not key[4:].isdigit() or not isinstance(card, dict):
            continue

        def first(*names: str, card: dict[str, Any] = card) -> str:
            return next((str(card[name]) for name in names if name in card and word(str(card[name]))), "")

        used, total = number(first("VRAM Total Used Memory (B)")), number(first("VRAM Total Memory (B)"))
        bus = word(first("PCI Bus"))
        found.append(
            GpuSample(
                index=int(key[4:]),
                uuid=word(first("Unique ID")) or bus or key,
                name=clean(first("Card Series", "Card series", "Device Name", "Card Model", "Card model")),
                bus_id=bus,
                util_pct=number(first("GPU use (%)")),
                memory_util_pct=number(first("GPU Memory Read/Write Activity (%)")),
                memory_used_bytes=None if used is None else int(used),
                memory_total_bytes=None if total is None else int(total),
                temperature_c=number(first("Temperature (Sensor junction) (C)", "Temperature (Sensor edge) (C)")),
                memory_temperature_c=number(first("Temperature (Sensor memory) (C)")),
                power_w=number(
                    first("Current Socket Graphics Package Power (W)", "Average Graphics Package Power (W)")
                ),
                power_limit_w=number(first("Max Graphics Package Power (W)")),
                sm_clock_mhz=number(first("sclk clock speed:").strip("()")),
                memory_clock_mhz=number(first("mclk clock speed:").strip("()")),
            )
        )
    return GpuTick(tuple(sorted(found, key=lambda gpu: gpu.index))) if found else None


def _amd_gpu(entry: dict[str, Any], statics: dict[int, dict[str, Any]]) -> GpuSample:
    index = _index(entry)
    static = statics.get(index, {})
    bus = word(str(_at(static, "bus", "bdf") or ""))
    limit = _figure(_at(static, "limit", "ppt0", "socket_power_limit"))
    if limit is None:
        limit = _figure(_at(static, "limit", "socket_power"))
    ecc = _figure(_at(entry, "ecc", "total_uncorrectable_count"))
    return GpuSample(
        index=index,
        uuid=word(str(_at(static, "asic", "asic_serial") or "")) or bus or f"amd-{index}",
        name=clean(str(_at(static, "asic", "market_name") or "AMD GPU")),
        bus_id=bus,
        util_pct=_figure(_at(entry, "usage", "gfx_activity")),
        memory_util_pct=_figure(_at(entry, "usage", "umc_activity")),
        memory_used_bytes=_bytes(_at(entry, "mem_usage", "used_vram"), "MB"),
        memory_total_bytes=_bytes(_at(entry, "mem_usage", "total_vram"), "MB"),
        temperature_c=_first_figure(entry, ("temperature", "hotspot"), ("temperature", "edge")),
        memory_temperature_c=_figure(_at(entry, "temperature", "mem")),
        power_w=_figure(_at(entry, "power", "socket_power")),
        power_limit_w=limit,
        sm_clock_mhz=_figure(_at(entry, "clock", "gfx_0", "clk")),
        sm_clock_max_mhz=_figure(_at(entry, "clock", "gfx_0", "max_clk")),
        memory_clock_mhz=_figure(_at(entry, "clock", "mem_0", "clk")),
        throttle=("hw-slowdown",) if _at(entry, "power", "throttle_status") == "THROTTLED" else None,
        ecc_uncorrected=None if ecc is None else int(ecc),
    )


def _entries(text: str) -> list[dict[str, Any]] | None:
    """The GPUs in a document: a bare list (ROCm 6), or under `gpu_data` (ROCm 7)."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(data, dict):
        data = data.get("gpu_data")
    return [entry for entry in data if isinstance(entry, dict) and "gpu" in entry] if isinstance(data, list) else None


def _index(entry: dict[str, Any]) -> int:
    index = entry.get("gpu")
    return index if isinstance(index, int) else -1


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _figure(value: Any) -> float | None:
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, bool) or value is None:
        return None
    return float(value) if isinstance(value, int | float) else number(str(value))


def _bytes(value: Any, unit: str = "B") -> int | None:
    amount = _figure(value)
    if isinstance(value, dict):
        unit = str(value.get("unit", unit))
    return None if amount is None else int(amount * _UNITS.get(unit, 1))


def _first_figure(entry: dict[str, Any], *paths: tuple[str, ...]) -> float | None:
    def figures() -> Iterator[float]:
        for path in paths:
            value = _figure(_at(entry, *path))
            if value is not None:
                yield value

    return next(figures(), None)
