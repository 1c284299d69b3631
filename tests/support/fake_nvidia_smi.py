#!/usr/bin/env python3
# ruff: noqa: T201 - a program that prints
"""A stand-in for nvidia-smi, for machines without a GPU: speaks the query, the stream and the short lists.

What it says comes from the folder in FAKE_NVIDIA_SMI: `state.json` is read anew for every round, so a test changes
the GPUs while the stream runs. Every start appends a line to `calls`.
"""

import json
import os
import sys
import time
from pathlib import Path

FOLDER = Path(os.environ["FAKE_NVIDIA_SMI"])


def state():
    while True:
        try:
            return json.loads((FOLDER / "state.json").read_text())
        except (OSError, ValueError):
            time.sleep(0.01)


def defaults(gpu):
    return {
        "uuid": f"GPU-fake-{gpu['index']}", "pci.bus_id": f"00000000:{gpu['index'] + 16:02X}:00.0",
        "name": "NVIDIA Fake", "utilization.gpu": 0, "utilization.memory": 0, "memory.used": 4, "memory.total": 143771,
        "temperature.gpu": 37, "temperature.memory": 40, "power.draw": "82.30", "power.limit": "700.00",
        "clocks.sm": 345, "clocks.max.sm": 1980, "clocks.mem": 3201, "pstate": "P0",
        "clocks_throttle_reasons.active": "0x0000000000000001", "ecc.errors.uncorrected.volatile.total": 0,
        "mig.mode.current": "Disabled",
    } | gpu  # fmt: skip


def print_round(fields, only):
    now = state()
    if now.get("says"):
        print(now["says"], flush=True)
        sys.exit(now.get("exit", 9))
    gpus = [defaults(gpu) for gpu in now["gpus"]]
    gpus = [gpu for gpu in gpus if not only or gpu["uuid"] in only]
    for gpu in gpus:
        if gpu["index"] in now.get("lost", ()):
            print(f"Unable to determine the device handle for GPU{gpu['pci.bus_id'][4:]}: GPU is lost.", flush=True)
            sys.exit(15)
    for gpu in gpus:
        cells = {"count": len(gpus), **gpu}
        print(", ".join(str(cells[field]) for field in fields))
    sys.stdout.flush()
    return now


def main():
    args = sys.argv[1:]
    with (FOLDER / "calls").open("a") as calls:
        calls.write(" ".join(args) + "\n")
    query = next((arg for arg in args if arg.startswith("--query-gpu=")), None)
    if query == "--query-gpu=driver_version":
        print("580.00.fake")
    elif query:
        fields = query.partition("=")[2].split(",")
        unknown = [field for field in fields if field in state().get("unknown_fields", ())]
        if unknown:
            print(f'Field "{unknown[0]}" is not a valid field to query.\n')
            sys.exit(2)
        only = set(args[args.index("-i") + 1].split(",")) if "-i" in args else set()
        while True:
            print_round(fields, only)
            if "-l" not in args:
                break
            time.sleep(float(os.environ.get("FAKE_NVIDIA_SMI_EVERY_S", args[args.index("-l") + 1])))
    elif args[:1] and args[0].startswith("--query-compute-apps="):
        for app in state().get("apps", ()):
            print(", ".join(str(part) for part in app))
    elif args[:1] == ["topo"]:
        names = [f"GPU{gpu['index']}" for gpu in state()["gpus"]]
        print("\t" + "\t".join(names) + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID")
        for name in names:
            print(name + "\t" + "\t".join(" X " if name == other else "NV18" for other in names) + "\t0-15\t0\t\tN/A")
    elif args[:1] == ["nvlink"]:
        for gpu in state()["gpus"]:
            print(f"GPU {gpu['index']}: NVIDIA Fake (UUID: GPU-fake-{gpu['index']})")
            print("".join(f"\t Link {link}: 26.562 GB/s\n" for link in range(18)), end="")


try:
    main()
except BrokenPipeError:
    os._exit(0)
