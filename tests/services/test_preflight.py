"""The looks before a start, over a real sshd as on this machine; cancelled, and with the link gone."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from specconsole.adapters.flag_store import FlagStore, built_in_catalogue
from specconsole.adapters.hardware_tools import HostHardware
from specconsole.adapters.local import LocalTransport
from specconsole.adapters.process_launcher import ProcessLauncher
from specconsole.adapters.ssh import SshLink
from specconsole.core.launching.command import build_spec
from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.profile import Profile
from specconsole.demo.models import ModelShape
from specconsole.errors import LinkLostError
from specconsole.ports import Transport
from specconsole.services.preflight import Preflight, PreflightTools
from specconsole.services.server_flags import FlagShelf
from tests.engines.support.checkpoints import Checkpoints, write_checkpoints
from tests.support.waiting import free_port, until


@pytest.fixture(scope="session")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Checkpoints:
    """64 shards, in a folder whose name a shell would take apart."""
    folder = tmp_path_factory.mktemp("sharded") / "it's $HOME"
    found = write_checkpoints(folder, shape=ModelShape(layers=8), shards=64)
    for path in (folder, *folder.parents):
        if "pytest" in str(path) and path.stat().st_mode & 0o005 != 0o005:
            path.chmod(0o755)
    return found


def preflight(transport: Transport, profile: Profile, folder: Path) -> Preflight:
    store = FlagStore(folder / "flags")
    tools = PreflightTools(HostHardware(), FlagShelf(store.read, store.keep, built_in_catalogue))
    spec = build_spec(
        profile, launch_id="x", port=free_port(), owner="", client_id="", now_s=0, version="", python=None
    )
    return Preflight(transport, ProcessLauncher(transport), tools, profile, spec)


def profile_of(models: Checkpoints) -> Profile:
    return Profile(
        "p", "sglang", command=("python3", "serve.py"), model=str(models.target), draft_model=str(models.eagle3),
        engine_version="0.5.17",
        args={"speculative_algorithm": "EAGLE3", "speculative_num_steps": 3, "speculative_eagle_topk": 1,
              "speculative_num_draft_tokens": 4, "max_running_requests": 48},
    )  # fmt: skip


def shape(findings: tuple[Finding, ...]) -> list[tuple[str, str, str]]:
    # Versions and memory are the host's own.
    return sorted((f.check, f.name, f.severity) for f in findings if f.check not in ("version", "memory", "binary"))


async def test_over_ssh_it_finds_what_it_finds_here(ssh_link: SshLink, sharded: Checkpoints, tmp_path: Path) -> None:
    came: list[Finding] = []
    far = await preflight(ssh_link, profile_of(sharded), tmp_path).run(came.append, lambda _: None, help_limit_s=5)
    local = LocalTransport()
    near = await preflight(local, profile_of(sharded), tmp_path).run(lambda _: None, lambda _: None, help_limit_s=5)
    await local.aclose()
    assert shape(far) == shape(near)
    assert sorted(map(repr, came)) == sorted(map(repr, far))
    said = {finding.text for finding in far}
    assert {"model: 64 shards are whole", "draft: fits the target as EAGLE3"} <= said
    assert [finding for finding in far if finding.severity == "stop"] == []


async def test_a_lost_link_is_an_error_and_no_finding(ssh_link: SshLink, sharded: Checkpoints, tmp_path: Path) -> None:
    await ssh_link.aclose()
    with pytest.raises(LinkLostError):
        await preflight(ssh_link, profile_of(sharded), tmp_path).run(lambda _: None, lambda _: None, help_limit_s=5)


async def test_cancelling_leaves_nothing_behind(tmp_path: Path) -> None:
    """The leak guard of this suite looks for the sleeping process."""
    program = tmp_path / "llama-server"
    program.write_text("#!/bin/sh\n[ $1 = --version ] || exec sleep 600\n")
    program.chmod(0o755)
    told: list[str] = []
    local = LocalTransport()
    looks = preflight(local, Profile("p", "llamacpp", command=(str(program),)), tmp_path)
    running = asyncio.create_task(looks.run(lambda _: None, told.append, help_limit_s=600))
    await until(lambda: bool(told), what="it asks for the flags")
    start_s = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - start_s < 15
    await local.aclose()
    shutil.rmtree(tmp_path / "flags", ignore_errors=True)
