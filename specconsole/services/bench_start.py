"""Starts one run: everything it needs goes into a folder on the host, and a process of its own begins there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from specconsole import __version__
from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.measuring.bench_shape import BenchShape
from specconsole.core.measuring.gpu_clocks import EVERY_S, beside_argv
from specconsole.core.measuring.point import Limits
from specconsole.core.measuring.run_plan import BenchOrder, RunPlan, bodies_needed, plan_json, plan_run
from specconsole.core.measuring.workload import Prompt, Workload, build_bodies, hash_of
from specconsole.errors import BadInputError
from specconsole.ports import Transport
from specconsole.services.bench_target import Target

PROFILE = "bench"
OUT = "out.jsonl"

# $1: the server's own environment or "", $2: an interpreter to try first or "". Prints the first that is 3.9 or newer.
FIND_PYTHON = """\
{
venv=$1
case $venv in '~/'*) venv=$HOME/${venv#'~/'} ;; esac
for one in "$2" python3 ${venv:+"$venv/bin/python3"} ${venv:+"$venv/bin/python"} python /usr/bin/python3; do
  [ -n "$one" ] || continue
  "$one" -c 'import sys, json, selectors; sys.exit(sys.version_info < (3, 9))' </dev/null >/dev/null 2>&1 || continue
  command -v -- "$one"; exit 0
done
printf 'none\\n'
}
"""


class NoPythonError(BadInputError):
    """The host has no interpreter that could run the load generator; a run from here would go through the tunnel."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that could start, looked at first."""

    target: Target
    plan: RunPlan
    order: BenchOrder
    bodies: tuple[dict[str, Any], ...]
    metrics: bool
    budget_s: float | None
    """How long it will take by what was measured before; None when nothing like it was."""
    notes: tuple[str, ...] = ()
    """What the person should know before it starts."""


def prepare(
    target: Target,
    order: BenchOrder,
    workload: Workload,
    prompts: list[Prompt],
    *,
    model: str,
    metrics: bool,
    speeds: Mapping[int, float],
) -> Prepared:
    """The plan and the bodies. Raises BadInputError."""
    plan = plan_run(workload, order, target.engine)
    bodies = build_bodies(plan.workload, prompts, model=model, count=bodies_needed(plan), engine=target.engine)
    notes: list[str] = []
    if workload.kind == "random-tokens":
        notes.append("random tokens: what acceptance comes out means nothing")
    if workload.ignore_eos:
        notes.append("ignore_eos: tokens forced after the end of a text inflate acceptance")
    if not metrics:
        notes.append("the server shows no /metrics: acceptance comes from its answers, or stays unknown")
    repeats = max((point.repeat for point in plan.points), default=0) + 1
    if repeats < 3:
        notes.append(
            f"{repeats} repeat{'s' if repeats > 1 else ''}: too few to tell noise from a difference (3 or more)"
        )
    cap = target.conditions().running_cap
    over = [
        p.concurrency
        for p in plan.points
        if p.concurrency and cap and p.concurrency > cap * target.conditions().dp_size
    ]
    if over:
        notes.append(f"the server runs at most {cap} at once: C={', '.join(map(str, sorted(set(over))))} will queue")
    return Prepared(target, plan, order, tuple(bodies), metrics, plan.budget_s(speeds), tuple(notes))


async def find_python(transport: Transport, target: Target, own: str) -> str:
    """An interpreter on the host that can run the load generator. Raises NoPythonError."""
    done = await transport.run_sh(FIND_PYTHON, [target.environment or "", own])
    found = done.stdout.decode("utf-8", "replace").strip().splitlines()
    if not found or found[-1] == "none":
        raise NoPythonError(
            "no python3 of 3.9 or newer is on this host, so the load generator can't run there",
            where=transport.host,
            try_="--from-here (through the tunnel, and marked so)",
        )
    return found[-1]


def shape_of(
    prepared: Prepared, bench_id: str, *, server_host: str, gpu_names: tuple[str, ...], tunnel: bool
) -> BenchShape:
    """What is written down about the run."""
    plan, order, target = prepared.plan, prepared.order, prepared.target
    workload = plan.workload
    conditions = replace(
        target.conditions(),
        host=server_host,
        gpu_names=gpu_names,
        through_tunnel=tunnel,
        workload=workload.name,
        workload_hash=hash_of(prepared.bodies),
        workload_marks=workload.marks,
        sampling=asdict(workload.sampling),
        cache=plan.cache,
    )
    return BenchShape(
        result_id=bench_id,
        name=target.name,
        launch_id=target.launch_id,
        workload=workload.name,
        points=plan.points,
        conditions=conditions,
        limits=Limits(workload.limit_ttft_s, workload.limit_tpot_s, workload.limit_e2e_s),
        until_ci_ratio=order.until_ci_ratio,
        snapshots=prepared.metrics,
        note=order.note,
        log_path="" if tunnel else target.log_path,
        probes=target.probes,
        budget_s=prepared.budget_s,
        server_host=server_host,
    )


def run_files(
    prepared: Prepared, loadgen_zip: bytes, *, address: str, port: int, log_file: str, gpus: bool
) -> dict[str, bytes]:
    """What goes into the run's folder; the key is a file of its own that the load generator removes once read."""
    target = prepared.target
    plan = plan_json(
        prepared.plan,
        engine=target.engine,
        host=address,
        port=port,
        auth_file="auth" if target.key else None,
        metrics=prepared.metrics,
        keep_text=prepared.order.keep_text,
        log_file=log_file or None,
    )
    if gpus:
        plan["beside"] = {"argv": beside_argv(), "every_s": EVERY_S}
    plan["host_header"] = f"{target.address}:{target.port}"
    if target.tls:
        plan["tls"] = {"server_name": target.address, "ca_file": "ca.pem" if target.ca_pem else None}
    files = {
        "loadgen.zip": loadgen_zip,
        "requests.jsonl": "".join(json.dumps(body, ensure_ascii=False) + "\n" for body in prepared.bodies).encode(),
        "plan.json": json.dumps(plan).encode(),
    }
    if target.ca_pem:
        files["ca.pem"] = target.ca_pem.encode()
    if target.key:
        files["auth"] = target.key.encode()
    return files


def run_spec(shape: BenchShape, folder: str, python: str, *, owner: str, client_id: str, now_s: float) -> LaunchSpec:
    """The run as a process to start; its shape travels in `settings`."""
    return LaunchSpec(
        launch_id=shape.result_id,
        profile=PROFILE,
        engine="other",
        argv=(python, "-m", "loadgen", "plan.json", OUT),
        env={"PYTHONPATH": f"{folder}/loadgen.zip", "PYTHONDONTWRITEBYTECODE": "1"},
        working_dir=folder,
        description=f"{shape.workload} on {shape.name}",
        grace_s=15.0,
        settings={"bench": shape.to_json()},
        owner=owner,
        client_id=client_id,
        requested_at_s=now_s,
        console_version=__version__,
    )
