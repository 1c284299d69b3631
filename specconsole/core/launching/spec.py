"""A launch as it was asked for: everything that a start needs, resolved, and its form in the launch folder.

One line of JSON on the host (`requested.json`), so that any console of the account can show and repeat it.
Secrets are in it by name only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from specconsole.errors import BadInputError

SCHEMA = 1
_ANY_ADDRESS = ("", "0.0.0.0", "::", "[::]", "*")  # noqa: S104 - compared with, never bound


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """One start of one server."""

    launch_id: str
    profile: str
    engine: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    secret_places: Mapping[str, str] = field(default_factory=dict)
    """Variable -> where the console that launched it found the value; never the value."""
    command: tuple[str, ...] = ()
    """The profile's command, without flags."""
    environment: str | None = None
    """Folder of a Python environment on the host whose `bin` goes first on PATH."""
    working_dir: str | None = None
    bind: str = "127.0.0.1"
    port: int | None = None
    model: str | None = None
    draft_model: str | None = None
    health_path: str | None = None
    health_timeout_s: float | None = None
    health_prompt: str | None = None
    description: str = ""
    grace_s: float = 20.0
    tags: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings that made `argv`, overrides applied."""
    owner: str = ""
    """`user@client-machine` of the person who asked for it."""
    client_id: str = ""
    """The console's installation that asked, so that two people of one account name are told apart."""
    requested_at_s: float = 0.0
    """Client's wall clock, seconds since the epoch."""
    console_version: str = ""
    adopted: bool = False
    """Somebody started it by hand and it is only watched: its session is theirs, and it gets no request unasked."""
    log_path: str = ""
    """Where an adopted server logs; "" for the launch folder's own log."""
    log_command: tuple[str, ...] = ()
    """What prints an adopted server's log where there is no file."""

    probes: Mapping[str, str] = field(default_factory=dict)
    """Numbers that are read from its log, by name: see `probe_pattern`."""
    key_argument_allowed: bool = False
    """A person has agreed that a key goes as an argument; `${secret:NAME}` in `argv` is then that secret."""
    needs: tuple[str, ...] = ()
    """What must be free for it, as `needs.Needs.words`; () where that was not looked at."""
    when_free: bool = False
    """It waits on the host until `needs` are free."""
    look_every_s: float = 10.0
    """Between two looks while it waits."""

    @property
    def reach_address(self) -> str:
        """Where the server is reached from its own host."""
        return "127.0.0.1" if self.bind in _ANY_ADDRESS else self.bind

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Variables that are secrets."""
        return tuple(sorted(self.secret_places))

    def to_json_line(self) -> str:
        """One line without a newline."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, ensure_ascii=True)


def decode_spec(line: str) -> LaunchSpec:
    """Raises BadInputError when the line is cut, is no JSON, or comes from a newer console."""
    try:
        data = json.loads(line)
    except ValueError:
        raise BadInputError("requested.json is not whole", where="launch folder") from None
    if not isinstance(data, dict) or not isinstance(data.get("schema"), int):
        raise BadInputError("requested.json is not a launch", where="launch folder")
    if data["schema"] > SCHEMA:
        raise BadInputError(
            f"written by a newer specconsole (schema {data['schema']})", where="launch folder", try_="update"
        )
    known = {f.name for f in fields(LaunchSpec)}
    shape = {key: value for key, value in data.items() if key in known}
    for key in ("argv", "tags", "command", "log_command", "needs"):
        shape[key] = tuple(shape.get(key) or ())
    try:
        return LaunchSpec(**shape)
    except TypeError:
        raise BadInputError("requested.json lacks a field", where="launch folder") from None
