"""From the list to a running server with one flag changed, by keys in a real terminal, with a real llama.cpp server.

Witnesses: the keys are counted where they are sent, the server's command line and variables are read from /proc, the
person's editor is a shell script, and the profile's file is compared byte for byte.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from specconsole.demo.models import ModelFiles
from tests.support.fixtures_processes import StartTmux
from tests.support.leaks import RUN_VARIABLE
from tests.support.tmux import Tmux
from tests.support.waiting import all_pids, environ_of, is_alive, wait_until

pytestmark = pytest.mark.real

PROFILE = """\
# A comment that stays.
engine = "llamacpp"
description = "a tiny model, for this test"
command = ["{{python}}", "-m", "specconsole.demo.llama_server"]
model = {model}
draft_model = {draft}
grace_s = 5

[args]
ctx_size = 2048
alias = "it's \\"tiny\\""
threads = 1

[env]
FORM_TEST = "a b"
"""
# Breaks the text the first time it is asked, writes a setting the second time.
EDITOR = """\
#!/bin/sh
if [ -e "$0.again" ]; then sed -i 's/^threads = = .*/spec_draft_n_max = 2/' "$1"
else : >"$0.again"; printf 'threads = = 4\\n' >>"$1"; fi
"""
FEW_KEYS = 15


class Keys:
    """Sends keys and counts them."""

    def __init__(self, terminal: Tmux) -> None:
        self.terminal = terminal
        self.count = 0

    def press(self, *names: str) -> None:
        self.count += len(names)
        self.terminal.keys(*names)

    def type_text(self, text: str) -> None:
        self.count += len(text)
        self.terminal.type_text(text)


def servers() -> dict[int, list[str]]:
    """pid -> command line of the servers that launches of this test run have started."""
    run = os.environ[RUN_VARIABLE].encode()
    found = {}
    for pid in all_pids():
        env = environ_of(pid)
        if env.get(RUN_VARIABLE.encode()) == run and b"SPECCONSOLE_LAUNCH" in env:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
            if b"specconsole.demo.llama_server" in words:
                found[pid] = [word.decode() for word in words]
    return found


def previewed(screen: str) -> list[str]:
    """The words of the command line that the form shows."""
    box = screen[screen.index("command line") :].splitlines()[1:]
    lines = [line.strip("│ ") for line in box]
    end = next(number for number, line in enumerate(lines) if line.startswith("to aa-tiny: "))
    return shlex.split(" ".join(lines[:end]))


def with_its_port(words: list[str], server: list[str]) -> list[str]:
    """The words, with the port that was picked at launch for what stands in its place."""
    return [server[place] if word == "PORT" else word for place, word in enumerate(words)]


def typed(terminal: Tmux, text: str) -> None:
    """Waits until a field of a form holds the text."""
    wait_until(lambda: re.search(rf"[▌▊]\s+{text}\s", terminal.screen()), what=f"{text} is typed")


def verb(*argv: str) -> str:
    ended = subprocess.run([sys.executable, "-m", "specconsole", *argv], capture_output=True, text=True, timeout=60,
                           stdin=subprocess.DEVNULL, check=False)  # fmt: skip
    assert ended.returncode == 0, (argv, ended.stdout[-500:], ended.stderr)
    return ended.stdout


def test_one_flag_changed_and_launched_in_under_fifteen_keys(
    isolated_home: Path, llama_models: ModelFiles, start_tmux: StartTmux, specconsole_argv: list[str]
) -> None:
    profiles = isolated_home / ".config" / "specconsole" / "profiles"
    profiles.mkdir(parents=True)
    written = PROFILE.format(model=json.dumps(str(llama_models.target)), draft=json.dumps(str(llama_models.draft)))
    (profiles / "aa-tiny.toml").write_text(written)
    editor = isolated_home / "editor.sh"
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    terminal = start_tmux(specconsole_argv, columns=200, rows=44, environment={"EDITOR": str(editor), "VISUAL": ""})
    terminal.wait_for("local ●")

    # The list, the form, one flag, launch.
    keys = Keys(terminal)
    keys.press("l")
    terminal.wait_for("a tiny model, for this test")
    keys.press("Tab")
    terminal.wait_for("aa-tiny @ local")
    keys.press("/")
    terminal.wait_for("find a setting")
    keys.type_text("par")
    typed(terminal, "par")
    keys.press("Enter")
    terminal.wait_for("take it")
    keys.type_text("3")
    keys.press("Enter")
    screen = terminal.wait_for("to aa-tiny: + parallel 3")
    keys.press("L")
    terminal.wait_for("answers after", timeout_s=60)
    assert keys.count < FEW_KEYS
    [(first, server)] = servers().items()
    shown = previewed(screen)
    assert shown[0] == "FORM_TEST=a b"
    assert with_its_port(shown[1:], server) == server
    assert server[server.index("--parallel") + 1] == "3"
    assert server[server.index("--alias") + 1] == 'it\'s "tiny"'
    assert environ_of(first)[b"FORM_TEST"] == b"a b"

    # The same launch once more with another flag: the one that runs gives way.
    keys = Keys(terminal)
    keys.press("e")
    terminal.wait_for("as it was launched, runs now")
    keys.press("/")
    terminal.wait_for("find a setting")
    keys.type_text("ctx")
    typed(terminal, "ctx")
    keys.press("Enter")
    terminal.wait_for("take it")
    keys.type_text("4096")
    keys.press("Enter")
    screen = terminal.wait_for("to this launch: ctx_size 2048 → 4096")
    keys.press("L")
    terminal.wait_for("stop the one that runs")
    keys.press("Enter")
    wait_until(lambda: not is_alive(first), timeout_s=60, what="the first one is gone")
    [(second, server)] = wait_until(servers, timeout_s=60, what="another one runs in its place").items()
    assert keys.count < FEW_KEYS
    assert with_its_port(previewed(screen)[1:], server) == server
    assert server[server.index("--ctx-size") + 1] == "4096"
    assert server[server.index("--parallel") + 1] == "3"
    terminal.wait_for(f"aa-tiny @ local:{server[-1]} ─ answers", timeout_s=60)

    # As text: a mistake names its line and the editor opens again; then it is saved, and the hand's file is as it was.
    terminal.keys("e")
    terminal.wait_for("as it was launched, runs now")
    terminal.keys("e")
    screen = terminal.wait_for("the text can't be taken over")
    assert re.search(r"aa-tiny\.toml:\d+: ", screen)
    terminal.keys("y")
    terminal.wait_for("taken over from the editor")
    terminal.wait_for("spec_draft_n_max 2")
    terminal.keys("s")
    terminal.wait_for("save as a profile of its own")
    terminal.keys("Enter")
    wait_until((profiles / "aa-tiny-2.toml").exists, what="the profile is saved")
    terminal.wait_for("saved")
    saved = tomllib.loads((profiles / "aa-tiny-2.toml").read_text())
    assert saved["extends"] == "aa-tiny"
    assert (profiles / "aa-tiny.toml").read_text() == written
    resolved = json.loads(verb("profiles", "show", "aa-tiny-2", "--json"))
    assert resolved["args"]["spec_draft_n_max"] == 2
    terminal.keys("Escape")
    terminal.wait_for("following")
    terminal.keys("q")
    assert terminal.exit_status() == 0
    assert is_alive(second)
    for launch in json.loads(verb("status", "--json")):
        verb("stop", launch["launch_id"])
    assert servers() == {}
