"""The terminal driver: keys go in, screens and every raw byte come out."""

from __future__ import annotations

from tests.support.fixtures_processes import StartTmux


def test_keys_screen_raw_bytes_and_exit_status(start_tmux: StartTmux) -> None:
    script = r'printf "\033[31mred\033[0m ready\n"; read -r line; printf "got:%s\n" "$line"; exit 3'
    terminal = start_tmux(["sh", "-c", script], columns=60, rows=10)
    terminal.wait_for("red ready")
    terminal.type_text("Enter -x ü")
    terminal.keys("Enter")
    terminal.wait_for("got:Enter -x ü")
    assert terminal.exit_status() == 3
    assert b"\x1b[31mred" in terminal.raw()


def test_the_program_sees_the_size_and_a_new_size(start_tmux: StartTmux) -> None:
    terminal = start_tmux(
        ["sh", "-c", 'stty size; trap "stty size" WINCH; while :; do sleep 0.05; done'], columns=80, rows=24
    )
    terminal.wait_for("24 80")
    terminal.resize(100, 30)
    terminal.wait_for("30 100")
