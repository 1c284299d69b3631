"""Composition root: the only place that builds adapters and hands them to services.

Adapters are imported where they are built: a verb that needs no SSH or HTTP does not pay for loading them.
"""

from __future__ import annotations

import getpass
import os
import platform
import secrets
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from specconsole.assets import shipped_folder
from specconsole.errors import BadInputError
from specconsole.ports import Clock, HardwareTools, ServerApi, Transport
from specconsole.services.board import Board
from specconsole.services.launch_view import WhoWeAre

if TYPE_CHECKING:
    from specconsole.adapters.toml_files import ProfileFiles
    from specconsole.services.console_commands import ConsoleCommands
    from specconsole.services.supervisor import HostTools, Supervisor


def state_folder() -> Path:
    """This console's own files: spools, history, its id."""
    import platformdirs

    return Path(platformdirs.user_state_path("specconsole"))


def config_folder() -> Path:
    """The user's profiles, themes and settings."""
    import platformdirs

    return Path(platformdirs.user_config_path("specconsole"))


def who_we_are(folder: Path) -> WhoWeAre:
    """The person at this console; its id is made once and kept."""
    from specconsole.adapters.local import write_atomically

    path = folder / "client-id"
    try:
        client_id = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        client_id = ""
    if len(client_id) != 32:
        client_id = secrets.token_hex(16)
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(path, client_id.encode(), mode=0o600)
        except OSError as error:
            raise BadInputError(
                f"the state folder can't be written: {error.strerror}",
                where=str(folder),
                try_="check its owner and mode, or set XDG_STATE_HOME",
            ) from None
    return WhoWeAre(owner=f"{_user()}@{platform.node()}", client_id=client_id)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run as a number without a name.
        return str(os.getuid())


def server_apis() -> dict[str, ServerApi]:
    """One API adapter an engine."""
    from specconsole.adapters.llamacpp_api import LlamacppApi
    from specconsole.adapters.openai_api import OpenaiApi
    from specconsole.adapters.sglang_api import SglangApi
    from specconsole.adapters.vllm_api import VllmApi

    return {api.engine: api for api in (LlamacppApi(), VllmApi(), SglangApi(), OpenaiApi())}


def profile_files() -> ProfileFiles:
    """The user's profiles, then the shipped ones."""
    from specconsole.adapters.toml_files import ProfileFiles

    return ProfileFiles([config_folder() / "profiles", shipped_folder("profiles")])


def system_clock() -> Clock:
    """The machine's clocks."""
    from specconsole.adapters.system_clock import SystemClock

    return SystemClock()


def hardware_tools() -> HardwareTools:
    """What finds a host's GPU tool, and reads its CPUs, memory, disks and network."""
    from specconsole.adapters.hardware_tools import HostHardware

    return HostHardware()


@asynccontextmanager
async def open_transport(name: str) -> AsyncIterator[Transport]:
    """A way to a host (`local`, an alias from ssh_config, `user@host`), connected. Raises TransportError."""
    transport = await _transport(name)
    try:
        yield transport
    finally:
        await transport.aclose()


async def _transport(name: str) -> Transport:
    if name == "local":
        from specconsole.adapters.local import LocalTransport

        return LocalTransport()
    from specconsole.adapters.ssh import SshLink

    link = SshLink(name)
    await link.connect()
    return link


async def open_host(name: str) -> HostTools:
    """Everything to work on one host. Raises TransportError."""
    from specconsole.adapters.http import HostHttp
    from specconsole.adapters.process_launcher import ProcessLauncher
    from specconsole.services.supervisor import HostTools

    transport = await _transport(name)
    return HostTools(name, transport, ProcessLauncher(transport), HostHttp(transport))


@dataclass(frozen=True, slots=True)
class Console:
    """What a client holds: the supervisor, its board, and what may be asked of it."""

    supervisor: Supervisor
    board: Board
    commands: ConsoleCommands


@asynccontextmanager
async def open_supervisor(hosts: Iterable[str] = ("local",), *, read_only: bool = False) -> AsyncIterator[Console]:
    """The live services for the length of a block; servers outlive it."""
    from specconsole.adapters.sqlite_store import SqliteStore
    from specconsole.services.console_commands import ConsoleCommands
    from specconsole.services.supervisor import Parts, Supervisor

    folder = state_folder()
    files = profile_files()
    us = who_we_are(folder)
    store = await SqliteStore.open(folder / "store.sqlite")
    parts = Parts(
        clock=system_clock(),
        us=us,
        store=store,
        state_folder=folder,
        open_host=open_host,
        apis=server_apis(),
        read_profile=files.read,
        profile_names=files.paths,
        read_only=read_only,
    )
    try:
        async with Supervisor(parts, hosts) as supervisor:
            yield Console(supervisor, supervisor.board, ConsoleCommands(supervisor))
    finally:
        await store.aclose()
