"""The demo as text: the whole life of one real server, through the same services as every other launch."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specconsole.core.launching.lifecycle import ENDED
from specconsole.core.measuring.acceptance import Acceptance, from_counters
from specconsole.core.views.launch import LaunchView
from specconsole.demo.counters import spec_counters
from specconsole.demo.measuring import measure, show
from specconsole.demo.traces import processes_marked
from specconsole.errors import ConnectionRefusedAtHostError, SpecconsoleError
from specconsole.services.commands import LaunchOrder

if TYPE_CHECKING:
    from specconsole.services.supervisor import HostTools
    from specconsole.wiring import Console

Say = Callable[[str, str], None]
"""(what it is about, one line about it)."""

PROFILE = "demo"
BASELINE = "demo-baseline"
PROMPTS = (
    "river and stone", "the target verifies", "a wide tree of drafts", "copper lantern", "summer in the harbour",
    "between two bridges",
)  # fmt: skip
TOKENS = 96
ANSWER_TIMEOUT_S = 120.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Generated:
    """What one request brought, by llama.cpp's own `timings`."""

    tokens: int
    tok_s: float
    drafted: int
    accepted: int


async def run_demo(console: Console, say: Say) -> None:
    """Launch, phases, answers, requests, measuring with and without the draft, stop, proof. Raises SpecconsoleError
    where one of them fails.

    Whatever happens in between, the servers are stopped before it returns or raises.
    """
    tools = await console.supervisor.host("local")
    async with running(console, PROFILE, say) as launch_id:
        view = await follow_start(console, launch_id, say)
        await ask(tools, view, say)
        draft = await measure(console, launch_id, say)
    async with running(console, BASELINE, say) as plain_id:
        await console.supervisor.wait(
            plain_id, lambda view: view.state == "answers" or view.state in ENDED, timeout_s=ANSWER_TIMEOUT_S
        )
        plain = await measure(console, plain_id, say)
    show(plain, draft, say)
    for one in (launch_id, plain_id):
        await prove_gone(tools, console.board.launches[one], say)


@asynccontextmanager
async def running(console: Console, profile: str, say: Say) -> AsyncIterator[str]:
    """A launch for the length of a block; also when interrupted, what the demo started, the demo ends."""
    starting = asyncio.ensure_future(
        console.commands.launch(LaunchOrder(profile, "local"), lambda text: say("launch", text))
    )
    try:
        # A start that is interrupted half way would leave a server that nobody knows: it is let finish, then stopped.
        yield await asyncio.shield(starting)
    finally:
        launch_id = await starting
        await console.commands.stop(launch_id, lambda text: say("stop", text))


async def follow_start(console: Console, launch_id: str, say: Say) -> LaunchView:
    """Says every change until it answers. Raises SpecconsoleError when it ends instead, or does not answer in time."""
    say("launch", f"$ {console.board.launches[launch_id].command}")
    began_s = time.monotonic()
    last = ""
    while True:
        view = console.board.launches[launch_id]
        phase = f" ({view.reading.phase})" if view.reading is not None else ""
        now = f"{view.state}{phase}, health: {view.health}"
        if now != last:
            last = now
            say("phases", f"{time.monotonic() - began_s:5.2f} s  {now}")
        if view.state == "answers":
            break
        if view.state in ENDED:
            failure = view.reading.failure if view.reading is not None else None
            cause = f"{failure.failure_class}: {failure.line}" if failure is not None else "see its log"
            raise SpecconsoleError(f"the server {view.state}: {cause}", where=view.log_path or launch_id)
        if time.monotonic() - began_s > ANSWER_TIMEOUT_S:
            raise SpecconsoleError(f"no answer within {ANSWER_TIMEOUT_S:.0f} s", where=view.log_path or launch_id)
        await asyncio.sleep(_POLL_S)
    say("phases", " ▸ ".join(phases(view)) or "none seen in its log")
    after = "" if view.answered_after_s is None else f" {view.answered_after_s:.2f} s after the launch"
    say("answers", f"proven{after}: a process of this launch holds port {view.port}, health 200, {view.health_detail}")
    return view


