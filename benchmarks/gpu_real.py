"""On a machine with a GPU: do we say what nvidia-smi and nvitop say in the same second, and what does watching cost?

Needs torch (to hold memory) and nvitop (the witness). Starts its own processes and ends them.
`python benchmarks/gpu_real.py --out DIR [--seconds 60]` writes the tools' raw outputs, the comparison and the costs.

Last run: 2 H200, driver 580.159.04, 60 s at a look a second, all at the same time. nvitop 1.7.2: 1.53 % of a core; our
pane in Textual: 0.87 % (0.02 of it nvidia-smi); `specconsole gpus --watch`: 0.43 %. 24 of 24 readings equal to
nvidia-smi's in utilisation, memory, temperature and clocks, power apart by 0.08 W at most; nvitop's memory is 1 MiB
less (it rounds down).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import importlib.util
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from specconsole import wiring
from specconsole.core.hardware.gpu_memory import memory_changes, memory_snapshot
from specconsole.core.hardware.gpu_owners import KnownLaunch
from specconsole.core.hardware.nvidia_query import query_argv
from specconsole.core.hardware.report import gpu_report
from specconsole.core.views.host import HostView
from specconsole.services.board import Board
from specconsole.services.host_sampler import HostSampler

ROOT = Path(__file__).resolve().parents[1]
LAUNCH = "0123456789abcdef"
MIB = 1024 * 1024

HOLDER = """
import sys, time, torch
device, gib, busy = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "busy"
held = torch.empty(gib << 30, dtype=torch.uint8, device=device)
a = torch.randn(8192, 8192, dtype=torch.bfloat16, device=device)
print("holds", flush=True)
while True:
    if busy:
        for _ in range(20):
            a = (a @ a).clamp(-1, 1)
        torch.cuda.synchronize()
    else:
        time.sleep(0.5)
"""


def shell(out: Path, name: str, command: str, limit_s: float = 20) -> str:
    """Runs a command and keeps what it said."""
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=limit_s, check=False)
    (out / name).write_bytes(done.stdout + done.stderr)
    return done.stdout.decode(errors="replace")


def hold(device: str, gib: int, busy: bool, *, ours: bool, user: int | None = None) -> subprocess.Popen[str]:
    """A process that holds GPU memory; not ours means without the launch's mark, as another user where that works."""
    env = {**os.environ, "HOME": "/tmp"} | ({"SPECCONSOLE_LAUNCH": LAUNCH} if ours else {})
    argv = [sys.executable, "-c", HOLDER, device, str(gib), "busy" if busy else "idle"]
    process = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True, user=user)
    assert process.stdout is not None
    if "holds" not in process.stdout.readline():
        if user is None:
            raise RuntimeError("the holder did not start")
        return hold(device, gib, busy, ours=ours)
    return process


