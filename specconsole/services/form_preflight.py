"""The looks before a start, made again and again while settings are edited: what does not change is looked at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from specconsole.core.launching.checkpoint import Checkpoint
from specconsole.core.launching.engine_settings import ModelFacts
from specconsole.core.launching.model_files import Model
from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.spec import LaunchSpec
from specconsole.ports import Clock, Launcher, Transport
from specconsole.services.preflight import Preflight, PreflightTools
from specconsole.services.server_flags import ServerFlags

_MODEL_KEPT_S = 60.0
"""A model's files are looked at again after that: somebody may be copying them."""

_JUDGED_BY_THE_FORM = ("rule", "flag")
"""What the form says by itself, at once, from the same flags, rules and models."""


@dataclass(slots=True)
class LooksKept:
    """What was learned on hosts, for the next looks of the same form."""

    flags: ServerFlags | None = None
    """Of the server that the form's profile would start; None while it is being asked."""
    models: dict[tuple[str, str, str], tuple[float, Checkpoint, Model]] = field(default_factory=dict)
    """(host, role, path) -> console's monotonic seconds, and what is there."""


class FormPreflight(Preflight):
    """`Preflight` without what the form judges itself, and without asking for the flags."""

    samples_disk = False
    """The looks are made again and again."""

    def __init__(
        self, transport: Transport, launcher: Launcher, tools: PreflightTools, profile: Profile, spec: LaunchSpec,
        kept: LooksKept, clock: Clock,
    ) -> None:  # fmt: skip
        super().__init__(transport, launcher, tools, profile, spec)
        self._kept = kept
        self._clock = clock

    async def look(self, found: Callable[[Finding], None]) -> tuple[Finding, ...]:
        """As `run`, without the findings that the form has already."""

        def tell(finding: Finding) -> None:
            if finding.check not in _JUDGED_BY_THE_FORM or finding.name == "source":
                found(finding)

        every = await self.run(tell, lambda _: None, help_limit_s=0.0)
        return tuple(one for one in every if one.check not in _JUDGED_BY_THE_FORM or one.name == "source")

    @property
    def facts(self) -> tuple[ModelFacts | None, ModelFacts | None]:
        """Of target and draft, for the form's rules; None for what was not read."""
        target, draft = self._looks.target, self._looks.draft
        return target.facts if target is not None else None, draft.facts if draft is not None else None

    async def _flags(self, told: Callable[[str], None], limit_s: float) -> None:
        self._looks.flags = self._kept.flags
        if self._kept.flags is not None:
            self._add(*self._kept.flags.findings)

    async def _model(self, role: str, path: str) -> tuple[Checkpoint, Model]:
        key, now_s = (self._transport.host, role, path), self._clock.monotonic_s()
        kept = self._kept.models.get(key)
        if kept is None or now_s - kept[0] > _MODEL_KEPT_S:
            kept = (now_s, *await super()._model(role, path))
            self._kept.models[key] = kept
        return kept[1], kept[2]
