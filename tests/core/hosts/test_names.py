"""Host names: what people type, and what must never reach ssh as an option."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specconsole.core.hosts.names import Address, parse_address, split_host_path
from specconsole.core.hosts.plain_text import one_line
from specconsole.errors import BadInputError


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("gpu-a", Address("gpu-a")),
        ("root@gpu-a", Address("gpu-a", "root")),
        ("root@10.0.0.1:2222", Address("10.0.0.1", "root", 2222)),
        ("a@b@c", Address("c", "a@b")),
        ("[::1]:22", Address("::1", None, 22)),
        ("fe80::1", Address("fe80::1")),
        ("me@[2001:db8::1]", Address("2001:db8::1", "me")),
    ],
)
def test_names(name: str, address: Address) -> None:
    assert parse_address(name) == address


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-oProxyCommand=x",
        "root@-x",
        "a b",
        "a\nb",
        "@host",
        "host:",
        "host:0",
        "host:x",
        "h:70000",
        "[::1",
        "root@",
    ],
)
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(BadInputError):
        parse_address(name)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("gpu-a:/var/log/x", ("gpu-a", "/var/log/x")),
        ("root@gpu-a:x.log", ("root@gpu-a", "x.log")),
        ("[::1]:/x", ("[::1]", "/x")),
        ("./a:b", None),
        ("/a:b", None),
        ("plain", None),
        ("-", None),
        ("host:", None),
        (":/x", None),
    ],
)
def test_host_and_path(text: str, parts: tuple[str, str] | None) -> None:
    assert split_host_path(text) == parts


@given(st.text(max_size=400))
def test_remote_text_becomes_one_harmless_line(text: str) -> None:
    shown = one_line(text, 100)
    assert shown.isprintable() or shown == ""
    assert len(shown) <= 100