def nvitop_view() -> list[dict[str, Any]]:
    """What nvitop's library says of every GPU now."""
    from nvitop import Device

    return [
        {
            "uuid": device.uuid(),
            "name": device.name(),
            "util_pct": device.gpu_utilization(),
            "memory_used_mib": device.memory_used() // MIB,
            "temperature_c": device.temperature(),
            "power_w": round(device.power_usage() / 1000, 2),
            "sm_clock_mhz": device.sm_clock(),
            "pids": {str(pid): p.gpu_memory() // MIB for pid, p in device.processes().items()},
        }
        for device in Device.all()
    ]


def our_view(view: HostView) -> list[dict[str, Any]]:
    return [
        {
            "uuid": gpu.uuid,
            "name": gpu.name,
            "util_pct": gpu.util_pct,
            "memory_used_mib": (gpu.memory_used_bytes or 0) // MIB,
            "temperature_c": gpu.temperature_c,
            "power_w": gpu.power_w,
            "sm_clock_mhz": gpu.sm_clock_mhz,
            "pids": {str(p.pid): (p.used_bytes or 0) // MIB for p in gpu.processes},
        }
        for gpu in view.gpus
    ]


def smi_view(text: str) -> list[dict[str, Any]]:
    """A reading of nvidia-smi's own answer by its columns, made without our parser."""
    found = []
    for line in text.strip().splitlines():
        uuid, name, util, used, heat, power, clock = line.split(", ")
        found.append(
            {"uuid": uuid, "name": name, "util_pct": float(util), "memory_used_mib": int(used),
             "temperature_c": float(heat), "power_w": float(power), "sm_clock_mhz": float(clock)}
        )  # fmt: skip
    return found


WITNESS = (
    "nvidia-smi --query-gpu=uuid,name,utilization.gpu,memory.used,temperature.gpu,power.draw,clocks.sm "
    "--format=csv,noheader,nounits"
)


async def compare(out: Path, rounds: int, idle: subprocess.Popen[str], busy: subprocess.Popen[str]) -> dict[str, Any]:
    """Our board against both witnesses, again and again; then one holder is killed."""
    board, clock = Board(), wiring.system_clock()
    launches = [KnownLaunch(LAUNCH, "eagle3-topk1")]
    seen: list[dict[str, Any]] = []
    async with wiring.open_transport("local") as transport, asyncio.TaskGroup() as group:
        sampler = HostSampler(transport, board, clock, wiring.hardware_tools(), launches=lambda: launches)
        task = group.create_task(sampler.run())
        await _until(lambda: bool(board.hosts.get("local") and board.hosts["local"].gpus and _pids(board) and
                                  board.hosts["local"].gpu_driver), 60)  # fmt: skip
        for _ in range(rounds):
            before = board.hosts["local"].gpu_as_of_s
            await _until(lambda before=before: board.hosts["local"].gpu_as_of_s != before, 10)
            began = time.monotonic()
            ours = our_view(board.hosts["local"])
            smi = await asyncio.to_thread(lambda: subprocess.run(WITNESS.split(), capture_output=True, text=True))
            nvitop = await asyncio.to_thread(nvitop_view)
            seen.append({"ours": ours, "nvidia-smi": smi_view(smi.stdout), "nvitop": nvitop,
                         "apart_s": round(time.monotonic() - began, 3)})  # fmt: skip
        view = board.hosts["local"]
        (out / "pane.txt").write_text(_pane(view))
        (out / "report.txt").write_text("\n".join(gpu_report(view)) + "\n")
        (out / "view.json").write_text(json.dumps(asdict(view), indent=1))
        await asyncio.to_thread(shell, out, "nvitop-once.txt", f"{sys.executable} -m nvitop --once")
        probe = await wiring.hardware_tools().find_gpu_probe(transport)
        assert not isinstance(probe, str)
        held = memory_snapshot("before-kill", clock.wall_s(), await probe.snapshot(), await probe.processes())
        before_used = {gpu.uuid: gpu.memory_used_bytes for gpu in view.gpus}
        busy.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        busy.wait()
        sampler.look_now()
        pid = busy.pid
        await _until(lambda: pid not in _pids(board), 30)
        gone_s = time.monotonic() - killed
        await _until(lambda: any((gpu.memory_used_bytes or 0) < (before_used[gpu.uuid] or 0) - (8 << 30)
                                 for gpu in board.hosts["local"].gpus), 30)  # fmt: skip
        freed_s = time.monotonic() - killed
        after = memory_snapshot("after-kill", clock.wall_s(), await probe.snapshot(), await probe.processes())
        (out / "report-after-kill.txt").write_text("\n".join(gpu_report(board.hosts["local"])) + "\n")
        (out / "pane-after-kill.txt").write_text(_pane(board.hosts["local"]))
        smi = await asyncio.to_thread(lambda: subprocess.run(WITNESS.split(), capture_output=True, text=True))
        result = {
            "rounds": seen,
            "agreement": agreement(seen),
            "killed": {
                "pid": pid,
                "pane_without_it_after_s": round(gone_s, 2),
                "pane_shows_memory_back_after_s": round(freed_s, 2),
                "ours_mib": [gpu["memory_used_mib"] for gpu in our_view(board.hosts["local"])],
                "nvidia_smi_mib": [gpu["memory_used_mib"] for gpu in smi_view(smi.stdout)],
                "memory_changes": list(memory_changes(held, after)),
            },
            "still_held_by": [p.label for gpu in board.hosts["local"].gpus for p in gpu.processes],
        }
        task.cancel()
    return result


def agreement(seen: list[dict[str, Any]]) -> dict[str, Any]:
    """How often the three agree, field by field; power and clocks move within the second, so their spread is given."""
    found: dict[str, Any] = {}
    for witness in ("nvidia-smi", "nvitop"):
        equal: dict[str, int] = {}
        most: dict[str, float] = {}
        pairs = 0
        for one in seen:
            others = {gpu["uuid"]: gpu for gpu in one[witness]}
            for gpu in one["ours"]:
                other = others[gpu["uuid"]]
                pairs += 1
                for key, value in gpu.items():
                    if key not in other or (key == "pids" and witness == "nvidia-smi"):
                        continue
                    equal[key] = equal.get(key, 0) + (value == other[key])
                    if isinstance(value, int | float):
                        most[key] = round(max(most.get(key, 0.0), abs(value - other[key])), 2)
        found[witness] = {"pairs": pairs, "equal": equal, "largest_difference": most}
    return found


def _pane(view: HostView) -> str:
    if importlib.util.find_spec("textual") is None:
        return "textual is not here\n"
    from specconsole.ui.widgets.gpu_detail import gpu_detail
    from specconsole.ui.widgets.gpu_lines import gpu_lines, gpu_summary

    lines = [gpu_summary(view, 80)]
    for width in (30, 80, 120):
        lines += gpu_lines(view, width, 8)
    for gpu in view.gpus:
        lines += gpu_detail(view, gpu.index, 110, 36)
    return "\n".join(line.plain for line in lines) + "\n"


def _pids(board: Board) -> set[int | None]:
    view = board.hosts.get("local")
    return {p.pid for gpu in view.gpus for p in gpu.processes} if view else set()


async def _until(condition: Any, limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("not in time")
        await asyncio.sleep(0.02)


class Contender:
    """A program in a terminal of 160 x 48, and the CPU time of its whole process tree."""

    def __init__(self, name: str, argv: list[str]) -> None:
        self.name = name
        main, sub = pty.openpty()
        fcntl.ioctl(sub, termios.TIOCSWINSZ, struct.pack("HHHH", 48, 160, 0, 0))
        env = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
        self.process = subprocess.Popen(
            argv, stdin=sub, stdout=sub, stderr=sub, env=env, start_new_session=True, cwd=ROOT
        )
        os.close(sub)
        self._main = main
        self.bytes = 0
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self._main, 65536):
                self.bytes += len(data)

    def cpu_s(self) -> dict[str, float]:
        """Seconds of CPU by program name, over the whole process tree, children that ended included."""
        rows: dict[int, tuple[int, str, float]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    name, _, rest = (entry / "stat").read_text().partition(" (")[2].rpartition(") ")
                    parts = rest.split()
                    ticks = sum(int(part) for part in parts[11:15])
                    rows[int(entry.name)] = (int(parts[1]), name, ticks / os.sysconf("SC_CLK_TCK"))
        tree, found = {self.process.pid}, {}
        while more := {pid for pid, (parent, _, _) in rows.items() if parent in tree} - tree:
            tree |= more
        for pid in tree & rows.keys():
            _, name, seconds = rows[pid]
            found[name] = found.get(name, 0.0) + seconds
        return found

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)


def costs(seconds: float) -> dict[str, Any]:
    """CPU shares over the same seconds, after everything has started."""
    python = sys.executable
    contenders = [
        Contender("nvitop", [python, "-m", "nvitop", "--interval", "1"]),
        Contender("our pane", [python, str(ROOT / "benchmarks" / "_gpu_pane.py")]),
        Contender("our gpus --watch", [python, "-m", "specconsole", "gpus", "--watch", "--every", "1"]),
    ]
    try:
        time.sleep(12)
        before, began = [one.cpu_s() for one in contenders], time.monotonic()
        bytes_before = [one.bytes for one in contenders]
        time.sleep(seconds)
        wall = time.monotonic() - began
        found: dict[str, Any] = {}
        for one, old, old_bytes in zip(contenders, before, bytes_before, strict=True):
            now = one.cpu_s()
            shares = {name: round(100 * (now[name] - old.get(name, 0.0)) / wall, 3) for name in now}
            found[one.name] = {
                "pct_of_a_core": round(sum(shares.values()), 3),
                "by_program": shares,
                "bytes_to_the_terminal_a_second": round((one.bytes - old_bytes) / wall),
                "alive": one.process.poll() is None,
            }
        nvitop = found["nvitop"]["pct_of_a_core"]
        found["ratio_of_our_pane_to_nvitop"] = round(found["our pane"]["pct_of_a_core"] / nvitop, 2) if nvitop else None
        return found
    finally:
        for one in contenders:
            one.end()


def record(out: Path) -> None:
    """The tools' own words, for test data."""
    shell(out, "query-gpu.csv", " ".join(query_argv("nvidia-smi")))
    shell(out, "stream.csv", f"timeout 5 {' '.join(query_argv('nvidia-smi', every_s=1))} | cat")
    shell(out, "topo.txt", "nvidia-smi topo -m; echo; nvidia-smi nvlink --status; nvidia-smi -L; nvidia-smi --version")
    shell(out, "dmesg.txt", "dmesg | grep -a -i -e nvrm -e nvidia | tail -n 40")
    # Does the stream end when nobody reads? Its pid after its reader has gone:
    began = time.monotonic()
    with subprocess.Popen(query_argv("nvidia-smi", every_s=1), stdout=subprocess.PIPE) as stream:
        assert stream.stdout is not None
        os.read(stream.stdout.fileno(), 100)
        first_s = time.monotonic() - began
        stream.stdout.close()
        closed = time.monotonic()
        try:
            status: int | str = stream.wait(10)
        except subprocess.TimeoutExpired:
            status = "still there after 10 s"
            stream.kill()
        (out / "stream-end.txt").write_text(
            f"first bytes through a pipe after {first_s:.2f} s; after its reader left: status {status} "
            f"within {time.monotonic() - closed:.2f} s\n"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=12)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    record(args.out)
    gpus = len(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.splitlines())
    holders = [hold("cuda:0", 20, True, ours=True), hold(f"cuda:{gpus - 1}", 5, False, ours=False, user=65534)]
    try:
        shell(args.out, "compute-apps.csv",
              "nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv,noheader,nounits; "
              "nvidia-smi; nvidia-smi pmon -c 1")  # fmt: skip
        shell(args.out, "query-gpu-busy.csv", " ".join(query_argv("nvidia-smi")))
        shell(args.out, "gpus.json", f"cd {ROOT} && {sys.executable} -m specconsole gpus --json", 30)
        try:
            cost = costs(args.seconds)
            (args.out / "costs.json").write_text(json.dumps(cost, indent=1))
            print("costs", json.dumps(cost))
        except OSError as error:  # the comparison is worth having without it
            print("no costs:", error)
        result = asyncio.run(compare(args.out, args.rounds, holders[1], holders[0]))
        (args.out / "comparison.json").write_text(json.dumps(result, indent=1))
        print("agreement", json.dumps(result["agreement"]))
        print("killed", json.dumps(result["killed"]), "still held by", result["still_held_by"])
        print((args.out / "report.txt").read_text())
    finally:
        for holder in holders:
            holder.kill()


if __name__ == "__main__":
    main()
