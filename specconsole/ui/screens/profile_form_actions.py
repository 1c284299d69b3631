"""The form's actions and keys: its footer, its help and its bindings are drawn from this table."""

from __future__ import annotations

from textual.binding import Binding

from specconsole.ui.keymap import Action

HELP = (
    "One line a setting. ● is this profile's own, the others are inherited, and grey is what the server does when "
    "nothing is given. Marks: ✗ refused, ↻ overridden by the server, ! a warning, · a note. What is typed is judged "
    "at once; what only the host knows comes in beside it. Leaving changes no server."
)

ACTIONS: tuple[Action, ...] = (
    Action("edit", "enter", "edit", "Type a value in place; empty leaves it to the server.", footer=1),
    Action("toggle", "space", "on/off", "Turn a switch on or off, or edit anything else.", footer=0),
    Action("find", "slash", "find or add", "Go to a setting by any part of its name, or add one of the server's flags.",
           footer=2),
    Action("launch", "L,ctrl+l", "launch", "Start a server with what is shown; asks where something stands against it.",
           footer=3),
    Action("save", "s", "save", "Write it to a file of its own; a file written by hand stays as it is.", footer=4),
    Action("fix", "f", "fix", "Make the change that the finding in focus proposes.", footer=5),
    Action("undo", "u", "undo", "Take the last change back.", footer=6),
    Action("put-back", "x,delete", "put back", "Back to the parent's value; a second time: to none.", footer=7),
    Action("next-finding", "n", "next finding", "Go to the next finding and its setting.", footer=8),
    Action("host", "h", "host", "Choose the host that it is launched on.", footer=9),
    Action("when-free", "w", "when free", "Wait on the host until GPUs and ports are free, then start.", footer=10),
    Action("text", "e", "as text", "Edit the profile's own TOML in $EDITOR.", footer=11),
    Action("redo", "U,ctrl+r", "redo", "Make the change again that was taken back."),
    Action("save-as", "S", "save as", "Write it under another name."),
    Action("previous-finding", "N", "finding before", "Go to the finding before."),
    Action("checks", "c", "findings", "Show every finding in full."),
    Action("look", "p", "look again", "Look at the host again now, or call the look off."),
    Action("holders", "o", "holders", "Show who holds the port or the GPUs that the finding in focus names."),
    Action("copy", "y", "copy", "Copy the command line to the terminal's clipboard."),
    Action("command", "v", "command", "Show the command line in full, or as much as there is room for."),
    Action("next-section", "tab", "section", "Go to the next section."),
    Action("previous-section", "shift+tab", "section before", "Go to the section before."),
    Action("section-1", "1-7", "section", "Go to a section by its number."),
    Action("down", "j,down", "down", "Next setting."),
    Action("up", "k,up", "up", "Setting before."),
    Action("page-down", "pagedown", "page down", "One page down."),
    Action("page-up", "pageup", "page up", "One page up."),
    Action("top", "g,home", "top", "First setting."),
    Action("bottom", "G,end", "bottom", "Last setting."),
    Action("next-value", "right", "next value", "The next choice, or one more."),
    Action("previous-value", "left", "value before", "The choice before, or one less."),
    Action("help", "question_mark,f1", "help", "Explain the form and its keys.", footer=20),
    Action("leave", "escape,q", "leave", "Go back; asks when something is not saved.", footer=21),
)  # fmt: skip

BY_ID = {action.action_id: action for action in ACTIONS}


def form_bindings() -> list[Binding]:
    """Textual bindings; each runs `act(action_id)` on the form."""
    found = [
        Binding(action.keys, f"act('{action.action_id}')", action.label, show=False, priority=action.keys == "L,ctrl+l")
        for action in ACTIONS
        if action.action_id not in ("section-1", "launch")
    ]
    found += [Binding(str(number), f"act('section-{number}')", show=False) for number in range(1, 8)]
    found.append(Binding("L", "act('launch')", show=False))
    # Also while a value is being typed: it is taken first.
    found.append(Binding("ctrl+l", "act('launch')", show=False, priority=True))
    return found
