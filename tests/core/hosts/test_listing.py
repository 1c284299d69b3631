"""hosts.toml: every mistake is named with file, line, key and what was probably meant."""

from __future__ import annotations

import tomllib

import pytest

from specconsole.core.hosts.listing import HostEntry, decode_hosts, encode_hosts
from specconsole.errors import BadInputError


def decode(text: str) -> dict[str, HostEntry]:
    return decode_hosts(tomllib.loads(text), text, "hosts.toml")


def test_an_entry_with_everything_and_one_with_nothing() -> None:
    found = decode(
        '[hosts.a]\nssh = "root@gpu-a:2222"\nread_only = true\nconnect = false\nnote = "x"\n[hosts."me@b"]\n'
    )
    assert found["a"] == HostEntry("a", "root@gpu-a:2222", True, False, "x", "hosts.toml:1")
    assert found["me@b"].target == "me@b"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[hosts.a]\nssh = "x"\nread_onyl = true\n',
            r"hosts.toml:3: unknown key `read_onyl` \(try: did you mean read_only\?\)",
        ),
        ('[host.a]\nssh = "x"\n', r"hosts.toml:1: unknown key `host`|hosts.toml: unknown key `host`"),
        ("[hosts.a]\nssh = 3\n", "hosts.toml:2: `ssh` must be a text in quotes"),
        ('[hosts.a]\nread_only = "yes"\n', "hosts.toml:2: `read_only` must be true or false"),
        ('[hosts.a]\nssh = "-oProxyCommand=x"\n', "hosts.toml:2: not a host"),
        ('[hosts]\na = "x"\n', r"hosts.toml:2: `hosts.a` is not a table"),
        ('[hosts.local]\nssh = "x"\n', "hosts.toml:2: `local` is this machine"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        decode(text)


def test_what_is_written_is_read_back() -> None:
    entries = {"a": HostEntry("a", "b", True, False, "n"), "c": HostEntry("c")}
    read = decode_hosts(encode_hosts(entries), "", "f")
    assert {name: (e.ssh, e.read_only, e.connect, e.note) for name, e in read.items()} == {
        name: (e.ssh, e.read_only, e.connect, e.note) for name, e in entries.items()
    }
