"""What services may ask of the outside world, where there is more than one real implementation.

`Transport` is a way to a host (`local`, `ssh`); everything that happens on a host goes through it. Every
implementation passes tests/contracts/. Errors are those of `specconsole.errors`; a method that returns has
done what it says, and `None` always means "unknown", never "fine".
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from specconsole.core.hardware.gpu import GpuFacts, GpuProcess, GpuTick
from specconsole.core.hardware.host import HostCounters
from specconsole.core.hardware.mounts import Mount
from specconsole.core.launching.effective import Account, Effective, Said
from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.launching.stopping import LeftOver, StopEvent
from specconsole.errors import TransportError


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended, or whose end could not be learned."""

    exit_status: int | None
    """The exit status; None when it is unknown (link lost, ended by a signal): that is a failure."""
    stdout: bytes
    stderr: bytes
    truncated: bool = False
    """True when output beyond the caller's limit was read and dropped."""

    @property
    def ok(self) -> bool:
        return self.exit_status == 0


@dataclass(frozen=True, slots=True)
class FileStat:
    """What a host says about a file."""

    size_bytes: int
    mtime_s: float
    """Host's wall clock, seconds since the epoch (SFTP v3 gives whole seconds)."""
    mode: int
    """Permission and type bits as in `st_mode`."""
    inode: int | None = None
    """None where the transport can't tell (SFTP)."""

    @property
    def is_dir(self) -> bool:
        return (self.mode & 0o170000) == 0o040000


class ByteStream(Protocol):
    """The output of a command that goes on, or one direction of a connection."""

    async def read(self, max_bytes: int = 65536) -> bytes:
        """The next bytes as they arrive; b"" at the end. Raises LinkLostError when the link broke instead."""

    async def aclose(self) -> None:
        """Stops listening. Never relied on to stop the command: see `Launcher.stop`."""


class RemoteFile(Protocol):
    """A file held open, so that a renamed one can still be drained."""

    async def read_at(self, offset: int, max_bytes: int) -> bytes:
        """Bytes from `offset`; fewer than asked, or b"", at the end of the file."""

    async def stat(self) -> FileStat:
        """Of the open handle, not of the path."""

    async def aclose(self) -> None: ...


@runtime_checkable
class Transport(Protocol):
    """A way to one host."""

    @property
    def host(self) -> str:
        """The name that people use: `local`, an alias from ssh_config, or `user@host`."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float = 30.0,
        max_output_bytes: int = 16 * 1024 * 1024,
    ) -> Completed:
        """Runs a command to its end. Arguments arrive byte for byte, whatever the login shell is.

        Raises TransportError when the link fails and TimeoutError after `timeout_s` (the command's process
        group is then ended as far as the transport can).
        """

    async def run_sh(
        self,
        script: str,
        args: Sequence[str] = (),
        *,
        timeout_s: float = 30.0,
        max_output_bytes: int = 16 * 1024 * 1024,
    ) -> Completed:
        """Runs a POSIX sh script handed over on standard input, with `args` as $1, $2, ..."""

    def stream(self, argv: Sequence[str]) -> AbstractAsyncContextManager[ByteStream]:
        """A command that goes on by itself (a sampler, `docker logs -f`); stderr is merged in."""

    async def stat(self, path: str) -> FileStat | None:
        """None when there is no such path."""

    async def open_file(self, path: str) -> RemoteFile:
        """Raises FileMissingError when there is none."""

    async def read_file(self, path: str, *, max_bytes: int = 16 * 1024 * 1024) -> bytes:
        """The whole file. Raises FileMissingError, or BadInputError when it is larger than `max_bytes`."""

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """Writes beside the target and renames over it, so that a reader sees the old or the new one."""

    async def list_dir(self, path: str) -> list[str]:
        """Names in a folder, sorted, without `.` and `..`. Raises FileMissingError."""

    async def open_connection(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A TCP connection that starts at the host (no local port is opened for it).

        Raises ConnectionRefusedAtHostError when nothing listens, TransportError when the way there fails.
        The writer of a non-local transport supports write, drain, close, wait_closed and is_closing only.
        """

    async def aclose(self) -> None: ...


class Asker(Protocol):
    """Puts a question of the other side to the person at the console."""

    async def ask(self, host: str, prompt: str, *, secret: bool = True) -> str | None:
        """The answer; None when the person declines. `prompt` is one clean line; `secret` hides the typing."""

    def tell(self, host: str, text: str) -> None:
        """Something to read before answering (a banner with a link to open)."""


