"""What panes tell the screen: a person picked, pressed or clicked something."""

from __future__ import annotations

from textual.message import Message


class ActionAsked(Message):
    """Do this action, as if its key had been pressed."""

    def __init__(self, action_id: str) -> None:
        super().__init__()
        self.action_id = action_id


class LaunchPicked(Message):
    """Select this launch; `keep` opens its log in a tab."""

    def __init__(self, launch_id: str, *, keep: bool) -> None:
        super().__init__()
        self.launch_id = launch_id
        self.keep = keep


class HostPicked(Message):
    """Select this host."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
