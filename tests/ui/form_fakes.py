"""The form over real profiles and real lists of flags, with a scripted host behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from specconsole.adapters.flag_store import built_in_catalogue
from specconsole.adapters.form_files import FormFiles
from specconsole.adapters.toml_files import ProfileFiles
from specconsole.core.launching.engine_settings import ENGINE_FLAGS, ModelFacts
from specconsole.core.launching.form_fields import FlagIndex
from specconsole.core.launching.form_layer import Base, Table, base_of
from specconsole.core.launching.form_model import LastLaunch
from specconsole.core.launching.inherit import Layer
from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.profile_table import profile_table
from specconsole.core.launching.versions import parse_version
from specconsole.errors import SpecconsoleError
from specconsole.services.form_desk import FormOpening, FormOrder, FormSession, ServerLook
from specconsole.services.form_paths import HostPaths
from specconsole.services.server_flags import ServerFlags
from tests.support.fake_clock import FakeClock

SHIPPED = Path(__file__).parents[2] / "profiles"

BASELINE = """\
engine = "sglang"
engine_version = "0.5.17"
description = "the target alone"
model = "/data/models/target-32b"
[args]
tp_size = 4
mem_fraction_static = 0.85
max_running_requests = 48
attention_backend = "flashinfer"
[env]
NCCL_ALGO = "Tree"
[hosts.gpu-b.args]
tp_size = 2
"""
EAGLE = """\
extends = "baseline"
description = "EAGLE-3, a chain of 3"
draft_model = "/data/models/draft-eagle3"
[args]
speculative_algorithm = "EAGLE3"
speculative_num_steps = 3
speculative_eagle_topk = 1
speculative_num_draft_tokens = 4
"""
FINDINGS = (
    Finding("version", "ok", "sglang 0.5.17, commit 4f1c0de9a21b"),
    Finding("port", "ok", "port 30000 is free"),
    Finding("model", "ok", "4 shards, 61.1 GiB"),
    Finding("gpu", "warning", "61.3 GiB of GPU 3 are held by pid 8121 (bob, python3 -m vllm serve)",
            "ask bob, or wait until it is free"),
    Finding("draft", "note", "its map covers 99.2 % of the tokenizer's common tokens"),
)  # fmt: skip


@cache
def flags_of(engine: str) -> FlagIndex:
    return FlagIndex(built_in_catalogue(ENGINE_FLAGS[engine]))


@dataclass
class FakeForm:
    """`FormCommands` with files in `folder`; answers about the host as scripted."""

    folder: Path
    why: str = ""
    findings: Sequence[Finding] = FINDINGS
    last: LastLaunch | None = None
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)
    calls: list[tuple[str, object]] = field(default_factory=list)
    launch_error: SpecconsoleError | None = None
    gate: asyncio.Event | None = None
    """A look at the host waits for it."""
    launch_gate: asyncio.Event | None = None
    """A start waits for it."""
    launch_id: str = "L2"
    runs: bool = False
    looks: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, text in (("baseline", BASELINE), ("eagle3-topk1", EAGLE)):
            if not (self.folder / f"{name}.toml").exists():
                (self.folder / f"{name}.toml").write_text(text)
        self.files = FormFiles(ProfileFiles([self.folder, SHIPPED]), self.folder)
        self.profile = self.files.files.read("eagle3-topk1")

    def session(self) -> FormSession:
        return FormSession(HostPaths(FakeClock()))

    def why_not(self, host: str) -> str:
        return self.why

    async def open_profile(self, name: str, host: str) -> FormOpening:
        layers = await asyncio.to_thread(self.files.layers, name)
        ours = await asyncio.to_thread(self.files.is_forms, layers[0].source)
        own: Table = layers[0].data if ours else {"extends": name}
        base = base_of(layers[0].name, host, layers[1:] if ours else layers)
        return FormOpening(base, own, own, self.last, layers[0].source if ours else "")

    async def open_launch(self, launch_id: str) -> FormOpening:
        layers = await asyncio.to_thread(self.files.layers, "eagle3-topk1")
        base = base_of("eagle3-topk1", "gpu-a", layers)
        own: Table = {"extends": "eagle3-topk1", "args": {"mem_fraction_static": 0.83}}
        return FormOpening(base, own, own, self.last, "", launch_id, self.runs)

    def python(self, host: str) -> str | None:
        return None

    async def built_in(self, engine: str) -> FlagIndex | None:
        return flags_of(engine) if engine in ENGINE_FLAGS else None

    async def server(
        self, session: FormSession, profile: Profile, host: str, told: Callable[[str], None]
    ) -> ServerLook:
        index = flags_of(profile.engine)
        version = parse_version(ENGINE_FLAGS[profile.engine].built_in.partition("-")[2])
        return ServerLook(ServerFlags(version, index.catalogue, True), index)

    async def look(
        self, session: FormSession, profile: Profile, host: str, found: Callable[[Finding], None]
    ) -> tuple[tuple[Finding, ...], tuple[ModelFacts | None, ModelFacts | None]]:
        self.looks += 1
        self.calls.append(("look", profile))
        for one in self.findings:
            found(one)
            if self.gate is not None:
                await self.gate.wait()
        return tuple(self.findings), (ModelFacts("Qwen3ForCausalLM", 40960), None)

    async def complete_path(self, session: FormSession, host: str, text: str) -> Sequence[str]:
        folder = text.rpartition("/")[0]
        return [path for path in self.paths.get(folder, ()) if path.startswith(text)]

    async def why_no_name(self, name: str) -> str:
        return await asyncio.to_thread(self.files.why_not, name)

    async def free_name(self, name: str) -> str:
        return await asyncio.to_thread(self.files.free_name, name)

    async def save(self, name: str, base: Base, own: Table, shown: Profile) -> str:
        path = await asyncio.to_thread(self.files.save, name, own, base.host, profile_table(shown))
        self.calls.append(("save", name))
        return str(path)

    async def toml_text(self, own: Table) -> str:
        return self.files.text_of(own)

    async def read_edited(self, path: Path) -> tuple[Table, tuple[Layer, ...]]:
        own, text = await asyncio.to_thread(self.files.read_edited, path)
        return own, tuple(await asyncio.to_thread(self.files.parents_of, own, text))

    async def launch(self, order: FormOrder, told: Callable[[str], None]) -> str:
        self.calls.append(("launch", order))
        if self.launch_gate is not None:
            await self.launch_gate.wait()
        if self.launch_error is not None:
            raise self.launch_error
        return self.launch_id
