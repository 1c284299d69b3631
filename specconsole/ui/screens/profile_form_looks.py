"""What the form learns of its host while a person edits: the server's flags, and what stands against a start.

Each look runs beside the form, is called off when it is out of date, and says what came in at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from specconsole.core.launching.form_model import FormModel
from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.profile import Profile
from specconsole.errors import SpecconsoleError
from specconsole.services.form_desk import FormCommands, FormSession

QUIET_S = 0.6
"""So long nothing may change before the host is looked at again: typing is not looked at letter by letter."""


class FormLooks:
    """`changed` is called whenever something came in; `spawn` runs a coroutine as long as the form lives."""

    def __init__(
        self, commands: FormCommands, model: FormModel, changed: Callable[[], None],
        spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]],
    ) -> None:  # fmt: skip
        self._commands = commands
        self._model = model
        self._changed = changed
        self._spawn = spawn
        self.session: FormSession = commands.session()
        self.findings: tuple[Finding, ...] = ()
        self.stale = False
        """Whether the findings are of settings that have changed since."""
        self.told = ""
        """What is under way; "" when nothing is."""
        self.trouble = ""
        """Why the host could not be looked at."""
        self._asked_of: tuple[object, ...] = ()
        self._looked_at: tuple[Profile, str] | None = None
        self._server: asyncio.Task[None] | None = None
        self._look: asyncio.Task[None] | None = None

    # ---------------------------------------------------------------- when something changed

    def settings_changed(self, profile: Profile | None, host: str) -> None:
        """Looks again, a moment after the last change."""
        if profile is None or self._looked_at == (profile, host):
            return
        self._ask_server(profile, host)
        self.stale = bool(self.findings)
        self._begin(profile, host, QUIET_S)

    def again(self, profile: Profile, host: str) -> None:
        """Looks now, also at what is known."""
        self.session.kept.models.clear()
        self._begin(profile, host, 0.0)

    @property
    def under_way(self) -> bool:
        return self._look is not None and not self._look.done()

    def call_off(self) -> None:
        """Ends the look that is under way; what came in stays."""
        if self._look is not None:
            self._look.cancel()
        self.told = ""
        self._changed()

    # ---------------------------------------------------------------- the server's flags

    def _ask_server(self, profile: Profile, host: str) -> None:
        """Once for each environment and command on a host: what else changes, changes no flag."""
        who = (host, profile.engine, profile.environment, profile.command, profile.working_dir)
        if who == self._asked_of:
            return
        self._asked_of = who
        self.session.kept.flags = None
        if self._server is not None:
            self._server.cancel()
        self._server = self._spawn(self._learn_server(profile, host), "form-server")

    async def _learn_server(self, profile: Profile, host: str) -> None:
        def told(text: str) -> None:
            self.told = text
            self._changed()

        try:
            look = await self._commands.server(self.session, profile, host, told)
        except (SpecconsoleError, TimeoutError) as error:
            self.trouble = _why(host, error)
        else:
            if look.index is not None:
                learned = self._model.learned
                self._model.learn(
                    replace(learned, index=look.index, version=look.read.version, certain=look.read.certain)
                )
            if self._looked_at is not None:
                # What a look said without the flags is looked at once more with them.
                self._begin(*self._looked_at, 0.0)
        self.told = ""
        self._changed()

    # ---------------------------------------------------------------- what stands against a start

    def _begin(self, profile: Profile, host: str, after_s: float) -> None:
        if self._look is not None:
            self._look.cancel()
        self._looked_at = (profile, host)
        self._look = self._spawn(self._look_at(profile, host, after_s), "form-look")

    async def _look_at(self, profile: Profile, host: str, after_s: float) -> None:
        await asyncio.sleep(after_s)
        come_in: list[Finding] = []

        def found(finding: Finding) -> None:
            come_in.append(finding)
            # The old ones stand until the new ones are all in, save those that are said anew.
            names = {(one.check, one.name) for one in come_in}
            kept = [one for one in self.findings if (one.check, one.name) not in names] if self.stale else []
            self.findings = (*come_in, *kept)
            self._changed()

        self.told = f"looking at {host}"
        if not self.stale:
            self.findings = ()
        self._changed()
        try:
            found_all, (target, draft) = await self._commands.look(self.session, profile, host, found)
        except (SpecconsoleError, TimeoutError) as error:
            self.trouble = _why(host, error)
        else:
            self.trouble = ""
            self.findings = found_all
            self.stale = False
            learned = replace(self._model.learned, target=target, draft=draft)
            if learned != self._model.learned:
                self._model.learn(learned)
        self.told = ""
        self._changed()


def _why(host: str, error: Exception) -> str:
    text = error.what if isinstance(error, SpecconsoleError) else "no answer in time"
    return f"{host} could not be looked at: {text}"
