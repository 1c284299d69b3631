"""Which build runs, as the host's own Python says it: against importlib.metadata and git, on a real checkout."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from specconsole.core.launching.build_identity import BUILD_IDENTITY, build_arguments, parse_build
from specconsole.core.launching.spec import LaunchSpec


def ask(shell: str, *args: str, cwd: Path | None = None) -> dict[str, str]:
    done = subprocess.run([shell, "-s", "--", *args], input=BUILD_IDENTITY.encode(), capture_output=True, cwd=cwd)
    return parse_build(done.stdout)


@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
def test_versions_are_those_of_the_installed_distributions(shell: str) -> None:
    found = ask(shell, "", sys.executable, "httpx", "no-such-distribution")
    assert found["httpx"] == metadata.version("httpx")
    assert found["python"] == sys.version.split()[0]
    assert "no_such_distribution" not in found
    assert "commit" not in found, "httpx came from a wheel"


def test_a_source_install_has_its_commit_and_a_hash_of_what_is_not_committed(tmp_path: Path) -> None:
    source = tmp_path / "a source"
    site = tmp_path / "site"
    (site / "engine-1.0.dist-info").mkdir(parents=True)
    source.mkdir()
    info = site / "engine-1.0.dist-info"
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: engine\nVersion: 1.0\n")
    (info / "direct_url.json").write_text(
        '{"dir_info": {"editable": true}, "url": "file://' + str(source).replace(" ", "%20") + '"}'
    )

    def git(*words: str) -> str:
        who = ["-c", "user.name=t", "-c", "user.email=t@t"]
        return subprocess.run(
            ["git", *who, *words], cwd=source, check=True, capture_output=True, text=True
        ).stdout.strip()  # fmt: skip

    git("init", "-q")
    (source / "code.py").write_text("a = 1\n")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    # -I keeps PYTHONPATH out: a .pth file is how an editable install is found, a venv's site folder how a real one is.
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nshift\nPYTHONPATH={site} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    clean = ask("sh", "", str(python), "engine")
    assert clean["commit"] == git("rev-parse", "HEAD")
    assert "dirty" not in clean
    (source / "code.py").write_text("a = 2\n")
    changed = ask("sh", "", str(python), "engine")
    wanted = subprocess.run(["git", "diff", "HEAD"], cwd=source, capture_output=True, check=True).stdout
    assert changed["dirty"] == hashlib.sha256(wanted).hexdigest()[:12]


def test_no_python_and_no_gpu_driver_leave_out_what_they_would_say() -> None:
    assert ask("sh", "/nonexistent", "/nonexistent/python", "sglang").get("sglang") is None
    assert parse_build(b"torch=2.1\n") == {}, "a cut answer is none"


@pytest.mark.parametrize(
    ("argv", "environment", "first"),
    [
        (("/opt/venv/bin/vllm", "serve"), None, ("", "/opt/venv/bin/python")),
        (("/opt/venv/bin/python3.11", "-m", "sglang.launch_server"), None, ("", "/opt/venv/bin/python3.11")),
        (("python3", "-m", "sglang.launch_server"), "~/v", ("~/v", "")),
    ],
)
def test_the_python_asked_is_the_servers_own(
    argv: tuple[str, ...], environment: str | None, first: tuple[str, str]
) -> None:
    spec = LaunchSpec("1", "p", "vllm", argv, environment=environment)
    assert build_arguments(spec)[:2] == first
    assert "vllm" in build_arguments(spec)
