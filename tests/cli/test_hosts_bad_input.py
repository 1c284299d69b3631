"""What a person can get wrong with hosts: one line with what, where and what to try, and a documented status."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path

import pytest

from specconsole.adapters.hosts_toml import ssh_aliases
from specconsole.adapters.ssh import settings
from specconsole.cli.main import main
from specconsole.errors import EXIT_BAD_INPUT, EXIT_UNREACHABLE


@pytest.mark.parametrize("name", ["", "a b", "u@", "[::1", "[::1]:x", "ssh://root@127.0.0.1:1", "-oProxyCommand=x"])
@pytest.mark.parametrize("verb", ["hosts check", "gpus"])
def test_what_is_no_host_name_is_a_wrong_argument(
    verb: str, name: str, isolated_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*verb.split(), "--json", "--", name]) == EXIT_BAD_INPUT
    captured = capsys.readouterr()
    assert "(try: " in captured.err
    assert len(json.loads(captured.out)) == 1


@pytest.mark.parametrize("words", [["local"], ["x", "--note", "two\nlines"], ["x", "--note", "\x1b[31mred"]])
def test_what_can_not_be_added(words: list[str], isolated_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hosts", "add", *words]) == EXIT_BAD_INPUT
    assert "\x1b" not in capsys.readouterr().err
    assert not (isolated_home / ".config" / "specconsole" / "hosts.added.toml").exists()


def test_a_port_where_something_else_answers_is_told_from_a_refused_log_in(
    isolated_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(listener: socket.socket) -> None:
        client, _ = listener.accept()
        with client:
            client.recv(100)
            client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        assert main(["hosts", "check", f"127.0.0.1:{listener.getsockname()[1]}"]) == EXIT_UNREACHABLE
        thread.join(30)
    error = capsys.readouterr().err
    assert "before a word was said" in error
    assert "must be an SSH server" in error


@pytest.mark.parametrize(
    ("text", "said"),
    [("Include ~/.ssh/config\n", "in a circle"), ('Match exec "sleep 3"\n  User x\n', "`Match exec` in it hangs")],
)
def test_a_config_that_never_ends(
    text: str, said: str, isolated_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(settings, "CONFIG_S", 0.5 if "Match" in text else 30.0)
    (isolated_home / ".ssh").mkdir(exist_ok=True)
    (isolated_home / ".ssh" / "config").write_text(text + "Host x\n  HostName 127.0.0.1\n  Port 1\n")
    assert main(["hosts", "check", "x"]) == EXIT_BAD_INPUT
    assert said in capsys.readouterr().err


def test_aliases_are_those_of_included_files_too(isolated_home: Path) -> None:
    ssh = isolated_home / ".ssh"
    (ssh / "more of it").mkdir(parents=True)
    (ssh / "more of it" / "a").write_text("Host included pattern*\nInclude config\n")
    (ssh / "config").write_text('Host=plain "quoted" !not # words\nInclude "more of it/*" nosuch\nHost "unclosed\n')
    assert ssh_aliases() == ["plain", "quoted", "included"]
    os.chmod(ssh / "config", 0)  # root reads it all the same
    ssh_aliases()
