"""What a launch waits for on its host: the line that `queue_script` writes -> values and words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specconsole.core.launching.masking import mask_text
from specconsole.core.launching.stopping import describe_age

ReasonKind = Literal["ahead", "promised", "port", "gpu", "memory", "lock", "tool"]


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds something which is waited for."""

    pid: int | None
    """None when it can't be seen from this account."""
    user: str = ""
    launch_id: str = ""
    """Of the launch that it belongs to; "" when it is no launch of ours, or that can't be seen."""
    command: str = ""
    """What looks like a key is masked."""
    memory_bytes: int | None = None
    """On the GPU that is waited for; None elsewhere, and where the tool does not say."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that is not free."""

    kind: ReasonKind
    """`ahead`: another launch waits longer; `promised`: one that runs was given it and has not taken it yet; `lock`: a
    console starts something there just now; `tool`: it can't be seen whether it is free."""
    what: str
    """`GPU 0`, `port 30000`, `host memory`, or the other launch's profile."""
    launch_id: str = ""
    """Of the launch that is ahead, or was promised it."""
    free_bytes: int | None = None
    needed_bytes: int | None = None
    """None: not known, so next to nothing may be in use."""
    holders: tuple[Holder, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """As of the waiter's last look."""

    since_s: float | None
    """Seconds that it waits already; None while unknown."""
    looked_ago_s: float | None
    """Seconds since its last look, both by the host's uptime; None before the first."""
    looks: int = 0
    free_once: bool = False
    """The last look found everything free; the next one decides."""
    reasons: tuple[Reason, ...] = ()
    needs: tuple[str, ...] = ()
    """`GPU 0 (73728 MiB free)`, `port 30000`."""


_MIB = 1024 * 1024
LATE_S = 90.0
"""A waiter that has not looked for so long hangs: its GPU tool is stopped after 20 s, and it looks every 10."""


def parse_waiting(
    line: str, *, uptime_s: float | None, began_uptime_s: float | None, needs: tuple[str, ...] = ()
) -> Waiting:
    """The file `waiting`, "" before the first look. What is cut or foreign in it is left out."""
    since = _between(uptime_s, began_uptime_s)
    looked: float | None = None
    looks, free = 0, False
    reasons: list[Reason] = []
    for part in line.split("\t") if line else ():
        key, _, text = part.partition("=")
        words = text.split(" ")
        if key == "at":
            looked = _between(uptime_s, float(text) if text.isdigit() else None)
        elif key == "looks":
            looks = int(text) if text.isdigit() else 0
        elif key == "free":
            free = True
        elif key == "ahead":
            reasons.append(Reason("ahead", text.partition(" ")[2] or "another launch", words[0]))
        elif key == "promised" and len(words) >= 3:
            reasons.append(Reason("promised", _name(words[0]), words[1], detail=" ".join(words[3:])))
        elif key == "gpu" and len(words) >= 3:
            reasons.append(Reason("gpu", f"GPU {words[0]}", "", _mib(words[1]), _mib(words[2])))
        elif key == "memory" and len(words) >= 2:
            reasons.append(Reason("memory", "host memory", "", _mib(words[0]), _mib(words[1])))
        elif key == "port":
            reasons.append(Reason("port", f"port {words[0]}", holders=(_holder(words[1:], None),)))
        elif key == "on" and len(words) >= 2:
            _join(reasons, f"GPU {words[0]}", _holder(words[2:], _mib(words[1])))
        elif key == "lock":
            reasons.append(Reason("lock", f"port {words[0]}", detail=" ".join(words[1:])))
        elif key == "tool":
            reasons.append(Reason("tool", "GPUs", detail=text))
    named = tuple(_name(word) for word in needs)
    return Waiting(since, looked, looks, free and not reasons, tuple(reasons), named)


def _between(now_s: float | None, then_s: float | None) -> float | None:
    return None if now_s is None or then_s is None else max(0.0, now_s - then_s)


def _mib(text: str) -> int | None:
    return int(text) * _MIB if text.isdigit() else None


def _name(word: str) -> str:
    """`gpu=0/81920` -> `GPU 0`."""
    thing, _, _ = word.partition("/")
    kind, _, name = thing.partition("=")
    return {"gpu": f"GPU {name}", "port": f"port {name}"}.get(kind, "host memory")


def _holder(words: list[str], memory: int | None) -> Holder:
    pid, user, mark, *command = [*words, "", "", ""][: max(4, len(words))]
    return Holder(
        int(pid) if pid.isdigit() else None,
        "" if user == "-" else user,
        "" if mark == "-" else mark,
        mask_text(" ".join(command).strip()),
        memory,
    )


def _join(reasons: list[Reason], what: str, holder: Holder) -> None:
    for place in range(len(reasons) - 1, -1, -1):
        one = reasons[place]
        if one.kind == "gpu" and one.what == what:
            reasons[place] = Reason(
                one.kind, one.what, one.launch_id, one.free_bytes, one.needed_bytes, (*one.holders, holder)
            )
            return


def _gib(number: int | None) -> str:
    return "?" if number is None else f"{number / 2**30:.1f}"


def holder_text(holder: Holder) -> str:
    """`pid 71 (bob): python train.py, 60.1 GiB`."""
    if holder.pid is None:
        return "a process of another user"
    whose = f"launch {holder.launch_id}" if holder.launch_id else holder.user or "unknown user"
    command = holder.command if len(holder.command) <= 100 else f"{holder.command[:99]}…"
    held = "" if holder.memory_bytes is None else f", {_gib(holder.memory_bytes)} GiB"
    return f"pid {holder.pid} ({whose}){f': {command}' if command else ''}{held}"


def reason_text(reason: Reason) -> str:
    """One line for a person."""
    holders = "; ".join(holder_text(one) for one in reason.holders)
    match reason.kind:
        case "ahead":
            return f"behind {reason.what} ({reason.launch_id})"
        case "promised":
            return (
                f"{reason.what} was given to {reason.detail or 'a launch'} ({reason.launch_id}), which has not taken it"
            )
        case "port":
            return f"{reason.what} is held by {holders}"
        case "gpu":
            wanted = (
                "nothing may be in use" if reason.needed_bytes is None else f"needs {_gib(reason.needed_bytes)} GiB"
            )
            who = holders or "nobody that can be seen"
            return f"{reason.what}: {wanted}, {_gib(reason.free_bytes)} free, held by {who}"
        case "memory":
            return f"host memory: needs {_gib(reason.needed_bytes)} GiB, {_gib(reason.free_bytes)} free"
        case "lock":
            return f"{reason.detail or 'another console'} starts a server on {reason.what}"
    return f"can't see what is free: {reason.detail}"


def waiting_text(waiting: Waiting) -> str:
    """What it waits for, in one line; the first reasons, and how many more."""
    since = "" if waiting.since_s is None else f" for {describe_age(waiting.since_s)}"
    if waiting.looked_ago_s is not None and waiting.looked_ago_s > LATE_S:
        return f"queued{since}; its waiter has not looked for {describe_age(waiting.looked_ago_s)}"
    if waiting.free_once:
        return f"queued{since}; everything is free, looking once more"
    if not waiting.reasons:
        needs = ", ".join(waiting.needs)
        return f"queued{since}; {f'waits for {needs}' if needs else 'not looked yet'}"
    shown = [reason_text(one) for one in waiting.reasons[:3]]
    more = len(waiting.reasons) - len(shown)
    return f"queued{since}: {'; '.join(shown)}{f'; and {more} more' if more else ''}"
