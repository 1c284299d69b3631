"""Launches on a host with nothing but a Transport, POSIX sh, setsid and /proc.

Scripts and their parsers are pure (`core/launching`); this module runs them and owns no state: the launch folder on
the host does.
"""

from __future__ import annotations

import secrets as random_tokens
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from specconsole.adapters.host_lock import HostLock
from specconsole.adapters.process_stopper import ProcessLook, ProcessStopper
from specconsole.core.hardware.processes import PortHolders, parse_detail, parse_port_holders
from specconsole.core.launching import preflight as checks
from specconsole.core.launching import probes
from specconsole.core.launching.folder import LaunchRecord, parse_moment, parse_observed, parse_start
from specconsole.core.launching.script import Family, in_family
from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.launching.start_script import start_script
from specconsole.core.launching.stopping import LeftOver, StopEvent
from specconsole.errors import BadInputError, FileMissingError, NotFoundError, RefusedError, SpecconsoleError
from specconsole.ports import Transport

# A start holds its lock for the seconds that the script takes; a dead console's lock is free after this.
_START_LOCK_S = 60


class ProcessLauncher:
    """Launcher over any Transport; see `ports.Launcher`."""

    def __init__(self, transport: Transport, *, family: Family = "launches") -> None:
        self._transport = transport
        self._family: Family = family
        self._root = ""
        """Folder of this machine's launches, once the host has said it."""

    @property
    def host(self) -> str:
        return self._transport.host

    async def preflight(self, spec: LaunchSpec) -> tuple[checks.Finding, ...]:
        findings: list[checks.Finding] = []
        if spec.port is not None:
            findings.append(await self._check_port(spec, spec.port))
        findings += await self._check_binary(spec)
        needed = None
        named = [(name, path) for name, path in (("model", spec.model), ("draft", spec.draft_model)) if path]
        if named:
            output = await self._sh(probes.PATHS, [path for _, path in named])
            kinds = checks.parse_paths(output)
            for index, (name, path) in enumerate(named):
                kind, size = kinds.get(str(index), ("unknown", None))
                findings.append(checks.judge_path(name, path, kind))
                if size is not None:
                    needed = (needed or 0) + size
        memory = checks.parse_memory(await self._sh(probes.MEMORY))
        findings.append(checks.judge_memory(memory, needed))
        return tuple(findings)

    async def free_port(self) -> int:
        # Below the usual ephemeral range (32768-60999, ip_local_port_range): no outgoing connection takes it first.
        records = await self.discover()
        promised = {one.spec.port for one in records if (one.alive or one.waits) and one.spec is not None}
        for _ in range(20):
            port = 20000 + random_tokens.randbelow(12000)
            if port not in promised and (await self._port_holders(port)).free:
                return port
        raise RefusedError("no free port was found", where=self.host, try_="--set port=N")

    async def start(self, spec: LaunchSpec, secrets: Mapping[str, str]) -> LaunchRecord:
        # What waits for its turn takes the port later, and looks again by itself.
        port = None if spec.when_free else spec.port
        name = f"port-{port}" if port is not None else f"launch-{spec.launch_id}"
        async with HostLock(self._transport, name, owner=spec.owner, lease_s=_START_LOCK_S) as lock:
            if lock.holder is not None:
                raise RefusedError(
                    f"{lock.describe()} is starting a server on port {spec.port}", where=self.host, try_="another port"
                )
            if port is not None:
                finding = await self._check_port(spec, port)
                if finding.severity == "stop":
                    raise RefusedError(finding.text, where=self.host, try_=finding.try_)
            script = start_script(spec, secrets, prepared=self._family != "launches")
            done = await self._transport.run_sh(in_family(script, self._family), timeout_s=60)
            parse_start(done.stdout or done.stderr, self.host)
        record = await self.observe(spec.launch_id)
        if record is None:
            raise SpecconsoleError("the launch folder vanished", where=self.host)
        return record

    async def discover(self) -> tuple[LaunchRecord, ...]:
        return await self._observe([])

    async def prepare(self, launch_id: str, files: Mapping[str, bytes]) -> str:
        folder = f"{await self._the_root()}/{launch_id}"
        done = await self._transport.run(["mkdir", "-p", "-m", "700", folder])
        if not done.ok:
            reason = done.stderr.decode("utf-8", "replace").strip()
            raise BadInputError(
                f"the folder can't be made: {reason}", where=self.host, try_="check owner and free space"
            )
        for name, data in files.items():
            await self._transport.write_file(f"{folder}/{name}", data)
        return folder

    async def _the_root(self) -> str:
        if not self._root:
            # An id that no launch has: only the host's own facts come back.
            self._root = parse_moment(await self._sh(probes.OBSERVE, ["-"])).root
        return self._root

    async def list_ids(self) -> tuple[str, ...]:
        try:
            return tuple(await self._transport.list_dir(await self._the_root()))
        except FileMissingError:
            return ()

    async def observe_some(self, launch_ids: Sequence[str]) -> tuple[LaunchRecord, ...]:
        return await self._observe(launch_ids) if launch_ids else ()

    async def observe(self, launch_id: str) -> LaunchRecord | None:
        found = await self._observe([launch_id])
        return found[0] if found else None

    async def _observe(self, launch_ids: Sequence[str]) -> tuple[LaunchRecord, ...]:
        output = await self._sh(probes.OBSERVE, launch_ids)
        if not output.endswith(b"end=1\n"):
            raise SpecconsoleError("the launch folders could not be read whole", where=self.host, try_="once more")
        return parse_observed(output)

    async def processes(self, launch_id: str) -> tuple[LeftOver, ...]:
        record = await self._known(launch_id)
        look = ProcessLook(self._transport, record)
        await look.refresh()
        return await look.describe(look.owned.proven, "belongs to the launch")

    async def mark_answered(self, launch_id: str, after_s: float) -> None:
        await self._sh(probes.MARK_ANSWERED, [launch_id, f"{after_s:.2f}"])

    async def owns_listener(self, record: LaunchRecord, port: int) -> bool | None:
        holders = await self._port_holders(port)
        if holders.free:
            return False
        if not holders.pids:
            return None
        look = ProcessLook(self._transport, record)
        await look.refresh()
        mine = {process.pid for process in look.owned.proven}
        return bool(mine.intersection(holders.pids))

    async def stop(
        self,
        launch_id: str,
        *,
        by: str,
        at_s: float,
        grace_s: float,
        drop_requests: Callable[[], Awaitable[str]] | None = None,
    ) -> AsyncIterator[StopEvent]:
        record = await self._known(launch_id)
        stopper = ProcessStopper(self._transport, record, self._port_left_over, self._family)
        async for event in stopper.run(by=by, at_s=at_s, grace_s=grace_s, drop_requests=drop_requests):
            yield event

    async def _known(self, launch_id: str) -> LaunchRecord:
        record = await self.observe(launch_id)
        if record is None:
            raise NotFoundError(f"no launch {launch_id}", where=self.host, try_="specconsole status")
        return record

    async def _check_port(self, spec: LaunchSpec, port: int) -> checks.Finding:
        # A server that loads for minutes holds its port only at the end: the folders know whom it is promised to.
        for record in await self.discover():
            if record.alive and record.spec is not None and record.spec.port == port:
                return checks.judge_promise(port, record.spec.profile, record.launch_id, record.spec.owner)
        holders = await self._port_holders(port)
        return checks.judge_port(port, holders.free, await self._names(holders))

    async def _check_binary(self, spec: LaunchSpec) -> list[checks.Finding]:
        args = [spec.argv[0], spec.environment or "", spec.working_dir or "", spec.env.get("PATH", "")]
        answer = (await self._sh(probes.BINARY, args)).decode("utf-8", "replace").strip()
        return [checks.judge_binary(answer, spec.argv[0], spec.environment, spec.working_dir)]

    async def _port_holders(self, port: int) -> PortHolders:
        return parse_port_holders(await self._sh(probes.PORT_HOLDERS, [str(port)]))

    async def _names(self, holders: PortHolders) -> Sequence[str]:
        return [str(one) for one in await self._port_left_over_of(holders, "listens")]

    async def _port_left_over(self, port: int) -> tuple[LeftOver, ...]:
        return await self._port_left_over_of(await self._port_holders(port), f"holds port {port}")

    async def _port_left_over_of(self, holders: PortHolders, why: str) -> tuple[LeftOver, ...]:
        if holders.free:
            return ()
        if not holders.pids:
            users = ", ".join(f"uid {uid}" for uid in holders.uids)
            return (LeftOver(0, users, None, "", f"{why}; its process can't be seen from this account"),)
        look = ProcessLook(self._transport, None)
        await look.refresh()
        known = look.table.by_pid()
        details = parse_detail(await self._sh(probes.PROCESS_DETAIL, [str(pid) for pid in holders.pids]))
        found: list[LeftOver] = []
        for pid in holders.pids:
            detail = details.get(pid)
            age_s = look.table.age_s(known[pid]) if pid in known else None
            found.append(LeftOver(pid, detail.user if detail else "", age_s, detail.command if detail else "", why))
        return tuple(found)

    async def _sh(self, script: str, args: Sequence[str] = ()) -> bytes:
        done = await self._transport.run_sh(in_family(script, self._family), args)
        if done.exit_status is None:
            raise SpecconsoleError("a probe on the host was interrupted", where=self.host, try_="once more")
        return done.stdout
