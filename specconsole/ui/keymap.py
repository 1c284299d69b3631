"""Every action of the window, its keys, and the person's own keys from `keys.toml`.

Lower-case keys look; upper-case keys change something and ask first. The footer, the help, the palette and the
bindings are all drawn from this one table.
"""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, NamedTuple

from textual.binding import Binding

from specconsole.errors import BadInputError

Scope = Literal["any", "log", "launches", "hosts", "results"]


class Action(NamedTuple):
    """One thing that a key, a click, the palette or a form can do."""

    action_id: str
    keys: str
    """Comma-separated Textual key names; the first one is shown."""
    label: str
    """One or two words for the footer."""
    help: str
    """One sentence for the help and the palette."""
    scope: Scope = "any"
    """The pane that it belongs to; `any` acts wherever the focus is."""
    changes: bool = False
    """True when it changes something on a host: asks first, off with --read-only."""
    footer: int = 0
    """Place in the footer, 1 first; 0 stays out of it."""

    @property
    def shown_key(self) -> str:
        return key_label(self.keys.split(",")[0])


_NAMES = {
    "slash": "/", "question_mark": "?", "exclamation_mark": "!", "escape": "esc", "ctrl+p": "^p", "space": "space",
    "semicolon": ";", "left_square_bracket": "[", "right_square_bracket": "]", "greater_than_sign": ">",
    "less_than_sign": "<", "up": "↑", "down": "↓", "left": "←", "right": "→", "enter": "⏎", "pageup": "pgup",
    "pagedown": "pgdn", "full_stop": ".", "comma": ",", "backslash": "\\", "number_sign": "#",
}  # fmt: skip


def key_label(key: str) -> str:
    """How a key stands in the footer: `slash` is `/`, `ctrl+r` is `^r`."""
    if key in _NAMES:
        return _NAMES[key]
    return "^" + key[5:] if key.startswith("ctrl+") else key


ACTIONS: tuple[Action, ...] = (
    # What every pane has.
    Action("launch", "l", "launch", "Choose a profile and a host, change values, and start a server.", footer=1),
    Action("edit", "e", "edit", "Open the launch form with the selected launch's settings.", footer=2),
    Action("relaunch", "R", "relaunch", "Stop the selected launch if it runs and start it again, with a card's change "
           "if one is proposed.", changes=True, footer=3),
    Action("stop", "K", "stop", "Stop the selected launch and verify that nothing is left.", changes=True, footer=4),
    Action("bench", "b", "bench", "Measure the selected launch.", footer=5),
    Action("find", "slash", "find", "Search the log while you type.", footer=6),
    Action("error", "exclamation_mark", "error", "Go to the line of the cause, or to the last error.", footer=7),
    Action("follow", "f", "follow", "Follow the log's end, or hold still.", footer=8),
    Action("diff", "d", "diff", "Compare the selected launch with another one: flags, settings, phases, results.",
           footer=9),
    Action("account", "i", "settings", "Show how the selected launch really runs, beside what was asked.", footer=10),
    Action("probes", "a", "probes", "Plot the numbers that the profile's probes read from the log."),
    Action("help", "question_mark,f1", "help", "Explain the pane in focus and its keys.", footer=20),
    Action("palette", "ctrl+p", "palette", "Search everything that can be done.", footer=21),
    Action("history", "h", "history", "Every launch so far: search, open, compare, note, tag, launch again."),
    Action("cancel", "escape", "cancel", "End selecting, the search, or what runs in the background, in that order."),
    Action("jump", "semicolon", "jump", "Show a letter on every pane and tab, and go to the one you press."),
    Action("attach", "A", "attach", "Watch a server that somebody started by hand.", changes=True),
    Action("add-host", "H", "add host", "Add a GPU host reached over SSH.", changes=True),
    Action("trust-key", "T", "trust key", "Look at an unknown host key and accept it.", changes=True),
    Action("evidence", "E", "evidence", "Collect what explains a stall or a failure into a folder.", changes=True),
    Action("next-launch", "right_square_bracket", "next launch", "Select the next launch."),
    Action("previous-launch", "left_square_bracket", "previous launch", "Select the launch before."),
    Action("close-tab", "x", "close tab", "Close the log tab of the selected launch; the launch goes on."),
    Action("forget", "D", "drop", "Drop an ended launch from the list; its folder on the host stays.", changes=True),
    Action("theme", "f2", "theme", "Choose another theme."),
    Action("card", "c", "card", "Fold or unfold the failure card."),
    Action("quit", "q", "quit", "Leave the window. Servers, logs and results go on as they are."),
    Action("pane-log", "1", "log", "Go to the log."),
    Action("pane-launches", "2", "launches", "Go to the launches."),
    Action("pane-results", "3", "results", "Go to the results."),
    Action("pane-hosts", "4", "hosts", "Go to the hosts."),
    # The log's own.
    Action("log-down", "j,down", "down", "One line down.", "log"),
    Action("log-up", "k,up", "up", "One line up.", "log"),
    Action("log-page-down", "pagedown,space", "page down", "One page down.", "log"),
    Action("log-page-up", "pageup", "page up", "One page up.", "log"),
    Action("log-top", "g,home", "top", "Go to the first line.", "log"),
    Action("log-end", "end", "end", "Go to the last line and follow.", "log"),
    Action("log-left", "left", "left", "Move the text right by eight columns.", "log"),
    Action("log-right", "right", "right", "Move the text left by eight columns.", "log"),
    Action("next-match", "n", "next match", "Go to the next match.", "log", footer=10),
    Action("previous-match", "m", "previous match", "Go to the match before.", "log"),
    Action("ranks", "r", "ranks", "Show the lines of chosen ranks.", "log", footer=11),
    Action("level", "v", "level", "Show all lines, without polls, warnings and errors, or errors.", "log", footer=12),
    Action("fold", "z", "fold", "Show a line that all ranks print once, with a count.", "log", footer=13),
    Action("wrap", "w", "wrap", "Wrap long lines, or cut them at the edge.", "log", footer=14),
    Action("next-phase", "p", "next phase", "Go to where the next phase starts.", "log", footer=15),
    Action("previous-phase", "u", "previous phase", "Go to where the phase before starts.", "log"),
    Action("time", "t", "time", "Go to a time of day.", "log", footer=16),
    Action("select", "s", "select", "Start selecting lines here; move, then copy.", "log"),
    Action("copy", "y", "copy", "Copy the selected lines, or the one at the top, to the clipboard.", "log", footer=17),
    # Lists.
    Action("list-down", "j,down", "down", "Select the next row.", "launches"),
    Action("list-up", "k,up", "up", "Select the row above.", "launches"),
    Action("list-open", "enter", "open log", "Open the selected launch's log in a tab.", "launches", footer=10),
    Action("note", "n", "note", "Write a note on the selected launch; h shows all of them.", "launches", footer=11),
    Action("tags", "t", "tags", "Put tags on the selected launch, or take them off.", "launches", footer=12),
    Action("host-down", "j,down", "down", "Select the next host.", "hosts"),
    Action("host-up", "k,up", "up", "Select the host above.", "hosts"),
    Action("gpus", "enter", "GPUs", "Show one GPU of the selected host in full.", "hosts", footer=9),
    Action("holders", "w", "holders", "Show who holds ports and GPUs of the selected host; what is not ours can be "
           "ended there, once it is typed.", "hosts", footer=12),
    Action("reconnect", "r", "reconnect", "Try to reach the selected host now.", "hosts", footer=10),
    Action("found", "o", "found", "Offer the engines that run on the selected host and are not watched.", "hosts",
           footer=11),
    Action("remove-host", "X", "remove", "Stop watching the selected host; its servers go on.", "hosts", changes=True),
    Action("results-open", "enter", "open", "All results in full: sort, filter, pin a baseline, look at requests.",
           "results", footer=9),
    Action("end-bench", "X", "end bench", "End a benchmark that is under way; what it measured is kept.", "results",
           changes=True, footer=10),
    Action("results-down", "j,down", "down", "Scroll down.", "results"),
    Action("results-up", "k,up", "up", "Scroll up.", "results"),
    Action("results-right", "right", "columns", "Show the next concurrency levels.", "results"),
    Action("results-left", "left", "columns back", "Show the concurrency levels before.", "results"),
)  # fmt: skip

