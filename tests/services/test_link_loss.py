"""A link that breaks and comes back: the launch is unknown meanwhile, and nothing of it is lost."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from specconsole.adapters.http import HostHttp
from specconsole.adapters.local import LocalTransport
from specconsole.adapters.process_launcher import ProcessLauncher
from specconsole.adapters.system_clock import SystemClock
from specconsole.adapters.toml_files import ProfileFiles
from specconsole.errors import LinkLostError
from specconsole.ports import Completed, FileStat, RemoteFile
from specconsole.services.commands import LaunchOrder
from specconsole.services.launch_commands import LaunchCommands
from specconsole.services.launch_view import WhoWeAre
from specconsole.services.supervisor import HostTools, Parts, Supervisor
from specconsole.wiring import server_apis
from tests.cli.console import write_profile
from tests.support.waiting import until

TALKER = "import time\nfor n in range(10000): print('line', n, flush=True); time.sleep(0.02)"


class CutLink(LocalTransport):
    """This machine behind a link that the test cuts: whatever is asked while it is down fails at once."""

    def __init__(self) -> None:
        self.down = False

    def _check(self) -> None:
        if self.down:
            raise LinkLostError("cut by the test", where="local")

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float = 30.0,
        max_output_bytes: int = 16 * 1024 * 1024,
    ) -> Completed:
        self._check()
        return await super().run(argv, stdin=stdin, timeout_s=timeout_s, max_output_bytes=max_output_bytes)

    async def stat(self, path: str) -> FileStat | None:
        self._check()
        return await super().stat(path)

    async def open_file(self, path: str) -> RemoteFile:
        self._check()
        return _CutFile(self, await super().open_file(path))

    async def list_dir(self, path: str) -> list[str]:
        self._check()
        return await super().list_dir(path)

    async def open_connection(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self._check()
        return await super().open_connection(host, port)


class _CutFile:
    def __init__(self, link: CutLink, file: RemoteFile) -> None:
        self._link = link
        self._file = file

    async def read_at(self, offset: int, max_bytes: int) -> bytes:
        self._link._check()
        return await self._file.read_at(offset, max_bytes)

    async def stat(self) -> FileStat:
        self._link._check()
        return await self._file.stat()

    async def aclose(self) -> None:
        await self._file.aclose()


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[tuple[Supervisor, LaunchCommands, CutLink]]:
    link = CutLink()

    async def open_host(name: str) -> HostTools:
        return HostTools(name, link, ProcessLauncher(link), HostHttp(link))

    files = ProfileFiles([tmp_path])
    parts = Parts(
        clock=SystemClock(),
        us=WhoWeAre("me@here", "0" * 32),
        state_folder=tmp_path / "state",
        open_host=open_host,
        apis=await asyncio.to_thread(server_apis),
        read_profile=files.read,
        profile_names=files.paths,
    )
    async with Supervisor(parts, ()) as supervisor:
        yield supervisor, LaunchCommands(supervisor), link


async def test_unknown_while_it_is_down_and_whole_when_it_is_back(
    scene: tuple[Supervisor, LaunchCommands, CutLink], tmp_path: Path
) -> None:
    supervisor, commands, link = scene
    path = await asyncio.to_thread(write_profile, tmp_path, "talker", [sys.executable, "-c", TALKER])
    launch_id = await commands.launch(LaunchOrder(str(path), "local"))
    watch = supervisor.find(launch_id)
    await until(lambda: watch.intake.spool is not None and watch.intake.spool.line_count > 20, what="its log is read")
    for _ in range(3):
        link.down = True
        view = await supervisor.wait(launch_id, lambda view: view.state == "unknown", timeout_s=20)
        assert view.stale_since_s is not None
        assert view.health in ("link-down", "refused", "not-asked")
        lines = watch.intake.spool.line_count if watch.intake.spool is not None else 0
        link.down = False
        view = await supervisor.wait(
            launch_id,
            lambda view: view.state not in ("unknown", "preparing") and view.stale_since_s is None,
            timeout_s=20,
        )
        assert view.state in ("starting", "loading", "stalled")
        await until(lambda lines=lines: watch.intake.spool.line_count > lines + 10, what="its log goes on")  # type: ignore[misc]  # a loop's value, bound on purpose
    event = await commands.stop_telling(launch_id, lambda _: None)
    assert event.clean
    await watch.settled()
    log = await asyncio.to_thread(Path(watch.record.log_path).read_bytes)
    assert watch.intake.spool is not None
    assert await asyncio.to_thread(watch.intake.spool.path.read_bytes) == log
    assert watch.intake.spool.marks == ()
