"""Keeps one host's link: connects, notices that it is dead, waits, connects again, and says all that on the board.

An attempt that a person started (the console's start, adding the host, the reconnect key) may ask questions; one
that starts by itself never does, and stops where only a person can go on.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from specconsole.core.hosts.backoff import delay_s
from specconsole.core.hosts.facts import HostFacts, notes_of
from specconsole.core.hosts.link_state import state_of, waits_for_person
from specconsole.core.views.host import HostView, LinkState
from specconsole.errors import RefusedError, SpecconsoleError, TransportError
from specconsole.ports import Asker, Clock, Link
from specconsole.services.board import Board
from specconsole.services.host_facts import read_facts


@dataclass(frozen=True, slots=True)
class Pace:
    """How closely a link is looked after, in seconds."""

    look_s: float = 1.0
    quiet_s: float = 4.0
    """After so long without a byte the host is asked for a sign of life."""
    stale_s: float = 8.0
    """After so long without an answer what is shown is called stale; the link is given up by its keepalive (15 s)."""
    probe_s: float = 3.0
    """How long an answer may take after the network changed, when the link is probably dead."""


NetworkSigns = Callable[[], Awaitable[object]]
"""Anything that is different after this machine changed networks."""


class HostLink:
    """One host's link; `run` for ever, `nudge` from a key press."""

    def __init__(
        self,
        link: Link,
        board: Board,
        clock: Clock,
        *,
        asker: Asker | None = None,
        network: NetworkSigns | None = None,
        jitter: Callable[[], float] = random.random,
        read_only: bool = False,
        pace: Pace | None = None,
        describe: bool = True,
    ) -> None:
        """`describe` False: the host is not asked about itself at connect (a verb that is done in a second)."""
        self.link = link
        self.facts: HostFacts | None = None
        self._board = board
        self._clock = clock
        self._asker = asker
        self._network = network
        self._jitter = jitter
        self._read_only = read_only
        self._pace = pace or Pace()
        self._describe = describe
        self._nudged = asyncio.Event()
        self._person = True
        self._was_up = False
        self._settled = asyncio.Event()
        self._set("connecting")

    @property
    def host(self) -> str:
        return self.link.host

    @property
    def view(self) -> HostView:
        return self._board.hosts.get(self.host) or HostView(self.host, state="off")

    async def settled(self) -> HostView:
        """Waits until the first attempt has ended, one way or the other."""
        await self._settled.wait()
        return self.view

    def nudge(self) -> None:
        """A person wants the host now: tries at once, and may ask."""
        self._person = True
        self._nudged.set()

    async def trust(self, fingerprint: str) -> None:
        """Adds the key that was shown to known_hosts and connects. Raises RefusedError when it is another one."""
        if self._read_only:
            raise RefusedError("this console is read-only", where=self.host)
        await self.link.trust(fingerprint)
        self.nudge()

    async def run(self) -> None:
        """Until cancelled."""
        attempt = 0
        try:
            while True:
                error = await self._attempt()
                self._settled.set()
                if error is None:
                    attempt = 0
                    await self._watch()
                    continue  # the first retry after a loss comes at once
                attempt += 1
                await self._wait(None if waits_for_person(error) else delay_s(attempt, self._jitter()))
        finally:
            self._settled.set()

    async def _attempt(self) -> SpecconsoleError | None:
        """One try; None when the link is up and the host has described itself."""
        asker = _StateAsker(self, self._asker) if self._person and self._asker is not None else None
        self._person = False
        self._nudged.clear()
        self._set("connecting")
        try:
            await self.link.connect(asker)
            if self._describe:
                self.facts = await read_facts(self.link, self._clock)
        except SpecconsoleError as error:
            self._set(state_of(error), str(error))
            return error
        except TimeoutError:
            silent = TransportError("logged in, but the host does not answer commands", where=self.host)
            self._set("unreachable", str(silent))
            return silent
        if self._was_up:
            self._board.tell("host-back", self.host, "connected again", self._clock.wall_s())
        self._was_up = True
        facts = self.facts or HostFacts()
        self._set("up", notes=notes_of(facts), uptime_s=facts.uptime_s)
        return None

    async def _wait(self, seconds: float | None) -> None:
        """Until it is time, a person is there, or the network changed. None: until one of the last two."""
        if seconds is not None:
            self._set(self.view.state, self.view.detail, retry_at_s=self._clock.monotonic_s() + seconds)
        before = await self._signs()
        end_s = None if seconds is None else self._clock.monotonic_s() + seconds
        while not self._nudged.is_set() and (end_s is None or self._clock.monotonic_s() < end_s):
            left_s = (
                self._pace.look_s
                if end_s is None
                else min(self._pace.look_s, max(0.0, end_s - self._clock.monotonic_s()))
            )
            await self._sleep_or_nudge(left_s)
            # Another network does not help where a person is missing: an attempt would end at the same question.
            if seconds is not None and await self._signs() != before:
                return

    async def _sleep_or_nudge(self, seconds: float) -> None:
        async with asyncio.TaskGroup() as group:
            sleep = group.create_task(self._clock.sleep(seconds))
            nudge = group.create_task(self._nudged.wait())
            await asyncio.wait([sleep, nudge], return_when=asyncio.FIRST_COMPLETED)
            sleep.cancel()
            nudge.cancel()

    async def _watch(self) -> None:
        """Returns when the link is gone; meanwhile tells live from stale."""
        async with asyncio.TaskGroup() as group:
            lost = group.create_task(self.link.wait_lost())
            signs = group.create_task(self._look_for_life())
            await asyncio.wait([lost, signs], return_when=asyncio.FIRST_COMPLETED)
            signs.cancel()
            if lost.done():
                error = lost.result()
            else:
                lost.cancel()
                error = TransportError("no answer after the network changed", where=self.host)
                await self.link.aclose()
        self._mark_stale()
        self._board.tell("host-lost", self.host, error.what, self._clock.wall_s())

    async def _look_for_life(self) -> None:
        """Returns when the link should be given up at once."""
        before = await self._signs()
        while True:
            await self._sleep_or_nudge(self._pace.look_s)
            nudged, after = self._nudged.is_set(), await self._signs()
            self._nudged.clear()
            if nudged or after != before:
                before = after
                if not await self._answers(self._pace.probe_s):
                    return
            elif self._silent_s() > self._pace.quiet_s:
                await self._answers(self._pace.stale_s - self._pace.quiet_s)
            if self._silent_s() > self._pace.stale_s:
                self._mark_stale()
                self._set("stale", "no sign of life; waiting for the connection to recover or end")
            elif self.view.state == "stale":
                self._set("up", notes=self.view.notes)

    async def _answers(self, timeout_s: float) -> bool:
        try:
            await self.link.ping(timeout_s)
        except (TimeoutError, SpecconsoleError):
            return False
        return True

    def _silent_s(self) -> float:
        heard_s = self.link.last_heard_s
        return 0.0 if heard_s is None else asyncio.get_running_loop().time() - heard_s

    def _mark_stale(self) -> None:
        if self.view.stale_since_s is None:
            since_s = self._clock.monotonic_s() - self._silent_s()
            self._board.publish_host(dataclasses.replace(self.view, stale_since_s=since_s))

    async def _signs(self) -> object:
        return None if self._network is None else await self._network()

    def _set(
        self,
        state: LinkState,
        detail: str = "",
        *,
        retry_at_s: float | None = None,
        notes: tuple[str, ...] | None = None,
        uptime_s: float | None = None,
    ) -> None:
        old = self.view
        now_s = self._clock.monotonic_s()
        self._board.publish_host(
            dataclasses.replace(
                old, state=state, detail=detail, retry_at_s=retry_at_s, read_only=self._read_only,
                since_s=old.since_s if old.state == state and old.since_s is not None else now_s,
                stale_since_s=None if state == "up" else old.stale_since_s,
                notes=old.notes if notes is None else notes,
                uptime_s=old.uptime_s if uptime_s is None else uptime_s,
                as_of_s=now_s if state == "up" else old.as_of_s,
            )
        )  # fmt: skip

    async def aclose(self) -> None:
        """Takes the host off the board and closes its link."""
        await self.link.aclose()
        self._board.drop_host(self.host)


class _StateAsker:
    """Shows `needs-person` while a question is open."""

    def __init__(self, keeper: HostLink, asker: Asker) -> None:
        self._keeper = keeper
        self._asker = asker

    async def ask(self, host: str, prompt: str, *, secret: bool = True) -> str | None:
        self._keeper._set("needs-person", f"asks for: {prompt}")
        answer = await self._asker.ask(host, prompt, secret=secret)
        self._keeper._set("connecting")
        return answer

    def tell(self, host: str, text: str) -> None:
        self._asker.tell(host, text)
