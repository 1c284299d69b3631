"""Starting, finding and ending servers on a host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.launching.stopping import LeftOver, StopEvent


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


class BenchLauncher(Launcher, Protocol):
    """A launcher whose processes need files beside them: the load generator, its plan, its requests."""

    async def prepare(self, launch_id: str, files: Mapping[str, bytes]) -> str:
        """Makes the folder of a launch to come and puts `files` (names -> bytes, mode 0600) into it; returns its path.

        `start` then starts in it. Raises BadInputError with the host's reason, TransportError.
        """