BY_ID: dict[str, Action] = {action.action_id: action for action in ACTIONS}


def read_keymap(path: Path) -> tuple[Action, ...]:
    """The table with the person's keys in it; the table as it is when there is no such file.

    The file has one table, `[keys]`, with `action = "key"` or `action = "key,other"`. Raises BadInputError for
    an unknown action, an unreadable file, or a key that two actions of one pane would share.
    """
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return ACTIONS
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInputError(f"not TOML: {error}", where=str(path)) from error
    except OSError as error:
        raise BadInputError(error.strerror or "can't be read", where=str(path)) from error
    keys = data.get("keys", {})
    if not isinstance(keys, dict) or set(data) - {"keys"}:
        raise BadInputError("only the table [keys] belongs here", where=str(path))
    for name, value in keys.items():
        if name not in BY_ID:
            near = get_close_matches(name, BY_ID, n=1)
            raise BadInputError(f"no action is called {name!r}", where=str(path), try_=near[0] if near else "")
        if not isinstance(value, str) or not value.strip():
            raise BadInputError(f'{name}: a key\'s name is wanted, as in "ctrl+r"', where=str(path))
    actions = tuple(
        action._replace(keys=keys[action.action_id].replace(" ", "")) if action.action_id in keys else action
        for action in ACTIONS
    )
    _refuse_shared_keys(actions, path)
    return actions


def _refuse_shared_keys(actions: tuple[Action, ...], path: Path) -> None:
    taken: dict[tuple[str, str], str] = {}
    for action in actions:
        for key in action.keys.split(","):
            for scope in (
                (action.scope, "any") if action.scope != "any" else ("any", "log", "launches", "hosts", "results")
            ):
                other = taken.get((scope, key))
                if other is not None and other != action.action_id:
                    raise BadInputError(f"{key!r} is wanted by {other} and by {action.action_id}", where=str(path))
            taken[(action.scope, key)] = action.action_id


def bindings(actions: tuple[Action, ...], scope: Scope) -> list[Binding]:
    """Textual bindings of one scope; each runs `act(action_id)` on the console screen."""
    return [
        Binding(action.keys, f"screen.act('{action.action_id}')", action.label, show=False, id=action.action_id)
        for action in actions
        if action.scope == scope
    ]