def phases(view: LaunchView) -> list[str]:
    """`weights (draft) 0.02 s` for each stay in a phase that has a length."""
    timeline = view.reading.timeline if view.reading is not None else ()
    return [
        f"{entry.phase}{f' ({entry.part})' if entry.part else ''} {entry.seconds:.2f} s"
        for entry in timeline
        if entry.seconds is not None and entry.phase not in ("ready", "serving")
    ]


async def ask(tools: HostTools, view: LaunchView, say: Say) -> None:
    """A few requests, and the acceptance that the server's counters give for them."""
    assert view.port is not None
    before = spec_counters(await metrics(tools, view.port))
    done: list[Generated] = []
    for number, prompt in enumerate(PROMPTS, 1):
        one = await generate(tools, view.port, prompt)
        done.append(one)
        share = f"{one.accepted} of {one.drafted} drafted tokens accepted"
        say("requests", f"{number}/{len(PROMPTS)}  {one.tokens} tokens at {one.tok_s:,.0f} tok/s, {share}")
    after = spec_counters(await metrics(tools, view.port))
    # The first token of a request comes from its prefill, not from a decode step.
    acceptance = from_counters(after.since(before), float(sum(one.tokens - 1 for one in done)))
    say("server", describe(acceptance))
    if (acceptance.accepted_drafts, acceptance.proposed_drafts) != (
        sum(one.accepted for one in done),
        sum(one.drafted for one in done),
    ):
        raise SpecconsoleError("the server's counters and its answers disagree about the drafts", where="/metrics")


def describe(acceptance: Acceptance) -> str:
    """One line. Raises SpecconsoleError when nothing was drafted."""
    if acceptance.accept_length is None or not acceptance.proposed_drafts or acceptance.accepted_drafts is None:
        raise SpecconsoleError(f"no acceptance to show: {acceptance.why_not}", where="/metrics")
    positions = " ".join(f"{100 * ratio:.0f}" for ratio in acceptance.per_position_ratio)
    return (
        f"accept length {acceptance.accept_length:.2f} tokens a target step (bonus token included); "
        f"{acceptance.accepted_drafts} of {acceptance.proposed_drafts} drafted tokens accepted "
        f"({100 * acceptance.accepted_drafts / acceptance.proposed_drafts:.0f} %; by position {positions} %), "
        "from its own counters"
    )


async def metrics(tools: HostTools, port: int) -> str:
    answer = await tools.http.get("127.0.0.1", port, "/metrics", timeout_s=10)
    return answer.body.decode("utf-8", "replace")


async def generate(tools: HostTools, port: int, prompt: str) -> Generated:
    """One greedy completion on llama.cpp's own endpoint, whose answer carries `timings`."""
    body: dict[str, Any] = {"prompt": prompt, "n_predict": TOKENS, "temperature": 0, "ignore_eos": True}
    answer = await tools.http.post_json("127.0.0.1", port, "/completion", body, timeout_s=60)
    try:
        timings = json.loads(answer.body)["timings"]
        return Generated(
            int(timings["predicted_n"]), float(timings["predicted_per_second"]),
            int(timings.get("draft_n", 0)), int(timings.get("draft_n_accepted", 0)),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError) as error:
        text = answer.body[:200].decode("utf-8", "replace")
        raise SpecconsoleError(f"HTTP {answer.status}, no completion: {text}", where="/completion") from error


async def prove_gone(tools: HostTools, view: LaunchView, say: Say) -> None:
    """A second look that shares no code with the stop: the marks in /proc, and the port."""
    left = await asyncio.to_thread(processes_marked, view.launch_id)
    if left:
        raise SpecconsoleError(f"still running: {', '.join(f'pid {pid}' for pid in left)}", where=view.launch_id)
    assert view.port is not None
    try:
        _, writer = await tools.transport.open_connection("127.0.0.1", view.port)
    except ConnectionRefusedAtHostError:
        pass
    else:
        writer.close()
        raise SpecconsoleError(f"port {view.port} still answers", where=view.launch_id)
    log = Path(view.log_path) if view.log_path else None
    size = "" if log is None else f"; its log is kept: {log} ({(await asyncio.to_thread(log.stat)).st_size:,} bytes)"
    say("proof", f"no process carries SPECCONSOLE_LAUNCH={view.launch_id}, port {view.port} is refused{size}")
