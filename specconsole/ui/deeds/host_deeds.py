"""Actions on hosts: adding, trusting a key, reconnecting, removing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from specconsole.ui.deeds.launch_deeds import attach
from specconsole.ui.formatters import styled

if TYPE_CHECKING:
    from specconsole.ui.app import ConsoleApp
    from specconsole.ui.desk import Desk
    from specconsole.ui.screens.console import ConsoleScreen


FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}=?")
"""As OpenSSH writes it; a host's state says it in a sentence."""


async def add_host(screen: ConsoleScreen) -> None:
    from specconsole.ui.forms.host_forms import AddHost

    known = await screen.desk.commands.known_hosts()
    taken = [view.name for view in screen.desk.hosts()]

    def named(name: str | None) -> None:
        if name:
            screen.console_app.errands.start(
                f"add {name}", lambda _: screen.desk.commands.add_host(name), lambda _: _added(screen, name)
            )

    screen.app.push_screen(AddHost(known, taken), named)


def _added(screen: ConsoleScreen, name: str) -> None:
    screen.desk.host_name = name
    screen.refresh_facts()


async def trust_key(screen: ConsoleScreen) -> None:
    """Of the selected host if it waits for that, else of the first that does."""
    from specconsole.ui.forms.host_forms import TrustKey

    waiting = [view for view in screen.desk.hosts() if view.state == "key-unknown"]
    if not waiting:
        return
    host = next((view for view in waiting if view.name == screen.desk.host_name), waiting[0])

    found = FINGERPRINT.search(host.detail)
    if found is None:
        screen.console_app.say(f"its fingerprint is not known: {host.detail}", title=host.name, severity="warning")
        return

    def said(trust: bool | None) -> None:
        if trust:
            screen.console_app.errands.start(
                f"trust {host.name}", lambda _: screen.desk.commands.trust_key(host.name, found[0])
            )

    screen.app.push_screen(TrustKey(host.name, found[0]), said)


async def gpus(screen: ConsoleScreen) -> None:
    from specconsole.ui.widgets.gpu_screen import GpuScreen

    def holders_of(index: int) -> None:
        show_holders(screen.console_app, screen.desk, screen.desk.host_name, gpu=index)

    screen.app.push_screen(GpuScreen(lambda: screen.desk.host, holders=holders_of))


async def holders(screen: ConsoleScreen) -> None:
    show_holders(screen.console_app, screen.desk, screen.desk.host_name)


def show_holders(app: ConsoleApp, desk: Desk, host: str, *, port: int | None = None, gpu: int | None = None) -> None:
    """Who holds this port, this GPU, or any of the host's."""
    from specconsole.ui.screens.holders import HoldersScreen

    commands = desk.commands.holders
    if commands is None:
        app.say("who holds it can't be looked at here")
        return
    why = desk.commands.can("evict") or desk.commands.why_no_change(host)
    app.push_screen(HoldersScreen(commands, host, port=port, gpu=gpu, read_only=why))


async def reconnect(screen: ConsoleScreen) -> None:
    name = screen.desk.host_name
    screen.console_app.errands.start(f"reach {name}", lambda _: screen.desk.commands.reconnect(name))


async def found(screen: ConsoleScreen) -> None:
    await attach(screen)


async def remove_host(screen: ConsoleScreen) -> None:
    from specconsole.ui.forms.confirm import Confirm

    name = screen.desk.host_name

    def said(yes: bool | None) -> None:
        if yes:
            screen.console_app.errands.start(f"remove {name}", lambda _: screen.desk.commands.remove_host(name))

    lines = [styled("It is no longer watched. Its servers, logs and results stay as they are.")]
    screen.app.push_screen(Confirm(f"remove {name}?", lines, yes="remove it"), said)
