"""Everything that can be known of a start before it is made: all looks at once, each told as soon as it is in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from specconsole.core.hardware.processes import parse_detail, parse_port_holders
from specconsole.core.launching import probes
from specconsole.core.launching.checkpoint import Checkpoint
from specconsole.core.launching.disk import DISK, Disks, judge_disks, parse_disks
from specconsole.core.launching.engine_flags import check_flags
from specconsole.core.launching.engine_settings import ENGINE_FLAGS, judge_profile
from specconsole.core.launching.findings import fix_text, gravest_first, in_its_words, of_flag, of_verdict
from specconsole.core.launching.key_argument import consented
from specconsole.core.launching.model_check import (
    GpuRoom,
    draft_path,
    judge_context,
    judge_draft,
    judge_gpu_memory,
    judge_host_memory,
    judge_llama_devices,
    judge_own_heads,
    ports_beside,
    ranks_of,
    target_path,
)
from specconsole.core.launching.model_files import Model
from specconsole.core.launching.needs import Needs, needs_of, never_free
from specconsole.core.launching.preflight import Finding, HostMemory, judge_port, parse_memory
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.launching.versions import parse_version
from specconsole.errors import SpecconsoleError, TransportError
from specconsole.ports import HardwareTools, Launcher, Transport
from specconsole.services.host_sampler import ask_owners
from specconsole.services.model_look import look_at_model, read_maps
from specconsole.services.server_flags import FlagShelf, ServerFlags, read_server_flags

Found = Callable[[Finding], None]
_GPU_LIMIT_S = 8.0
_DISK_LIMIT_S = 8.0
_HELD_BYTES = 256 * 1024 * 1024
"""What a process holds on a GPU below this is no obstacle (a display, a monitor's context)."""


@dataclass(frozen=True, slots=True)
class PreflightTools:
    """What the looks need besides a way to the host."""

    hardware: HardwareTools
    shelf: FlagShelf


@dataclass(slots=True)
class _Looks:
    """What came in; None where it did not."""

    flags: ServerFlags | None = None
    target: Model | None = None
    target_files: Checkpoint | None = None
    draft: Model | None = None
    draft_files: Checkpoint | None = None
    gpus: Sequence[GpuRoom] | None = None
    memory: HostMemory | None = None
    disks: Disks | None = None


class Preflight:
    """One start on one host, looked at. Changes nothing there."""

    samples_disk = True
    """Times the model's disk by reading 64 MiB of it."""

    def __init__(
        self, transport: Transport, launcher: Launcher, tools: PreflightTools, profile: Profile, spec: LaunchSpec
    ) -> None:
        self._transport = transport
        self._launcher = launcher
        self._tools = tools
        self._profile = profile
        self._spec = spec
        self._looks = _Looks()
        self._all: list[Finding] = []

    async def run(self, found: Found, told: Callable[[str], None], *, help_limit_s: float) -> tuple[Finding, ...]:
        """All findings, gravest first; `found` gets each as it comes in, `told` what takes long.

        Raises TransportError when the way to the host fails. Cancelling it leaves nothing behind.
        """
        self._tell = found
        work = (
            self._basics(),
            self._ports(),
            self._flags(told, help_limit_s),
            self._models(),
            self._gpus(),
            self._host_memory(),
            self._disk(),
        )
        try:
            async with asyncio.TaskGroup() as group:
                for one in work:
                    group.create_task(one)
        except BaseExceptionGroup as error:
            # Cancellation is no part of the group; a broken way to the host breaks several looks at once.
            broken = error.subgroup(SpecconsoleError)
            if broken is None:
                raise
            raise _first(broken) from None
        self._judge()
        await self._maps()
        self._memory()
        self._disks()
        return gravest_first(self._all)

    def needs(self) -> Needs:
        """What must be free for the start; after `run`."""
        target, draft = self._models_seen()
        return needs_of(self._profile, self._spec.port, target, draft, self._looks.gpus)

    def never_free(self) -> tuple[Finding, ...]:
        """What forbids the start even with nobody else on the GPUs; after `run`."""
        return never_free(self._profile, *self._models_seen(), self._looks.gpus or ())

    def _models_seen(self) -> tuple[Model, Model]:
        return self._looks.target or Model(), self._looks.draft or Model()

    def _add(self, *findings: Finding) -> None:
        for one in findings:
            finding = in_its_words(self._profile, one)
            self._all.append(finding)
            self._tell(finding)

    async def _tried(self, what: str, look: Awaitable[None]) -> None:
        """One look; what goes wrong in it is a finding, unless the way to the host is what broke."""
        try:
            await look
        except TransportError:
            raise
        except TimeoutError:
            self._add(Finding(what, "warning", f"{what}: no answer in time"))
        except SpecconsoleError as error:
            self._add(Finding(what, "warning", f"{what} could not be looked at: {error.what}", error.try_))

    # ---------------------------------------------------------------- looks

    async def _basics(self) -> None:
        async def look() -> None:
            # Memory is judged below, by what the model's files say.
            findings = await self._launcher.preflight(self._spec)
            self._add(*(one for one in findings if one.check != "memory"))

        await self._tried("port", look())

    async def _ports(self) -> None:
        async def look(port: int, name: str) -> None:
            done = await self._transport.run_sh(probes.PORT_HOLDERS, [str(port)])
            holders = parse_port_holders(done.stdout)
            who: list[str] = []
            if holders.pids:
                answer = await self._transport.run_sh(probes.PROCESS_DETAIL, [str(pid) for pid in holders.pids])
                details = parse_detail(answer.stdout)
                who = [f"pid {pid}, {one.user}, {one.command[:80]}" for pid, one in details.items()]
            finding = judge_port(port, holders.free, who)
            # SGLang picks a free one where --nccl-port is not set; the other ports are written for other nodes too.
            fix = {"nccl_port": None} if name == "--nccl-port" and not holders.free else None
            hint = fix_text(fix) or ("" if holders.free else f"another {name}")
            self._add(replace(finding, text=f"{finding.text} ({name})", name=name, try_=hint, fix=fix))

        for port, name in ports_beside(self._profile, self._spec.port).items():
            await self._tried("port", look(port, name))

    async def _flags(self, told: Callable[[str], None], limit_s: float) -> None:
        async def look() -> None:
            read = await read_server_flags(
                self._transport, self._tools.shelf, self._profile, self._spec, limit_s=limit_s, told=told
            )
            self._looks.flags = read
            self._add(*read.findings)
            engine = ENGINE_FLAGS.get(self._profile.engine)
            if engine is None or read.catalogue is None:
                return
            problems = check_flags(engine, read.catalogue, self._profile.args, certain=read.certain)
            self._add(*(of_flag(problem, read.catalogue.source) for problem in problems))
            if not problems:
                text = f"{len(self._profile.args)} settings are flags of {read.catalogue.source}"
                self._add(Finding("flag", "ok", text, name="known"))

        await self._tried("flag", look())

    async def _models(self) -> None:
        async def target(path: str) -> None:
            self._looks.target_files, self._looks.target = await self._model("model", path)
            self._add(*self._looks.target.findings)

        async def draft(path: str) -> None:
            self._looks.draft_files, self._looks.draft = await self._model("draft", path)
            self._add(*self._looks.draft.findings)

        looks = [("model", target_path(self._profile), target), ("draft", draft_path(self._profile), draft)]
        async with asyncio.TaskGroup() as group:
            for role, path, look in looks:
                if path is not None:
                    group.create_task(self._tried(role, look(path)))

    async def _model(self, role: str, path: str) -> tuple[Checkpoint, Model]:
        return await look_at_model(self._transport, role, path)

    async def _gpus(self) -> None:
        async def look() -> None:
            async with asyncio.timeout(_GPU_LIMIT_S):
                probe = await self._tools.hardware.find_gpu_probe(self._transport)
                if isinstance(probe, str):
                    self._looks.gpus = ()
                    if self._profile.engine in ("sglang", "vllm"):
                        self._add(Finding("gpu", "note", probe))
                    return
                tick, processes = await probe.snapshot(), await probe.processes()
                owners = await ask_owners(self._transport, {one.pid for one in processes if one.pid is not None})
            rooms: list[GpuRoom] = []
            for gpu in tick.gpus:
                held: list[str] = []
                for one in processes:
                    if one.gpu_uuid != gpu.uuid or (one.used_bytes or 0) < _HELD_BYTES:
                        continue
                    owner = owners.by_pid.get(one.pid) if one.pid is not None else None
                    who = f"{owner.user or 'somebody'}, {(owner.command or '')[:80]}" if owner else one.name or "hidden"
                    held.append(f"{(one.used_bytes or 0) / 2**30:.1f} GiB by pid {one.pid or '?'} ({who})")
                if gpu.memory_total_bytes is not None and gpu.memory_used_bytes is not None:
                    free = gpu.memory_total_bytes - gpu.memory_used_bytes
                    rooms.append(GpuRoom(gpu.index, gpu.memory_total_bytes, free, tuple(held)))
            self._looks.gpus = tuple(rooms)

        await self._tried("gpu", look())

    async def _host_memory(self) -> None:
        async def look() -> None:
            done = await self._transport.run_sh(probes.MEMORY)
            self._looks.memory = parse_memory(done.stdout)

        await self._tried("memory", look())

    async def _disk(self) -> None:
        async def look() -> None:
            words = [target_path(self._profile) or "", "sample" if self.samples_disk else ""]
            done = await self._transport.run_sh(DISK, words, timeout_s=_DISK_LIMIT_S)
            self._looks.disks = parse_disks(done.stdout)

        await self._tried("disk", look())

    # ---------------------------------------------------------------- judgement over several looks

    def _judge(self) -> None:
        """The engine's rules, by the version that is there, else by the profile's."""
        flags, looks = self._looks.flags, self._looks
        version = flags.version if flags is not None and flags.version is not None else None
        version = version or parse_version(self._profile.engine_version)
        verdicts = judge_profile(
            self._profile,
            version,
            looks.target.facts if looks.target is not None else None,
            looks.draft.facts if looks.draft is not None else None,
        )
        findings = [consented(of_verdict(verdict), self._profile) for verdict in verdicts]
        findings += judge_context(self._profile, looks.target) if looks.target is not None else ()
        self._add(*(self._possible(finding) for finding in findings))

    def _possible(self, finding: Finding) -> Finding:
        """Without a fix that this server does not take."""
        flags = self._looks.flags
        if not finding.fix or flags is None or flags.catalogue is None or not flags.certain:
            return finding
        known = all(key.startswith("env.") or flags.catalogue.find(key) for key in finding.fix)
        return finding if known else replace(finding, fix=None, try_="")

    async def _maps(self) -> None:
        looks = self._looks

        async def look(target: Model, draft: Model, files: Checkpoint) -> None:
            maps = await read_maps(self._transport, files, draft, looks.target_files)
            self._add(*judge_draft(self._profile, target, draft, maps))

        if looks.target is not None:
            self._add(*judge_own_heads(self._profile, looks.target))
        if looks.target is not None and looks.draft is not None and looks.draft_files is not None:
            await self._tried("draft", look(looks.target, looks.draft, looks.draft_files))

    def _disks(self) -> None:
        if self._looks.disks is not None:
            weights = self._looks.target.weights_bytes if self._looks.target is not None else None
            self._add(*judge_disks(self._profile, self._looks.disks, weights, ranks_of(self._profile)))

    def _memory(self) -> None:
        looks = self._looks
        if looks.target is None:
            return
        draft = looks.draft or Model()
        if looks.gpus and self._profile.engine in ("sglang", "vllm"):
            self._add(*judge_gpu_memory(self._profile, looks.target, draft, looks.gpus))
            return
        if looks.gpus and (on_gpus := judge_llama_devices(self._profile, looks.target, draft, looks.gpus)):
            self._add(*on_gpus)
            return
        if looks.memory is not None:
            finding = judge_host_memory(self._profile, looks.target, draft, looks.memory)
            if finding is not None:
                self._add(finding)


def _first(group: BaseExceptionGroup[SpecconsoleError]) -> SpecconsoleError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
