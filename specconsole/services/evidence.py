"""What explains a hang, collected into one folder: stacks, collective settings, GPU samples, every rank's last words.

The host is asked with a POSIX sh and what it has; py-spy only where it is there already. Nothing is signalled and
nothing is stopped: py-spy reads a process's memory while it goes on, which for one that hangs is as good.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from specconsole.core.hardware.evidence import stall_evidence
from specconsole.core.hardware.series import BUCKET_S
from specconsole.core.launching.masking import mask_text
from specconsole.core.views.host import HostView
from specconsole.core.views.launch import LaunchView
from specconsole.core.views.log_line import mark_line
from specconsole.errors import SpecconsoleError
from specconsole.ports import Transport
from specconsole.services.commands import LineSource, Progress

LAST_LINES_OF_A_RANK = 40
SEARCHED_LINES = 20_000
"""How far back a rank's last lines are looked for."""
MOST_PROCESSES = 64
_LOOK_TIMEOUT_S = 60.0

PROCESS_LOOK = r"""
pid=$1
[ -d "/proc/$pid" ] || { echo "process $pid is gone"; exit 0; }
echo "== command"; tr '\0' ' ' < "/proc/$pid/cmdline"; echo
echo "== state"; grep -E '^(State|PPid|Threads|VmRSS|SigQ):' "/proc/$pid/status"
echo "== threads: name, state, kernel function waited in"
for task in "/proc/$pid/task"/*; do
    name=$(cat "$task/comm" 2>/dev/null) || continue
    state=$(sed -n 's/^State:[[:space:]]*//p' "$task/status" 2>/dev/null)
    echo "${task##*/} $name | $state | $(cat "$task/wchan" 2>/dev/null)"
done | head -200
"""
ENVIRONMENT_LOOK = r"""
tr '\0' '\n' < "/proc/$1/environ" 2>/dev/null | grep -E \
 '^(NCCL|RCCL|HCCL|GLOO|UCX|FI|TORCH_(NCCL|DISTRIBUTED|FR)|CUDA_(VISIBLE|LAUNCH)|HIP_VISIBLE|OMP)[A-Z_]*=' |
 sort
"""
STACKS_LOOK = r"""
pid=$1
tool=$(command -v py-spy) || tool=
if [ -z "$tool" ]; then
    # A server's own environment has it more often than the login shell does.
    first=$(tr '\0' '\n' < "/proc/$pid/cmdline" 2>/dev/null | head -n 1)
    beside=$(dirname "$first")/py-spy
    [ -x "$beside" ] && tool=$beside
fi
[ -n "$tool" ] || { echo "py-spy is not on this host"; exit 3; }
"$tool" dump --nonblocking --pid "$pid" 2>&1 || exit 3
"""


async def collect_evidence(
    transport: Transport,
    pids: Sequence[int],
    view: LaunchView,
    host: HostView | None,
    source: LineSource | None,
    folder: Path,
    progress: Progress,
    *,
    secrets: Iterable[str] = (),
) -> Path:
    """Writes what could be had into `folder` (made here) and says in `summary.txt` what could not, and why.

    `secrets`: values that are starred wherever they stand, besides what looks like a key (a command line, a stack with
    its variables). Raises SpecconsoleError only when the folder can't be written; a host that doesn't answer is part of
    the evidence.
    """
    summary = [f"{view.name} @ {view.host}: {view.state}", f"launch {view.launch_id}", ""]
    reading = view.reading
    if reading is not None:
        summary.append(
            f"phase {reading.phase}, silent for {reading.silent_s} s, {reading.stall_reason or 'no verdict'}"
        )
    files: dict[str, str] = {}
    if reading is not None:
        files["reading.json"] = json.dumps(reading.to_json(), indent=1)
    if host is not None:
        progress("GPU samples")
        files["gpus.csv"] = gpu_table(host)
        summary += [f"GPUs: {fact.text}" for fact in stall_evidence(host, view.launch_id)]
    if source is not None:
        progress("last lines of every rank")
        files["last-lines.txt"] = await asyncio.to_thread(last_lines, source)
    chosen = list(pids)[:MOST_PROCESSES]
    for number, pid in enumerate(chosen, 1):
        progress(f"process {pid} ({number} of {len(chosen)})")
        for name, script in (("process", PROCESS_LOOK), ("environment", ENVIRONMENT_LOOK), ("stacks", STACKS_LOOK)):
            text, problem = await _look(transport, script, pid)
            if text.strip() and not problem:
                files[f"{name}-{pid}.txt"] = text
            else:
                summary.append(f"{name} of {pid}: {problem or 'nothing of that kind'}")
    if not chosen:
        summary.append("no process of this launch was found on the host")
    files["summary.txt"] = "\n".join(summary) + "\n"
    await asyncio.to_thread(_write, folder, {name: _starred(text, secrets) for name, text in files.items()})
    return folder


async def _look(transport: Transport, script: str, pid: int) -> tuple[str, str]:
    """(output, why there is none)."""
    try:
        done = await transport.run_sh(script, [str(pid)], timeout_s=_LOOK_TIMEOUT_S)
    except (SpecconsoleError, TimeoutError) as error:
        return "", str(error) or "no answer in time"
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    if done.exit_status == 3:
        return "", text.strip()
    return text, "" if done.ok or text.strip() else f"exit status {done.exit_status}"


def gpu_table(host: HostView) -> str:
    """The samples so far as CSV: seconds before now, GPU, utilisation, memory share, power."""
    rows = ["seconds_ago,gpu,util_pct,memory_util_pct,memory_ratio,power_w,temperature_c"]
    for gpu in host.gpus:
        count = len(gpu.util_history_pct)
        for place in range(count):
            values = [
                history[place] if place < len(history) else None
                for history in (
                    gpu.util_history_pct, gpu.memory_util_history_pct, gpu.memory_history_ratio, gpu.power_history_w,
                    gpu.temperature_history_c,
                )
            ]  # fmt: skip
            if any(value is not None for value in values):
                cells = ",".join("" if value is None else f"{value:.4g}" for value in values)
                rows.append(f"{(count - 1 - place) * BUCKET_S:.0f},{gpu.index},{cells}")
    return "\n".join(rows) + "\n"


def last_lines(source: LineSource) -> str:
    """The last lines of every rank seen near the end, each with its number in the log."""
    ranks: dict[str, list[str]] = {}
    rank = ""
    first = max(0, source.line_count - SEARCHED_LINES)
    for start in range(first, source.line_count, 1000):
        for number, line in enumerate(source.lines(start, start + 1000), start + 1):
            mark = mark_line(line[:200].encode("utf-8", "replace"))
            if mark.begins:
                rank = mark.rank or ""
            kept = ranks.setdefault(rank, [])
            kept.append(f"{number}: {line}")
            del kept[:-LAST_LINES_OF_A_RANK]
    return "\n\n".join("\n".join([f"== {name or 'no rank'}", *lines]) for name, lines in sorted(ranks.items())) + "\n"


def _starred(text: str, secrets: Iterable[str]) -> str:
    for value in secrets:
        text = text.replace(value, "*" * len(value)) if len(value) >= 6 else text
    return mask_text(text)


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, mode=0o700)
        for name, text in files.items():
            (folder / name).write_text(text, "utf-8")
    except OSError as error:
        raise SpecconsoleError(
            f"the evidence can't be written: {error.strerror}", where=str(folder), try_="free space on this machine"
        ) from error