@dataclass(frozen=True, slots=True)
class OfferedKey:
    """A host key that is not trusted, as the host showed it."""

    algorithm: str
    fingerprint: str
    """`SHA256:...`, as `ssh-keygen -lf` prints it."""
    known_file: str
    """The known_hosts file that trusting it would write to."""


@dataclass(frozen=True, slots=True)
class LinkAbilities:
    """What a connection can do, as far as it was found out by using it."""

    sftp: bool
    session_limit: int
    """Session channels that we may have at once."""
    most_sessions: int
    """Session channels that were open at once so far."""
    chatter_bytes: int
    """What the login shell's start-up files print (0: nothing)."""
    setsid: bool
    timeout: bool
    server: str
    """The host's SSH software."""
    via: str
    """How it was reached: `directly`, a jump host's name, `ProxyCommand`."""


@runtime_checkable
class Link(Transport, Protocol):
    """A Transport that has to be connected, may break, and can be connected again.

    While it is down every call of `Transport` raises LinkLostError at once; nothing reconnects by itself.
    """

    @property
    def connected(self) -> bool: ...

    @property
    def offered_key(self) -> OfferedKey | None:
        """The key that the last `connect` refused; None when it refused none."""

    @property
    def abilities(self) -> LinkAbilities | None:
        """None before the first connect."""

    @property
    def last_heard_s(self) -> float | None:
        """Event loop's clock when the host was last heard of; None before the first connect."""

    async def connect(self, asker: Asker | None = None) -> None:
        """Makes the connection. Raises the TransportError that says why not.

        Without `asker` nothing is ever asked: NeedsPersonError says what would have been.
        """

    async def wait_lost(self) -> TransportError:
        """Returns when the present connection is gone, with the reason."""

    async def ping(self, timeout_s: float) -> float:
        """Round trip in seconds. Raises TimeoutError or LinkLostError; neither closes the link."""

    async def trust(self, fingerprint: str) -> None:
        """Adds `offered_key` to known_hosts. Raises RefusedError when `fingerprint` is not its."""


class Launcher(Protocol):
    """Starts, finds and ends servers on one host. Every implementation passes tests/contracts/."""

    @property
    def host(self) -> str: ...

    async def preflight(self, spec: LaunchSpec) -> tuple[Finding, ...]:
        """Looks at port, binary, paths and memory; changes nothing."""

    async def free_port(self) -> int:
        """A port that nobody listens on right now."""

    async def start(self, spec: LaunchSpec, secrets: Mapping[str, str]) -> LaunchRecord:
        """Starts it and returns once its process is recorded on the host.

        Raises RefusedError when another console holds the launch lock of that port or the port is taken, BadInputError
        with the host's reason when the folder can't be written.
        """

    async def discover(self) -> tuple[LaunchRecord, ...]:
        """Every launch folder of this machine, oldest first, half-written ones included."""

    async def list_ids(self) -> tuple[str, ...]:
        """Names of the launch folders of this machine, oldest first: cheap, no process on the host where SFTP works."""

    async def observe_some(self, launch_ids: Sequence[str]) -> tuple[LaunchRecord, ...]:
        """Several in one go; those that are no longer there are left out."""

    async def observe(self, launch_id: str) -> LaunchRecord | None:
        """None when there is no such folder."""

    async def processes(self, launch_id: str) -> tuple[LeftOver, ...]:
        """The launch's own processes, proven ones only; `why` says by what."""

    async def mark_answered(self, launch_id: str, after_s: float) -> None:
        """Notes in the folder how long it took to its first proven answer, once."""

    async def owns_listener(self, record: LaunchRecord, port: int) -> bool | None:
        """Whether a process of the launch holds the listening socket; None when that can't be seen."""

    def stop(
        self,
        launch_id: str,
        *,
        by: str,
        at_s: float,
        grace_s: float,
        drop_requests: Callable[[], Awaitable[str]] | None = None,
    ) -> AsyncIterator[StopEvent]:
        """Stops and verifies; the last event is `finished`. Safe to repeat, to run twice at once, and to cancel.

        `drop_requests` asks the server to drop its requests and says in one line what came of it.
        """


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What came back from an HTTP request."""

    status: int
    body: bytes


class HttpClient(Protocol):
    """HTTP to servers of one host, through that host's transport."""

    async def get(self, host: str, port: int, path: str, *, timeout_s: float) -> HttpAnswer:
        """Raises ConnectionRefusedAtHostError, ConnectionResetAtHostError, TimeoutError, TransportError."""

    async def post_json(self, host: str, port: int, path: str, body: object, *, timeout_s: float) -> HttpAnswer:
        """As `get`."""

    def with_key(self, key: str) -> HttpClient:
        """The same client, which sends `key` as a bearer token with every request. Closed with this one."""

    async def aclose(self) -> None: ...


