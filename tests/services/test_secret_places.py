"""Where secrets come from; no error ever shows a value."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from specconsole.errors import BadInputError
from specconsole.services.secret_places import secret_values

VALUE = "s3cret-value"


def test_each_place_gives_its_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL", VALUE)
    path = tmp_path / "with blank"
    path.write_text(f"{VALUE}\n")
    path.chmod(0o600)
    places = {"A": "env:LOCAL", "B": f"file:{path}", "C": f"command:{sys.executable} -c 'print(\"{VALUE}\")'"}
    assert secret_values(places, "p", commands=True) == dict.fromkeys("ABC", VALUE)


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(VALUE)
    path.chmod(0o640)
    with pytest.raises(BadInputError, match="mode 0640") as caught:
        secret_values({"A": f"file:{path}"}, "p", commands=True)
    assert "chmod 600" in caught.value.try_
    assert VALUE not in str(caught.value)


def test_a_record_on_a_host_runs_nothing_here(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    with pytest.raises(BadInputError, match="runs no commands here"):
        secret_values({"A": f"command:touch {touched}"}, "launch x", commands=False)
    assert not touched.exists()


@pytest.mark.parametrize("command", ["false", "true", "/no/such", "'open", ""])
def test_a_command_that_fails_is_said(command: str) -> None:
    with pytest.raises(BadInputError, match="the command of the secret A"):
        secret_values({"A": f"command:{command}"}, "p", commands=True)
