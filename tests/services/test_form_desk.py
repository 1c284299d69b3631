"""The form's services around a real launch: what is opened is what was launched, whatever became of its profile since;
paths of a host, here and over a real sshd."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from specconsole.adapters.local import LocalTransport
from specconsole.adapters.ssh import SshLink
from specconsole.adapters.system_clock import SystemClock
from specconsole.core.launching.command import build_argv
from specconsole.core.launching.form_layer import put, seen
from specconsole.core.launching.lifecycle import ENDED
from specconsole.core.launching.preflight import Finding
from specconsole.errors import BadInputError, RefusedError
from specconsole.ports import Transport
from specconsole.services.commands import LaunchOrder
from specconsole.services.form_desk import FormDesk, FormOrder
from specconsole.services.form_paths import HostPaths
from specconsole.wiring import Console, open_supervisor
from tests.support.victims import VICTIM

PROFILE = """\
engine = "other"
command = [{python}, "-S", "-E", {victim}, "--port", "{{port}}"]
grace_s = 2
[args]
log-lines = 3
[env]
MARK = "$${{not}} a ${{word}}"
KEY = "${{secret:form_key}}"
[variables]
word = "variable"
[secrets]
form_key = "env:FORM_KEY"
"""


@pytest.fixture
async def console(isolated_home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Console]:
    profiles = isolated_home / ".config" / "specconsole" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "victim.toml").write_text(PROFILE.format(python=f'"{sys.executable}"', victim=f'"{VICTIM}"'))
    monkeypatch.setenv("FORM_KEY", "s3cr3t-value")
    async with open_supervisor(("local",)) as console:
        yield console
        for view in list(console.board.launches.values()):
            if view.state not in ENDED:
                await console.commands.stop(view.launch_id)


def desk_of(console: Console) -> FormDesk:
    assert console.commands.form is not None
    return console.commands.form


async def test_a_launch_is_opened_as_it_was_launched_and_launched_again_changed(
    console: Console, isolated_home: Path
) -> None:
    desk = desk_of(console)
    first = await console.commands.launch(LaunchOrder("victim", "local", {"log-lines": 5}))
    path = isolated_home / ".config" / "specconsole" / "profiles" / "victim.toml"
    opening = await desk.open_launch(first)
    assert opening.own == {"extends": "victim", "args": {"log-lines": 5}}
    shown = seen(opening.base, opening.own)
    spec = console.supervisor.find(first).record.spec
    assert spec is not None
    assert build_argv(shown, spec.port) == spec.argv
    assert shown.env["MARK"] == "${not} a variable"
    assert shown.secrets == {"KEY": "env:FORM_KEY"}
    assert "s3cr3t-value" not in str(opening)

    changed = put(opening.base, opening.own, ("args", "log-lines"), 7)
    order = FormOrder(seen(opening.base, changed), "local", stop_first=first)
    told: list[str] = []
    second = await desk.launch(order, told.append)
    assert console.board.launches[first].state in ENDED
    process = console.supervisor.find(second).record.process
    assert process is not None
    words = await asyncio.to_thread(Path(f"/proc/{process.pid}/cmdline").read_bytes)
    assert b"\0--log-lines\0007\0" in words
    environ = await asyncio.to_thread(Path(f"/proc/{process.pid}/environ").read_bytes)
    assert b"KEY=s3cr3t-value" in environ.split(b"\0")
    assert told

    # Its profile is gone: the form holds all of it, and the secret is found where this console knows it to be.
    await asyncio.to_thread(path.unlink)
    alone = await desk.open_launch(second)
    assert alone.base.parents == ()
    assert alone.notes
    whole = seen(alone.base, alone.own)
    spec = console.supervisor.find(second).record.spec
    assert spec is not None
    assert build_argv(whole, spec.port) == spec.argv
    assert whole.secrets == {"KEY": "env:FORM_KEY"}
    assert desk._last_of("victim", "local") is not None


async def test_saving_proves_that_the_file_says_what_is_shown(console: Console) -> None:
    desk = desk_of(console)
    opening = await desk.open_profile("victim", "local")
    own = put(opening.base, opening.own, ("args", "log-lines"), 9)
    shown = seen(opening.base, own)
    with pytest.raises(BadInputError, match="would not be what the form shows"):
        await desk.save("victim-2", opening.base, own, replace(shown, args={"log-lines": 10}))
    path = Path(await desk.save("victim-2", opening.base, own, shown))
    assert (await asyncio.to_thread(path.stat)).st_mode & 0o777 == 0o600
    again = await desk.open_profile("victim-2", "local")
    assert again.own == own
    assert again.file == str(path)
    with pytest.raises(RefusedError, match="did not write"):
        await desk.save("victim", opening.base, own, shown)


async def test_what_the_host_says_comes_in_and_can_be_called_off(console: Console) -> None:
    desk = desk_of(console)
    opening = await desk.open_profile("victim", "local")
    profile = replace(seen(opening.base, opening.own), command=("no-such-program",))
    came: list[Finding] = []
    session = desk.session()
    findings, _ = await desk.look(session, profile, "local", came.append)
    assert [one.check for one in findings if one.severity == "stop"] == ["binary"]
    assert sorted(map(repr, came)) == sorted(map(repr, findings))
    task = asyncio.create_task(desk.look(session, profile, "local", came.append))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def check_paths(transport: Transport, folder: Path) -> None:
    for name in ("draft-a", "draft b", ".hidden"):
        (folder / name).mkdir()
    (folder / "draft.gguf").write_text("x")
    paths = HostPaths(SystemClock())
    assert sorted(await paths.complete(transport, f"{folder}/dra")) == sorted(
        [f"{folder}/draft b/", f"{folder}/draft-a/", f"{folder}/draft.gguf"]
    )
    assert await paths.complete(transport, f"{folder}/.h") == (f"{folder}/.hidden/",)
    assert await paths.complete(transport, f"{folder}/draft-a/") == ()
    assert await paths.complete(transport, "org/model") == ()
    assert await paths.complete(transport, "/no/such/folder/x") == ()
    # Kept for a while: what is typed letter by letter asks once.
    (folder / "draft-new").mkdir()
    assert f"{folder}/draft-new/" not in await paths.complete(transport, f"{folder}/dr")


@pytest.mark.may_block("makes the folders that are looked at")
async def test_paths_are_completed_here(tmp_path: Path) -> None:
    transport = LocalTransport()
    await check_paths(transport, tmp_path)
    home = Path(os.environ["HOME"])
    (home / "models").mkdir()
    assert "~/models/" in await HostPaths(SystemClock()).complete(transport, "~/mo")
    await transport.aclose()


@pytest.mark.may_block("makes the folders that are looked at")
async def test_paths_are_completed_over_ssh(ssh_link: SshLink, tmp_path: Path) -> None:
    await check_paths(ssh_link, tmp_path)
