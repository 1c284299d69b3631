"""What a window may ask for the form: a part of `services.commands.Commands`, and its implementation."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from specconsole import __version__
from specconsole.core.hosts.names import LOCAL
from specconsole.core.launching.command import build_spec, profile_of
from specconsole.core.launching.engine_settings import ENGINE_FLAGS, ModelFacts
from specconsole.core.launching.form_fields import FlagIndex
from specconsole.core.launching.form_layer import Base, Table, base_of, layer_of
from specconsole.core.launching.form_model import LastLaunch
from specconsole.core.launching.inherit import Layer
from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.profile_table import profile_table
from specconsole.core.launching.spec import LaunchSpec
from specconsole.errors import NotFoundError, SpecconsoleError
from specconsole.services.form_paths import HostPaths
from specconsole.services.form_preflight import FormPreflight, LooksKept
from specconsole.services.launch import LaunchWatch
from specconsole.services.ordering import order_spec
from specconsole.services.server_flags import ServerFlags, read_server_flags
from specconsole.services.supervisor import Supervisor

Told = Callable[[str], None]
Found = Callable[[Finding], None]

_HELP_LIMIT_S = 120.0


class FormFiles(Protocol):
    """Where profiles are read from and written to. Calls are for a thread."""

    def layers(self, name: str) -> list[Layer]: ...

    def is_forms(self, source: str) -> bool: ...

    def why_not(self, name: str) -> str: ...

    def free_name(self, name: str) -> str: ...

    def save(self, name: str, own: Mapping[str, Any], host: str, wanted: Mapping[str, Any]) -> Path: ...

    def text_of(self, own: Mapping[str, Any]) -> str: ...

    def read_edited(self, path: Path) -> tuple[dict[str, Any], str]: ...

    def parents_of(self, own: Mapping[str, Any], text: str) -> Sequence[Layer]: ...


@dataclass(frozen=True, slots=True)
class FormOpening:
    """What the form begins with."""

    base: Base
    own: Table
    saved: Table
    """What its file says; equal to `own` where there is nothing to lose."""
    last: LastLaunch | None
    file: str = ""
    """The form's own file that saving rewrites; "" where saving asks for a name."""
    launch_id: str = ""
    """The launch that is edited; "" for a profile."""
    runs: bool = False
    """Whether that launch runs now."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FormOrder:
    """Start what the form shows."""

    profile: Profile
    host: str
    stop_first: str = ""
    """A launch to stop before; "" for none."""
    preflight: bool = True
    when_free: bool = False
    """Wait on the host until what it needs is free."""


@dataclass(frozen=True, slots=True)
class ServerLook:
    """The flags that a host's server takes, by name, and its version."""

    read: ServerFlags
    index: FlagIndex | None


@dataclass(slots=True)
class FormSession:
    """One open form's memory of its hosts."""

    paths: HostPaths
    kept: LooksKept = field(default_factory=LooksKept)


class FormCommands(Protocol):
    """Every coroutine raises SpecconsoleError when it did not do what it says."""

    def session(self) -> FormSession: ...

    def why_not(self, host: str) -> str:
        """Why nothing may be launched on this host; "" when it may."""

    async def open_profile(self, name: str, host: str) -> FormOpening: ...

    async def open_launch(self, launch_id: str) -> FormOpening:
        """The profile of a launch as it was launched."""

    def python(self, host: str) -> str | None:
        """What `{python}` stands for there; None where it means nothing."""

    async def built_in(self, engine: str) -> FlagIndex | None:
        """The flags of a sampled version; None for an engine without a list."""

    async def server(self, session: FormSession, profile: Profile, host: str, told: Told) -> ServerLook:
        """The flags of the server that is there; may take a minute the first time."""

    async def look(
        self, session: FormSession, profile: Profile, host: str, found: Found
    ) -> tuple[tuple[Finding, ...], tuple[ModelFacts | None, ModelFacts | None]]:
        """What stands against a start that only the host knows, and the facts of target and draft."""

    async def complete_path(self, session: FormSession, host: str, text: str) -> Sequence[str]: ...

    async def why_no_name(self, name: str) -> str:
        """Why a profile can't be saved so; "" when it can, `replace` when it rewrites one of the form's."""

    async def free_name(self, name: str) -> str: ...

    async def save(self, name: str, base: Base, own: Table, shown: Profile) -> str:
        """Writes the layer; its path."""

    async def toml_text(self, own: Table) -> str: ...

    async def read_edited(self, path: Path) -> tuple[Table, tuple[Layer, ...]]:
        """An edited text as a layer, with its parents."""

    async def launch(self, order: FormOrder, told: Told) -> str: ...


