"""Runs verbs as a person would: as a process of its own, or in this one, with what they printed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from specconsole.cli.main import main


@dataclass(frozen=True, slots=True)
class Done:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def problem(self) -> str:
        """The one line that a failed verb may leave, without the narration before it."""
        lines = [line for line in self.err.splitlines() if re.match(r"specconsole[ :]", line)]
        assert len(lines) == 1, self.err
        return lines[0]


class Verbs:
    """In this process: quick, for everything that is not about being killed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> Done:
        self._capsys.readouterr()
        try:
            status = main(list(words))
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
        said = self._capsys.readouterr()
        assert "Traceback" not in said.out + said.err
        return Done(status, said.out, said.err)


def start_console(*words: str) -> subprocess.Popen[bytes]:
    """The same as a process that can be killed."""
    return subprocess.Popen(
        [sys.executable, "-m", "specconsole", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def write_profile(folder: Path, name: str, argv: list[str], *, engine: str = "other", **more: Any) -> Path:
    """A profile file that runs `argv`; values of `more` are written as TOML literals by json (text, numbers, lists)."""
    path = folder / f"{name}.toml"
    lines = [f'engine = "{engine}"', f"command = {json.dumps(argv)}"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in more.items() if not isinstance(value, Mapping)]
    for key, table in more.items():
        if isinstance(table, Mapping):
            lines += [f"[{key}]", *(f"{inner} = {json.dumps(value)}" for inner, value in table.items())]
    path.write_text("\n".join(lines) + "\n")
    return path
