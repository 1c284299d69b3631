"""Composition root: the only place that builds adapters and hands them to services.

Adapters are imported where they are built: a verb that needs no SSH or HTTP does not pay for loading them.
"""

from __future__ import annotations

import asyncio
import getpass
import importlib
import os
import platform
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specconsole.assets import shipped_folder
from specconsole.core.hosts.names import LOCAL
from specconsole.errors import BadInputError, SpecconsoleError
from specconsole.ports import Asker, Clock, HardwareTools, Link, ServerApi, Transport
from specconsole.services.board import Board
from specconsole.services.launch_view import WhoWeAre

if TYPE_CHECKING:
    from specconsole.adapters.hosts_toml import HostsFiles
    from specconsole.adapters.ssh import SshLink
    from specconsole.adapters.toml_files import ProfileFiles
    from specconsole.adapters.workload_files import WorkloadFiles
    from specconsole.core.hosts.listing import HostEntry
    from specconsole.services.adoption import Adoption
    from specconsole.services.bench_parts import BenchParts
    from specconsole.services.benches import Benches
    from specconsole.services.console_commands import ConsoleCommands
    from specconsole.services.history_commands import HistoryDesk
    from specconsole.services.host_link import HostLink
    from specconsole.services.host_sampler import HostSampler
    from specconsole.services.preflight import PreflightTools
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
    """The project's profiles (`.specconsole/profiles` here or above), the user's, then the shipped ones."""
    from specconsole.adapters.toml_files import ProfileFiles, project_folder

    project = project_folder(Path.cwd())
    own = (config_folder() / "profiles", shipped_folder("profiles"))
    return ProfileFiles(own if project is None else (project, *own))


def workload_files() -> WorkloadFiles:
    """The user's workloads, then the shipped ones."""
    from specconsole.adapters.workload_files import WorkloadFiles

    return WorkloadFiles([config_folder() / "workloads", shipped_folder("profiles/workloads")])


def bench_parts() -> BenchParts:
    """What benchmarks need from outside."""
    from specconsole.adapters.bench_tools import loadgen_zip, look_at_gpus
    from specconsole.adapters.metrics_page import parse_metrics_page
    from specconsole.adapters.process_launcher import ProcessLauncher
    from specconsole.services.bench_parts import BenchParts

    files, tools = workload_files(), hardware_tools()
    return BenchParts(
        read_workload=files.read,
        workload_names=lambda: sorted(files.paths()),
        parse_page=parse_metrics_page,
        loadgen_zip=loadgen_zip,
        launcher=lambda transport: ProcessLauncher(transport, family="benches"),
        look_at_gpus=lambda transport: look_at_gpus(transport, tools),
        python=sys.executable,
    )


def preflight_tools(folder: Path) -> PreflightTools:
    """What the looks before a start need; `folder` is the console's own."""
    from specconsole.adapters.flag_store import FlagStore, built_in_catalogue
    from specconsole.services.preflight import PreflightTools
    from specconsole.services.server_flags import FlagShelf

    store = FlagStore(folder / "flags")
    return PreflightTools(
        hardware_tools(), FlagShelf(store.read, store.keep, built_in_catalogue, store.slow, store.keep_slow)
    )


def system_clock() -> Clock:
    """The machine's clocks."""
    from specconsole.adapters.system_clock import SystemClock

    return SystemClock()


def hardware_tools() -> HardwareTools:
    """What finds a host's GPU tool, and reads its CPUs, memory, disks and network."""
    from specconsole.adapters.hardware_tools import HostHardware

    return HostHardware()


def hosts_files() -> HostsFiles:
    """hosts.toml and what was added to it."""
    from specconsole.adapters.hosts_toml import HostsFiles

    return HostsFiles(config_folder())


def host_names() -> tuple[str, ...]:
    """Hosts that a console connects to when it starts: `local`, then those of the hosts files. Raises BadInputError."""
    entries = hosts_files().read()
    chosen = [name for name, entry in entries.items() if entry.connect and name != LOCAL]
    local = entries.get(LOCAL)
    return (LOCAL, *chosen) if local is None or local.connect else tuple(chosen)


