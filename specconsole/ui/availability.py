"""Why an action can't be done now: the footer greys by it, a key says it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specconsole.ui.text.launch_text import RUNNING

if TYPE_CHECKING:
    from specconsole.core.views.launch import LaunchView
    from specconsole.ui.desk import Desk
    from specconsole.ui.keymap import Action
    from specconsole.ui.log.session import LogSession

_NEEDS_LAUNCH = {"edit", "relaunch", "stop", "bench", "error", "diff", "evidence", "forget", "close-tab", "card",
                 "account", "probes", "note", "tags", "next-phase", "previous-phase"}  # fmt: skip
_NEEDS_LOG = {"find", "error", "follow", "ranks", "level", "fold", "wrap", "time", "select", "copy", "next-phase",
              "previous-phase", "next-match", "previous-match"}  # fmt: skip
_COMMANDS = {"launch": "launch", "edit": "launch", "relaunch": "relaunch", "stop": "stop", "bench": "bench",
             "attach": "attach", "add-host": "add_host", "trust-key": "trust_key", "evidence": "collect_evidence",
             "end-bench": "bench", "forget": "forget", "remove-host": "remove_host", "reconnect": "reconnect",
             "found": "found_servers"}  # fmt: skip

_OPENS_A_CHANGE = {"launch", "edit", "bench", "found", "note", "tags"}
"""Forms that look, and whose only end is a change."""
_ON_LAUNCH_HOST = {"relaunch", "stop", "bench", "evidence"}
_ON_SELECTED_HOST = {"attach", "found"}


def hidden(action: Action, desk: Desk) -> bool:
    """Whether a read-only console, or a read-only host, leaves nothing of the action: no place shows it then."""
    if not (action.changes or action.action_id in _OPENS_A_CHANGE):
        return False
    return desk.commands.read_only or bool(_kept_host(action.action_id, desk))


def _kept_host(name: str, desk: Desk) -> str:
    """Why the host that an action would change is not to be changed; "" when it is."""
    launch, host = desk.launch, desk.host
    if name in _ON_LAUNCH_HOST and launch is not None:
        return desk.commands.why_no_change(launch.host)
    if name in _ON_SELECTED_HOST and host is not None:
        return desk.commands.why_no_change(host.name)
    if name == "launch" and desk.hosts():
        reasons = [desk.commands.why_no_change(view.name) for view in desk.hosts()]
        return reasons[0] if all(reasons) else ""
    return ""


def reason(action: Action, desk: Desk, session: LogSession | None) -> str:
    """One sentence that says why not; "" when it can be done."""
    name = action.action_id
    if hidden(action, desk):
        return "this console is read-only" if desk.commands.read_only else _kept_host(name, desk)
    if name in ("history", "note", "tags") and desk.commands.history is None:
        return "no history is kept here"
    launch = desk.launch
    if name in _NEEDS_LAUNCH and launch is None:
        return "no launch is selected"
    if name in _NEEDS_LOG and session is None:
        return "no log has arrived yet"
    if name in _COMMANDS and (why := desk.commands.can(_COMMANDS[name])):
        return why
    if launch is not None and (why := _of_launch(name, launch)):
        return why
    if session is not None and (why := _of_log(name, session, launch)):
        return why
    return _of_hosts(name, desk)


def _of_launch(name: str, launch: LaunchView) -> str:
    running = launch.state in RUNNING
    if name == "stop" and not running and not launch.left_over:
        return f"{launch.name} does not run"
    if name in ("stop", "relaunch", "evidence") and (launch.state == "unknown" or launch.stale_since_s is not None):
        return f"{launch.host} can't be reached"
    if name == "relaunch" and launch.state == "stopping":
        return f"{launch.name} is being stopped"
    if name == "bench" and launch.state != "answers":
        return f"{launch.name} does not answer yet"
    if name == "account" and launch.account is None:
        return f"{launch.name} has not said yet how it runs"
    if name == "probes" and not launch.probes:
        return f"the profile of {launch.name} has no [probes]"
    if name == "forget" and running:
        return f"{launch.name} still runs"
    return ""


def _of_log(name: str, session: LogSession, launch: LaunchView | None) -> str:
    reading = launch.reading if launch is not None else None
    if name == "ranks" and (reading is None or len(reading.ranks) < 2):
        return "this log has no ranks to choose from"
    if name == "fold" and (reading is None or len(reading.ranks) < 2):
        return "this log has one rank only"
    if name in ("next-phase", "previous-phase") and (reading is None or not reading.timeline):
        return "no phase was read yet"
    if name in ("next-match", "previous-match"):
        if session.search is None:
            return "nothing was searched; / begins"
        if session.search.done and not session.search.count:
            return "no match"
    return ""


def _of_hosts(name: str, desk: Desk) -> str:
    host = desk.host
    if name == "trust-key" and not any(view.state == "key-unknown" for view in desk.hosts()):
        return "no host shows an unknown key"
    if name in ("remove-host", "reconnect", "found", "holders") and host is None:
        return "no host is selected"
    if name == "gpus" and (host is None or not host.gpus):
        return host.gpu_note if host is not None and host.gpu_note else "no GPU figures of this host yet"
    if name == "remove-host" and host is not None and host.name == "local":
        return "this machine stays"
    if name == "holders" and desk.commands.holders is None:
        return "who holds it can't be looked at here"
    if name in ("found", "holders") and host is not None and host.state != "up":
        return f"{host.name} can't be reached"
    if name in ("launch", "attach") and not desk.hosts():
        return "there is no host yet; H adds one"
    return ""
