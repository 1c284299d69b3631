"""Which build runs, as the host's own Python says it: against importlib.metadata and git, on a real checkout."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from specconsole.core.launching.build_identity import BUILD_IDENTITY, build_arguments, parse_build
from specconsole.core.launching.spec import LaunchSpec


def ask(shell: str, *args: str, **environment: str) -> dict[str, str]:
    done = subprocess.run(
        [shell, "-s", "--", *args],
        input=BUILD_IDENTITY.encode(),
        capture_output=True,
        env={**os.environ, **environment},
    )
    return parse_build(done.stdout)


@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
def test_versions_are_those_of_the_installed_distributions(shell: str) -> None:
    found = ask(shell, "", sys.executable, "", "httpx", "no-such-distribution")
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
    clean = ask("sh", "", sys.executable, str(site), "engine")
    assert clean["commit"] == git("rev-parse", "HEAD")
    assert "dirty" not in clean
    (source / "code.py").write_text("a = 2\n")
    changed = ask("sh", "", sys.executable, str(site), "engine")
    wanted = subprocess.run(["git", "diff", "HEAD"], cwd=source, capture_output=True, check=True).stdout
    assert changed["dirty"] == hashlib.sha256(wanted).hexdigest()[:12]


def test_no_python_and_no_gpu_driver_leave_out_what_they_would_say() -> None:
    assert ask("sh", "/nonexistent", "/nonexistent/python", "", "sglang").get("sglang") is None
    assert parse_build(b"torch=2.1\n") == {}, "a cut answer is none"


@pytest.mark.parametrize(
    "line",
    [
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (b@U22-I3-G13-2-2)  Tue",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Sat Mar  4 10:12:02 UTC 2025",
    ],
)
def test_the_driver_is_what_the_kernel_says(tmp_path: Path, line: str) -> None:
    version = tmp_path / "version"
    version.write_text(f"{line}\nGCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)\n")
    assert ask("sh", "", "", "", NVIDIA_VERSION_FILE=str(version))["driver"] == "580.159.04"


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