def host_entry(name: str) -> HostEntry:
    """What the files say about a host; a plain entry for one they don't know. Raises BadInputError."""
    from specconsole.core.hosts.listing import HostEntry

    return hosts_files().read().get(name) or HostEntry(name)


def read_only_hosts() -> frozenset[str]:
    """Hosts on which nothing may be changed, by their names and by what they are reached by. Raises BadInputError."""
    kept = [entry for entry in hosts_files().read().values() if entry.read_only]
    return frozenset(name for entry in kept for name in (entry.name, entry.target))


def ssh_link(name: str) -> SshLink:
    """A link to a host that is not `local`, not yet connected."""
    from specconsole.adapters.ssh import SshLink

    return SshLink(name, host_entry(name).target)


def asker_on_terminal() -> Asker | None:
    """None where nobody can be asked."""
    from specconsole.adapters.terminal_asker import terminal_asker

    return terminal_asker()


@asynccontextmanager
async def open_transport(name: str) -> AsyncIterator[Transport]:
    """A way to a host (`local`, an alias from ssh_config, `user@host`), connected; may ask on the terminal.

    Raises TransportError.
    """
    transport = await _transport(name)
    try:
        yield transport
    finally:
        await transport.aclose()


async def _transport(name: str) -> Transport:
    if name == LOCAL:
        from specconsole.adapters.local import LocalTransport

        return LocalTransport()
    # In a thread: it reads hosts.toml and, the first time, loads the SSH library (0.2 s).
    link = await asyncio.to_thread(ssh_link, name)
    await link.connect(asker_on_terminal())
    return link


class HostOpener:
    """Makes what is needed to work on a host, with a keeper for every link.

    With an `asker` (a window) a host that is down is opened all the same and tried again; without one, as the
    verbs of the command line work, it raises TransportError.
    """

    def __init__(self, board: Board, clock: Clock, *, asker: Asker | None, read_only: bool) -> None:
        self.keepers: dict[str, HostLink] = {}
        self._board = board
        self._clock = clock
        self._asker = asker
        self._read_only = read_only
        self._sampled = 0

    async def __call__(self, name: str) -> HostTools:
        from specconsole.adapters.http import HostHttp
        from specconsole.adapters.process_launcher import ProcessLauncher
        from specconsole.services.gpu_memory import MemoryKeeper
        from specconsole.services.supervisor import HostTools

        background: list[Callable[[], Coroutine[Any, Any, None]]] = []
        if name == LOCAL or self._asker is None:
            transport = await _transport(name)
        else:
            transport = await asyncio.to_thread(ssh_link, name)
        if isinstance(transport, Link):
            keeper = self._keeper(transport, read_only=(await asyncio.to_thread(host_entry, name)).read_only)
            self.keepers[name] = keeper
            background.append(keeper.run)
        if self._asker is not None:  # somebody looks at the board
            background.append(self._sampler(transport).run)
        memory = MemoryKeeper(transport, hardware_tools(), self._clock)
        return HostTools(name, transport, ProcessLauncher(transport), HostHttp(transport), tuple(background), memory)

    def _sampler(self, transport: Transport) -> HostSampler:
        from specconsole.core.hardware.pace import gpu_interval_s
        from specconsole.services.host_sampler import HostSampler

        self._sampled += 1
        return HostSampler(
            transport, self._board, self._clock, hardware_tools(), gpu_every_s=gpu_interval_s(self._sampled)
        )

    def _keeper(self, link: Link, *, read_only: bool) -> HostLink:
        from specconsole.adapters.network_watch import NetworkWatch
        from specconsole.services.host_link import HostLink

        return HostLink(
            link,
            self._board,
            self._clock,
            asker=self._asker,
            network=NetworkWatch(),
            describe=self._asker is not None,
            read_only=self._read_only or read_only,
        )


