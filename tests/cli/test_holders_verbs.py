"""`holders` and `evict` as a person runs them: in a terminal, typed; in a script, confirmed. Witness: /proc."""

from __future__ import annotations

import pytest

from tests.cli.console import Verbs
from tests.support.fixtures_processes import StartTmux, StartVictim
from tests.support.waiting import is_alive


def test_a_script_confirms_by_the_pid(start_victim: StartVictim, capsys: pytest.CaptureFixture[str]) -> None:
    verbs = Verbs(capsys)
    victim = start_victim("--port", "0")
    shown = verbs("holders", "--port", str(victim.port), "--json").json
    [holder] = shown["holders"]
    assert (shown["host"], holder["pid"], holder["ports"], holder["gpus"]) == ("local", victim.pid, [victim.port], [])
    refused = verbs("evict", str(victim.pid))
    assert (refused.status, f"--confirm {victim.pid}" in refused.err) == (5, True)
    assert verbs("evict", str(victim.pid), "--confirm", "yes").status == 5
    hidden = verbs("--read-only", "evict", str(victim.pid), "--confirm", str(victim.pid))
    assert (hidden.status, "read-only" in hidden.err) == (5, True)
    assert is_alive(victim.pid)
    done = verbs("evict", str(victim.pid), "--confirm", str(victim.pid), "--json")
    assert (done.status, done.json["gone"], done.json["left"]) == (0, True, [])
    assert not is_alive(victim.pid)
    assert verbs("holders", "--port", str(victim.port)).out == f"nobody that can be seen holds port {victim.port}\n"
    assert verbs("evict", str(victim.pid), "--confirm", str(victim.pid)).status == 5
    assert verbs("holders", "--port", "0").status == 2


def test_in_a_terminal_it_is_typed(
    start_victim: StartVictim, start_tmux: StartTmux, specconsole_argv: list[str]
) -> None:
    victim = start_victim("--port", "0")
    terminal = start_tmux([*specconsole_argv, "evict", str(victim.pid)], columns=240)
    assert f"holds port {victim.port}" in terminal.wait_for("to end it:").replace("\n", " ")
    assert is_alive(victim.pid)
    terminal.keys(str(victim.pid), "Enter")
    assert terminal.exit_status() == 0
    assert not is_alive(victim.pid)
