"""`specconsole hosts` as it is typed, against a real sshd; the witness is OpenSSH and the files."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.sshd_lab import PASSWORD, SshdLab, make_key, sshd_lab

Hosts = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def hosts(isolated_home: Path) -> Hosts:
    """Runs the verb in a process of its own, in a session without a terminal: nobody can be asked."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "specconsole", *words], capture_output=True, text=True, timeout=90,
            stdin=subprocess.DEVNULL, start_new_session=True, env=dict(os.environ),
        )  # fmt: skip

    return run


def config(home: Path) -> Path:
    return home / ".config" / "specconsole"


def test_added_listed_and_removed_without_touching_what_is_written_by_hand(hosts: Hosts, isolated_home: Path) -> None:
    written = config(isolated_home) / "hosts.toml"
    written.parent.mkdir(parents=True)
    written.write_text('# my machines\n[hosts.mine]\nssh = "root@mine.example"  # the old one\n')
    before = written.read_bytes()
    assert (
        hosts("hosts", "add", "a", "--ssh", "me@a.example:2222", "--note", "a box", "--host-read-only").returncode == 0
    )
    rows = {row["name"]: row for row in json.loads(hosts("hosts", "list", "--json").stdout)}
    assert rows["a"]["ssh"] == "me@a.example:2222"
    assert rows["a"]["read_only"] is True
    assert rows["mine"]["source"] == f"{written}:2"
    refused = hosts("hosts", "rm", "mine")
    assert (refused.returncode, "your own file" in refused.stderr) == (5, True)
    assert hosts("hosts", "add", "mine").returncode == 5
    assert hosts("hosts", "rm", "a").returncode == 0
    gone = hosts("hosts", "rm", "mien")
    assert gone.returncode == 4
    assert "did you mean mine" in gone.stderr
    assert written.read_bytes() == before
    assert stat.S_IMODE((written.parent / "hosts.added.toml").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[hosts.a]\nshs = "x"\n', "hosts.toml:2: unknown key `shs` (try: did you mean ssh?)"),
        ("[hosts.a\n", "hosts.toml:1: "),
        ('[hosts.a]\nssh = "-oProxyCommand=evil"\n', "hosts.toml:2: not a host"),
    ],
)
def test_a_mistake_in_the_file_is_one_line(hosts: Hosts, isolated_home: Path, text: str, message: str) -> None:
    config(isolated_home).mkdir(parents=True)
    (config(isolated_home) / "hosts.toml").write_text(text)
    done = hosts("hosts")
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_unknown_key_is_shown_trusted_by_fingerprint_and_then_checked(
    hosts: Hosts, sshd: SshdLab, isolated_home: Path, ssh_account: str
) -> None:
    sshd.client_config(isolated_home, alias="gpu", user=ssh_account, trust=False)
    fingerprint = subprocess.run(
        ["ssh-keygen", "-lf", sshd.folder / "host_ed25519.pub"], capture_output=True, text=True, check=True
    ).stdout.split()[1]  # fmt: skip
    unknown = hosts("hosts", "check", "gpu", "--json")
    assert unknown.returncode == 3
    assert json.loads(unknown.stdout)[0]["state"] == "key-unknown"
    assert fingerprint in unknown.stderr
    nobody = hosts("hosts", "trust", "gpu")
    assert (nobody.returncode, fingerprint in nobody.stderr) == (2, True)
    assert hosts("hosts", "trust", "gpu", "--fingerprint", "SHA256:other").returncode == 5
    known = isolated_home / ".ssh" / "known_hosts"
    assert not known.exists()
    assert hosts("--read-only", "hosts", "trust", "gpu", "--fingerprint", fingerprint).returncode == 5
    assert hosts("hosts", "trust", "gpu", "--fingerprint", fingerprint).returncode == 0
    assert sshd.host_key_line in known.read_text()
    again = hosts("hosts", "trust", "gpu", "--json")
    assert json.loads(again.stdout) == {"name": "gpu", "trusted": True, "added": None}
    [report] = json.loads(hosts("hosts", "check", "gpu", "--json").stdout)
    assert report["facts"]["user"] == ssh_account
    assert report["connection"]["sessions"] == 4
    assert {one["what"] for one in report["findings"] if one["level"] == "broken"} == set()


def test_the_doctor_finds_what_is_turned_off(hosts: Hosts, isolated_home: Path) -> None:
    options = {"MaxSessions": "2", "AllowTcpForwarding": "no", "Subsystem": ""}
    with sshd_lab(options=options, hide_sftp_server=True) as lab:
        lab.client_config(isolated_home, alias="poor", user=lab.accounts[0])
        done = hosts("hosts", "check", "poor", "--json")
        assert done.returncode == 1
        found = {one["what"]: one["level"] for one in json.loads(done.stdout)[0]["findings"]}
        assert (found["SFTP"], found["session channels"], found["ports of the host"]) == (
            "limited",
            "limited",
            "broken",
        )


def test_a_password_is_never_asked_for_where_nobody_sits(hosts: Hosts, isolated_home: Path, tmp_path: Path) -> None:
    with sshd_lab(options={"PasswordAuthentication": "yes"}) as lab:
        lab.client_config(isolated_home, alias="ask", user=lab.accounts[0], key=make_key(tmp_path / "k"))
        done = hosts("hosts", "check", "ask", "--json")
        assert done.returncode == 3
        assert json.loads(done.stdout)[0]["state"] == "needs-person"
        assert "Failed password" not in lab.log


def test_a_password_typed_on_the_terminal_gets_in_and_is_shown_nowhere(isolated_home: Path, start_tmux) -> None:  # type: ignore[no-untyped-def]
    with sshd_lab(options={"PasswordAuthentication": "yes", "PubkeyAuthentication": "no"}) as lab:
        if "tuner" not in lab.accounts:
            pytest.skip("accounts can't be made here")
        lab.client_config(isolated_home, alias="ask", user="tuner")
        tmux = start_tmux([sys.executable, "-m", "specconsole", "hosts", "check", "ask"])
        tmux.wait_for("ask: password:")
        tmux.type_text(PASSWORD)
        tmux.keys("Enter")
        tmux.wait_for("GPU tool")
        assert PASSWORD not in tmux.screen()
        assert PASSWORD.encode() not in tmux.raw()
        found = [path for path in isolated_home.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
        assert not found


@pytest.mark.parametrize("sftp", [True, False])
def test_only_a_regular_file_is_read_as_a_log(hosts: Hosts, isolated_home: Path, sftp: bool) -> None:
    options = {} if sftp else {"Subsystem": ""}
    with sshd_lab(options=options, hide_sftp_server=not sftp) as lab:
        lab.client_config(isolated_home)
        for path, said in (("/etc", "is a folder"), ("/dev/zero", "is no regular file")):
            done = hosts("log", f"lab:{path}")
            assert done.returncode == 2
            assert f"lab:{path}: {said} (try: " in done.stderr
