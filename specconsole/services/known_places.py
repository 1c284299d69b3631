"""Where the secrets of this console's own launches come from, as this console wrote it down when it started them.

A launch's record on its host names the places too, for a person to read. It is never followed: who can write on that
host could name any file or variable of this machine there, and get its value sent to a server of theirs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from specconsole.errors import SpecconsoleError
from specconsole.services.atomic_file import replace_file
from specconsole.services.secret_places import secret_values


class KnownPlaces:
    """One small file a launch (mode 0600, places only, never a value) in the console's own state folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def remember(self, launch_id: str, places: Mapping[str, str]) -> None:
        """Nothing is written for a launch without secrets. Raises SpecconsoleError when it can't be written."""
        if not places:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise SpecconsoleError(f"can't be made: {error.strerror}", where=str(self._folder)) from None
        replace_file(self._folder / f"{launch_id}.json", json.dumps(dict(places)).encode())

    def of(self, launch_id: str) -> dict[str, str]:
        """Variable -> place; {} for a launch that this console did not start, or that has no secrets."""
        try:
            raw = json.loads((self._folder / f"{launch_id}.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return {str(name): str(place) for name, place in raw.items()} if isinstance(raw, dict) else {}

    def values_at_hand(self, launch_id: str) -> dict[str, str]:
        """The values that can be had without running a command. Reads files: not for the loop."""
        found: dict[str, str] = {}
        for name, place in self.of(launch_id).items():
            try:
                found.update(secret_values({name: place}, f"launch {launch_id}", commands=False))
            except SpecconsoleError:
                continue  # the variable is not set in this shell, the file is gone
        return found
