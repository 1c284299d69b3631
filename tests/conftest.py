"""Fixtures for every test: an isolated home, no proxies, a temporary folder of its own."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

pytest_plugins = [
    "tests.support.fixtures_guards",
    "tests.support.fixtures_servers",
    "tests.support.fixtures_processes",
    "tests.support.fixtures_ssh",
    "tests.support.fixtures_gpus",
]

PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy")


@pytest.fixture(autouse=True)
def isolated_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """HOME, the XDG folders and TMPDIR in a folder of the test's own; proxy variables gone."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name, sub in (
        ("CONFIG", ".config"),
        ("STATE", ".local/state"),
        ("CACHE", ".cache"),
        ("DATA", ".local/share"),
    ):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / sub))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "run"))
    temporary = home / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    # A worker of a parallel run carries the size of a terminal that its tests do not have.
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return home