@dataclass(frozen=True, slots=True)
class Console:
    """What a client holds: the supervisor, its board, and what may be asked of it."""

    supervisor: Supervisor
    board: Board
    commands: ConsoleCommands
    benches: Benches
    history: HistoryDesk
    store_trouble: str = ""
    """Why this console goes on without its history; "" when it does not."""


@asynccontextmanager
async def _offering(adoption: Adoption, board: Board, clock: Clock, *, window: bool) -> AsyncIterator[None]:
    """Offers running servers unasked, where somebody sees it."""
    from specconsole.services.offers import Offers

    if not window:
        yield
        return
    offers = asyncio.create_task(Offers(adoption, board, clock).run())
    try:
        yield
    finally:
        offers.cancel()
        await asyncio.wait({offers})
        if not offers.cancelled() and (bug := offers.exception()) is not None:
            raise bug


@asynccontextmanager
async def open_supervisor(
    hosts: Iterable[str] = ("local",), *, read_only: bool = False, window: bool = False, spare_store: bool = False
) -> AsyncIterator[Console]:
    """The live services for the length of a block; servers outlive it.

    `window`: somebody sees the board, so questions of hosts go there, and hosts that are down are kept trying.
    `spare_store`: where the store can't be opened (a full disk), go on without history, which is said; for everything
    that is not about the history itself.
    """
    from specconsole.adapters.form_files import FormFiles
    from specconsole.adapters.hosts_toml import ssh_aliases
    from specconsole.adapters.sqlite_store import SqliteStore
    from specconsole.services.adoption import Adoption
    from specconsole.services.benches import Benches
    from specconsole.services.console_commands import ConsoleCommands
    from specconsole.services.history_commands import HistoryDesk
    from specconsole.services.host_desk import HostDesk
    from specconsole.services.host_questions import BoardAsker
    from specconsole.services.measuring_commands import BenchesDesk
    from specconsole.services.spool_room import make_room
    from specconsole.services.supervisor import Parts, Supervisor

    def read_disk() -> tuple[Path, ProfileFiles, WhoWeAre, HostsFiles, list[str], frozenset[str]]:
        # Loading these takes a quarter of a second, which the loop must not stand still for.
        importlib.import_module("specconsole.adapters.http")
        importlib.import_module("specconsole.adapters.process_launcher")
        folder = state_folder()
        make_room(folder / "spool")
        return folder, profile_files(), who_we_are(folder), hosts_files(), ssh_aliases(), read_only_hosts()

    folder, files, us, hosts_known, aliases, kept_hosts = await asyncio.to_thread(read_disk)
    clock, board = system_clock(), Board()
    asker = BoardAsker(board, clock.wall_s) if window else None
    opener = HostOpener(board, clock, asker=asker, read_only=read_only)
    trouble = ""
    try:
        store = await SqliteStore.open(folder / "store.sqlite")
    except SpecconsoleError as error:
        if not spare_store:
            raise
        trouble = f"going on without history: {error}"
        if not window:
            sys.stderr.write(f"specconsole: {trouble}\n")
        store = await SqliteStore.in_memory()
    parts = Parts(
        clock=clock,
        us=us,
        store=store,
        state_folder=folder,
        open_host=opener,
        apis=server_apis(),
        read_profile=files.read,
        profile_names=files.paths,
        read_only=read_only,
        read_only_hosts=kept_hosts,
        board=board,
        preflight=preflight_tools(folder),
    )
    try:
        async with Supervisor(parts, hosts) as supervisor:
            history = HistoryDesk(supervisor)
            desk = HostDesk(supervisor, opener.keepers, hosts_known, aliases, asker)
            async with (
                Benches(supervisor, await asyncio.to_thread(bench_parts)) as benches,
                _offering(Adoption(supervisor), board, clock, window=window),
            ):
                if window:
                    benches.begin_looking()
                history.use_results(benches.results)
                history.on_changed.append(partial(benches.publish, changed=True))
                commands = ConsoleCommands(
                    supervisor, desk, BenchesDesk(benches), history, FormFiles(files, config_folder() / "profiles")
                )
                yield Console(supervisor, board, commands, benches, history, trouble)
    finally:
        await store.aclose()