Start = Callable[[FormOrder, Told], Awaitable[str]]


class FormDesk:
    """`FormCommands` for a supervisor. `start` launches a profile that stands in no file."""

    def __init__(self, supervisor: Supervisor, files: FormFiles, start: Start) -> None:
        self._sup = supervisor
        self._parts = supervisor.parts
        self._files = files
        self._start = start

    def session(self) -> FormSession:
        return FormSession(HostPaths(self._parts.clock))

    def why_not(self, host: str) -> str:
        """Why nothing may be launched there."""
        return self._sup.why_no_change(host)

    # ---------------------------------------------------------------- opening

    async def open_profile(self, name: str, host: str) -> FormOpening:
        """The form's own files are edited themselves; over any other a layer of its own begins."""
        layers = await asyncio.to_thread(self._files.layers, name)
        ours = await asyncio.to_thread(self._files.is_forms, layers[0].source)
        own: Table = layers[0].data if ours else {"extends": name}
        parents = layers[1:] if ours else layers
        base = base_of(_name_of(layers[0]), host, parents)
        return FormOpening(base, own, own, self._last_of(base.name, host), layers[0].source if ours else "")

    async def open_launch(self, launch_id: str) -> FormOpening:
        """Its profile as it was launched, as a layer over the profile as it is now."""
        watch = self._sup.find(launch_id)
        spec = watch.record.spec
        if spec is None:
            raise NotFoundError(f"what launch {launch_id} was made from can't be read", try_="launch its profile")
        notes: list[str] = []
        layers: list[Layer] = []
        ours = False
        try:
            layers = await asyncio.to_thread(self._files.layers, spec.profile)
            ours = await asyncio.to_thread(self._files.is_forms, layers[0].source)
        except SpecconsoleError as error:
            notes.append(f"its profile can't be read here ({error.what}): the form holds all of it")
        base = base_of(spec.profile, watch.host, layers[1:] if ours else layers)
        own = dict(layer_of(base, _as_asked(spec, base)))
        if layers and not own.get("extends"):
            own = {**({"extends": layers[0].name} if not ours else {}), **own}
        if ours and layers[0].parent is not None:
            own["extends"] = layers[0].data["extends"]
        places = await asyncio.to_thread(self._sup.places.of, spec.launch_id)
        own, missing = _with_secrets(own, spec, base, layers, places)
        if missing:
            notes.append(f"where the secret {missing[0]} comes from is not known here: [secrets] in the text says it")
        view = self._sup.board.launches.get(watch.launch_id)
        runs = view is not None and view.state not in ("stopped", "failed", "gone", "unknown")
        return FormOpening(
            base, own, own, self._as_last(watch, spec), layers[0].source if ours else "", watch.launch_id, runs,
            tuple(notes),
        )  # fmt: skip

    def _last_of(self, name: str, host: str) -> LastLaunch | None:
        """The newest launch of that profile, on this host before others."""
        of_name = [
            (watch.host == host, watch.launch_id, watch, spec)
            for watch in self._sup.watches.values()
            if (spec := watch.record.spec) is not None and spec.profile == name and not spec.adopted
        ]
        if not of_name:
            return None
        _, _, watch, spec = max(of_name, key=lambda one: one[:2])
        return self._as_last(watch, spec)

    def _as_last(self, watch: LaunchWatch, spec: LaunchSpec) -> LastLaunch:
        view = self._sup.board.launches.get(watch.launch_id)
        reading = view.reading if view is not None else None
        effective = reading.server.args if reading is not None and reading.server.args else None
        # A port that was picked at that start is no setting of it.
        return LastLaunch(
            watch.launch_id, replace(profile_of(spec), port=None), watch.host,
            view.started_at_s if view is not None else None, effective,
        )  # fmt: skip

    # ---------------------------------------------------------------- looking

    def python(self, host: str) -> str | None:
        """As `order_spec` has it."""
        return sys.executable if host == LOCAL else None

    async def built_in(self, engine: str) -> FlagIndex | None:
        """From the console's own lists."""
        flags, tools = ENGINE_FLAGS.get(engine), self._parts.preflight
        if flags is None or tools is None:
            return None
        return await asyncio.to_thread(lambda: FlagIndex(tools.shelf.built_in(flags)))

    async def server(self, session: FormSession, profile: Profile, host: str, told: Told) -> ServerLook:
        """Kept for the session, so that the looks before a start go by the same flags."""
        tools, parts = await self._sup.host(host), self._parts.preflight
        if parts is None:
            return ServerLook(ServerFlags(None, None, False), None)
        spec = build_spec(
            profile, launch_id="form", port=profile.port or 1, owner="", client_id="", now_s=0.0, version=__version__,
            python=self.python(host),
        )  # fmt: skip
        read = await read_server_flags(tools.transport, parts.shelf, profile, spec, limit_s=_HELP_LIMIT_S, told=told)
        session.kept.flags = read
        catalogue = read.catalogue
        index = await asyncio.to_thread(FlagIndex, catalogue) if catalogue is not None else None
        return ServerLook(read, index)

    async def look(
        self, session: FormSession, profile: Profile, host: str, found: Found
    ) -> tuple[tuple[Finding, ...], tuple[ModelFacts | None, ModelFacts | None]]:
        """Cancelling it leaves nothing behind."""
        tools, parts = await self._sup.host(host), self._parts.preflight
        us, now_s = self._parts.us, self._parts.clock.wall_s()
        spec = await order_spec(profile, {}, tools.launcher, us, now_s)
        if parts is None:
            findings = await tools.launcher.preflight(spec)
            for one in findings:
                found(one)
            return findings, (None, None)
        preflight = FormPreflight(
            tools.transport, tools.launcher, parts, profile, spec, session.kept, self._parts.clock
        )
        findings = await preflight.look(found)
        return findings, preflight.facts

    async def complete_path(self, session: FormSession, host: str, text: str) -> Sequence[str]:
        """From the host's own folders."""
        tools = await self._sup.host(host)
        return await session.paths.complete(tools.transport, text)

    # ---------------------------------------------------------------- files

    async def why_no_name(self, name: str) -> str:
        """As `FormFiles.why_not`."""
        return await asyncio.to_thread(self._files.why_not, name)

    async def free_name(self, name: str) -> str:
        """A name that no profile has."""
        return await asyncio.to_thread(self._files.free_name, name)

    async def save(self, name: str, base: Base, own: Table, shown: Profile) -> str:
        """Never on a read-only console: its profiles stay as they are, too."""
        path = await asyncio.to_thread(self._files.save, name, own, base.host, profile_table(shown))
        return str(path)

    async def toml_text(self, own: Table) -> str:
        """What the editor gets."""
        return await asyncio.to_thread(self._files.text_of, own)

    async def read_edited(self, path: Path) -> tuple[Table, tuple[Layer, ...]]:
        """What the editor left."""
        own, text = await asyncio.to_thread(self._files.read_edited, path)
        return own, tuple(await asyncio.to_thread(self._files.parents_of, own, text))

    async def launch(self, order: FormOrder, told: Told) -> str:
        """Starts it, after stopping what is to be stopped."""
        return await self._start(order, told)


def _name_of(layer: Layer) -> str:
    name = layer.data.get("name")
    return name if isinstance(name, str) and name else layer.name


def _with_secrets(
    own: Table, spec: LaunchSpec, base: Base, layers: Sequence[Layer], places: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """The layer with the places of secrets that this console knows itself (`places`), and the names of those that it
    does not know; what the host's record says is not followed."""
    theirs = base.profile.secrets if base.profile is not None else {}
    mine: Mapping[str, Any] = layers[0].data.get("secrets", {}) if layers else {}
    wanted = {name: mine[name] for name in spec.secret_names if name in mine and name not in theirs}
    wanted |= {name: places[name] for name in spec.secret_names if name in places and name not in theirs}
    missing = [name for name in spec.secret_names if name not in theirs and name not in wanted]
    return ({**own, "secrets": wanted} if wanted else dict(own)), missing


def _as_asked(spec: LaunchSpec, base: Base) -> Profile:
    """As it was launched, without what the launch itself added."""
    asked = profile_of(spec)
    parent = base.profile
    if parent is None or parent.port is None:
        asked = replace(asked, port=None)  # a free one was picked
    return replace(asked, host=parent.host if parent is not None else None)