class ServerApi(Protocol):
    """How one engine is asked. The same for every launch of it; what varies comes in as arguments."""

    engine: str
    account_words: tuple[str, ...]
    """Lines of the log with one of these go into `Said.lines`."""

    def health_path(self, version: str | None) -> str:
        """The endpoint that tells least expensively whether it answers."""

    def probe_costs(self, version: str | None, env: Mapping[str, str]) -> bool:
        """True where asking for health makes the server work (SGLang generates a token)."""

    async def complete(self, http: HttpClient, host: str, port: int, prompt: str, *, timeout_s: float) -> int:
        """Asks for exactly 16 tokens and returns how many came back whole. Raises as `HttpClient`, and BadInputError
        when the answer is no completion."""

    async def drop_requests(self, http: HttpClient, host: str, port: int) -> str:
        """Asks the server to drop what it works on; one line that says what came of it."""

    @property
    def shallow_health(self) -> bool:
        """True where health is 200 although the engine behind it may stand still (vLLM)."""

    async def progress(self, http: HttpClient, host: str, port: int) -> tuple[int | None, float | None]:
        """(requests that it works on, tokens generated since its start); None for what it does not say."""

    def grace_s(self, wanted_s: float, settings: Mapping[str, Any]) -> float:
        """How long TERM may take before KILL: less than `wanted_s` where waiting longer only waits for nothing."""

    async def running_requests(self, http: HttpClient, host: str, port: int) -> int | None:
        """Requests that it works on now; None when it doesn't say."""

    async def account(self, http: HttpClient | None, host: str, port: int, said: Said) -> Effective:
        """How it runs by its own account: its log, and what its endpoints say where `http` may be asked. Never raises
        for an endpoint that is not there or does not answer. Secrets are masked."""

    def judge(self, asked: Mapping[str, Any], found: Effective, *, drafts: bool, build: Mapping[str, str]) -> Account:
        """What became of what was asked."""


class BenchLauncher(Launcher, Protocol):
    """A launcher whose processes need files beside them: the load generator, its plan, its requests."""

    async def prepare(self, launch_id: str, files: Mapping[str, bytes]) -> str:
        """Makes the folder of a launch to come and puts `files` (names -> bytes, mode 0600) into it; returns its path.

        `start` then starts in it. Raises BadInputError with the host's reason, TransportError.
        """


class GpuProbe(Protocol):
    """The GPU tool of one host. Raises GpuToolError when the tool has no figures, TransportError when the way there
    is broken."""

    tool: str
    """What is run there: `nvidia-smi`, `amd-smi`, ..."""
    note: str
    """What a person must know of every figure of it (`not tried on hardware`); "" when there is nothing."""

    def ticks(self, every_s: int) -> AsyncGenerator[GpuTick, None]:
        """All GPUs again and again, about every `every_s` seconds, from one process where the tool can stream.

        A slow tool gives fewer. Close it (`contextlib.aclosing`) to give its channel back.
        """

    async def snapshot(self) -> GpuTick:
        """All GPUs once."""

    async def processes(self) -> tuple[GpuProcess, ...]:
        """Who holds GPU memory, as far as the tool can see."""

    async def facts(self) -> GpuFacts:
        """Driver, topology, links, MIG devices: what seldom changes. What the tool can't tell is left empty."""


class HostProbe(Protocol):
    """CPU, memory, disks and network of one host."""

    def readings(self, every_s: int) -> AsyncGenerator[HostCounters, None]:
        """Counters about every `every_s` seconds, the first ones at once. Raises TransportError."""

    def mounts(self) -> Mapping[str, Mount]:
        """The mount table by mount point; empty where it can't be read, or before the first reading."""


class HardwareTools(Protocol):
    """Finds the right probes for a host."""

    async def find_gpu_probe(self, transport: Transport) -> GpuProbe | str:
        """The probe of the GPU tool that is there, or why there is none, in one line. Raises TransportError."""

    def host_probe(self, transport: Transport) -> HostProbe: ...


class Clock(Protocol):
    """Time, so that tests can turn it."""

    def monotonic_s(self) -> float: ...

    def wall_s(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...
