"""A host's record may not make this console read its own files: the places of secrets are known here or not at all."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from specconsole.services.known_places import KnownPlaces


def test_places_are_kept_and_their_values_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "key"
    key.write_text("sk-planted\n")
    os.chmod(key, 0o600)
    monkeypatch.setenv("THERE", "from-the-shell")
    places = KnownPlaces(tmp_path / "state")
    wanted = {"A": f"file:{key}", "B": "env:THERE", "C": "env:NOT_SET", "D": "command:cat /etc/passwd"}
    places.remember("l-1", wanted)
    assert places.of("l-1") == wanted
    assert places.values_at_hand("l-1") == {"A": "sk-planted", "B": "from-the-shell"}
    written = tmp_path / "state" / "l-1.json"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert "planted" not in written.read_text()


def test_what_was_not_started_here_or_is_damaged_gives_nothing(tmp_path: Path) -> None:
    places = KnownPlaces(tmp_path)
    assert places.values_at_hand("somebody-elses") == {}
    (tmp_path / "l-2.json").write_text("[1")
    assert places.of("l-2") == {}
    places.remember("l-3", {})
    assert not (tmp_path / "l-3.json").exists()


@pytest.mark.may_block("the test writes the record that a hostile host would hold")
async def test_a_record_that_names_a_private_file_is_not_followed(tmp_path: Path, isolated_home: Path) -> None:
    """The record on the host is edited to name a private key of this machine: relaunching refuses, nothing is read."""
    from specconsole.core.launching.spec import LaunchSpec
    from specconsole.errors import BadInputError
    from specconsole.services.launch_commands import LaunchCommands

    private = isolated_home / "id_rsa"
    private.write_text("PRIVATE")
    os.chmod(private, 0o600)
    spec = LaunchSpec("l-9", "no-such-profile", "other", ("x",), secret_places={"API_KEY": f"file:{private}"})

    class Parts:
        @staticmethod
        def read_profile(name: str) -> object:
            raise BadInputError("no profile of that name")

    class Supervisor:
        places = KnownPlaces(tmp_path / "state")
        parts = Parts()

    commands = LaunchCommands.__new__(LaunchCommands)
    commands._sup = Supervisor()  # type: ignore[assignment]  # what the method looks at, and nothing more
    commands._parts = Parts()  # type: ignore[assignment]  # likewise
    with pytest.raises(BadInputError, match="does not know where the secret API_KEY comes from"):
        commands._places_again(spec, "gpu-a")
    assert Supervisor.places.values_at_hand("l-9") == {}
    assert json.loads(spec.to_json_line())["secret_places"]["API_KEY"].endswith("id_rsa")
