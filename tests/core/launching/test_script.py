"""Quoting and scripts against real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specconsole.core.launching import locks, probes
from specconsole.core.launching.script import export, quote, quote_path, server_script, wrapper_script
from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.launching.start_script import start_script
from specconsole.errors import BadInputError

SHELLS = [name for name in ("dash", "bash", "busybox") if shutil.which(name)]
WORDS = st.lists(st.binary(max_size=40).map(lambda b: os.fsdecode(b.replace(b"\0", b""))), min_size=1, max_size=20)
SPEC = LaunchSpec(
    "20261129-140211-3f9a2c",
    "it's",
    "other",
    ("server", "--name", "a 'b' \"c\" $d `e` \\ \n f", "~/models/x"),
    env={"A": "1'2"},
    secret_places={"TOKEN": "env:TOKEN"},
    working_dir="~/work dir",
    environment="/opt/e n v",
)


def shell(name: str) -> list[str]:
    return [name, "sh"] if name == "busybox" else [name]


@pytest.mark.parametrize("name", SHELLS)
def test_every_word_arrives_byte_for_byte(name: str) -> None:
    @settings(max_examples=25, deadline=None)
    @given(WORDS)
    def check(words: list[str]) -> None:
        script = "".join(f"printf '%s\\0' {quote(word)}\n" for word in words)
        done = subprocess.run(
            [*shell(name), "-s"],
            input=os.fsencode(script),
            capture_output=True,
            check=True,
            env={"PATH": os.environ["PATH"]},
        )
        assert done.stdout.split(b"\0")[:-1] == [os.fsencode(word) for word in words]

    check()


def test_home_is_the_hosts_and_only_in_front() -> None:
    script = f"printf '%s\\n' {quote_path('~/a b')} {quote_path('x~/a')} {quote_path('~user/a')}"
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True, env={"HOME": "/h o"})
    assert done.stdout.decode().splitlines() == ["/h o/a b", "x~/a", "~user/a"]


def test_what_no_shell_can_hold_is_an_error() -> None:
    with pytest.raises(BadInputError, match="NUL"):
        quote("a\0b")
    for name in ("A-B", "1A", "", "A=B", "A;reboot"):
        with pytest.raises(BadInputError, match="environment variable"):
            export(name, "x")


@pytest.mark.parametrize("name", SHELLS)
def test_every_script_is_accepted_by_every_shell(name: str) -> None:
    scripts = [
        start_script(SPEC, {"TOKEN": "s"}), server_script(SPEC), wrapper_script(SPEC),
        probes.OBSERVE, probes.PROCESS_TABLE, probes.PROCESS_DETAIL, probes.SIGNAL, probes.PORT_HOLDERS,
        probes.MARK_STOP, probes.UNMARK_STOP, probes.MARK_ENDED, probes.MARK_ANSWERED, probes.MEMORY, probes.PATHS,
        probes.BINARY, locks.TAKE, locks.RENEW, locks.RELEASE,
    ]  # fmt: skip
    for script in scripts:
        done = subprocess.run([*shell(name), "-n"], input=script.encode(), capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert not done.stderr


def test_a_script_that_is_cut_in_the_middle_does_nothing(tmp_path: Path) -> None:
    home = tmp_path / "empty"
    home.mkdir()
    script = start_script(SPEC, {"TOKEN": "s"})
    for share in (0.3, 0.6, 0.9, 0.99):
        cut = script[: int(len(script) * share)]
        done = subprocess.run(
            ["sh", "-s"],
            input=cut.encode(),
            capture_output=True,
            check=False,
            env={"HOME": str(home), "PATH": os.environ["PATH"]},
        )
        assert done.returncode != 0
        assert list(home.iterdir()) == []


def test_a_secret_is_neither_in_the_request_nor_in_the_scripts_that_stay() -> None:
    value = "hf_veryverysecret"
    assert value not in server_script(SPEC) + wrapper_script(SPEC) + SPEC.to_json_line()
    with pytest.raises(BadInputError, match="secrets"):
        start_script(SPEC, {})
