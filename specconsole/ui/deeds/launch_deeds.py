"""Actions on launches: starting, relaunching, stopping, watching, evidence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specconsole.ui.formatters import row, styled
from specconsole.ui.text.card_text import change_text, proposed_change, values_before
from specconsole.ui.text.launch_text import RUNNING

if TYPE_CHECKING:
    from textual.content import Content

    from specconsole.core.views.launch import LaunchView
    from specconsole.services.commands import AttachOrder, StopPlan
    from specconsole.services.form_desk import FormCommands, FormOpening
    from specconsole.ui.forms.launch_form import LaunchChoice
    from specconsole.ui.screens.console import ConsoleScreen
    from specconsole.ui.screens.profile_form import ProfileForm

Progress = Callable[[str], None]


async def launch(screen: ConsoleScreen) -> None:
    """A profile from the list: as it is, or through the form."""
    view = screen.desk.launch
    await _choose(screen, profile=view.name if view is not None else "", host="")


async def edit(screen: ConsoleScreen) -> None:
    """The selected launch's profile as it was launched, with the card's change where one is proposed."""
    view, commands = screen.desk.launch, screen.desk.commands.form
    if view is None:
        return
    if commands is None:
        await _choose(screen, profile=view.name, host=view.host)
        return
    opening = await commands.open_launch(view.launch_id)
    _show(screen, await _form(screen, commands, opening, dict(proposed_change(view))))


async def _choose(screen: ConsoleScreen, *, profile: str, host: str) -> None:
    from specconsole.services.commands import LaunchOrder
    from specconsole.ui.forms.launch_form import LaunchForm

    commands = screen.desk.commands
    hosts = [view.name for view in screen.desk.hosts()]

    ready: list[ProfileForm] = []

    async def prepare(choice: LaunchChoice) -> None:
        if commands.form is not None:
            opening = await commands.form.open_profile(choice.profile, choice.host)
            ready.append(await _form(screen, commands.form, opening, {}))

    def chosen(choice: LaunchChoice | None) -> None:
        if choice is None:
            return
        if choice.edit and ready:
            _show(screen, ready[-1])
            return
        order = LaunchOrder(choice.profile, choice.host)
        screen.console_app.errands.start(f"launch {order.profile}", lambda _: commands.launch(order), _select(screen))

    usual = screen.desk.host_name
    form = LaunchForm(commands.profiles, hosts, profile=profile, host=host, usual_host=usual,
                      prepare=prepare if commands.form is not None else None)  # fmt: skip
    screen.app.push_screen(form, chosen)


async def _form(
    screen: ConsoleScreen, commands: FormCommands, opening: FormOpening, change: dict[str, Any]
) -> ProfileForm:
    from specconsole.ui.screens.profile_form import ProfileForm

    profile = opening.base.profile
    engine = str(opening.own.get("engine") or (profile.engine if profile is not None else "other"))
    return ProfileForm(screen.desk, commands, opening, await commands.built_in(engine), change)


def _show(screen: ConsoleScreen, form: ProfileForm) -> None:
    def left(launch_id: str | None) -> None:
        if launch_id:
            _select(screen)(launch_id)

    screen.app.push_screen(form, left)


def _select(screen: ConsoleScreen) -> Callable[[str], None]:
    """Selects the launch that an errand gave back, as soon as the board has it."""

    def select(launch_id: str) -> None:
        screen.desk.select(launch_id)
        screen.refresh_facts()

    return select


async def relaunch(screen: ConsoleScreen) -> None:
    view = screen.desk.launch
    if view is None:
        return
    change = proposed_change(view)
    lines = [row("the same profile on ", (view.host, "bold"), " again")]
    if change:
        text = change_text(change, values_before(view))
        lines.append(row("with ", (text, "bold $success"), ", as the card proposes"))
    plan = None
    if view.state in RUNNING:
        plan = await screen.desk.commands.stop_plan(view.launch_id)
        lines += [styled("it runs, and is stopped first:"), *_plan_lines(plan)]

    def work(_: Progress) -> Any:
        return screen.desk.commands.relaunch(view.launch_id, change)

    await _ask(
        screen, f"relaunch {view.name}?", lines, "relaunch it", view if plan and not plan.ours else None,
        lambda: screen.console_app.errands.start(f"relaunch {view.name}", work, _select(screen)),
    )  # fmt: skip


async def stop(screen: ConsoleScreen) -> None:
    view = screen.desk.launch
    if view is None:
        return
    plan = await screen.desk.commands.stop_plan(view.launch_id)

    def stopped(_: None) -> None:
        now = screen.desk.board.launches.get(view.launch_id)
        left = now.left_over if now is not None else ()
        text = f"{len(left)} left over: {left[0]}" if left else "stopped; nothing is left"
        screen.console_app.say(text, title=view.name, severity="warning" if left else "information")

    await _ask(
        screen, f"stop {view.name}?", _plan_lines(plan), "stop it", None if plan.ours else view,
        lambda: screen.console_app.errands.start(
            f"stop {view.name}", lambda progress: screen.desk.commands.stop(view.launch_id, progress), stopped
        ),
    )  # fmt: skip


def _plan_lines(plan: StopPlan) -> list[Content]:
    """Owner, requests, benches, processes: what a stop would hit."""
    requests = "unknown" if plan.running_requests is None else str(plan.running_requests)
    busy = "bold $warning" if plan.running_requests else ""
    benches = "bold $warning" if plan.running_benches else ""
    lines = [
        row(("owner     ", "$muted"), (plan.owner or "unknown", "" if plan.ours else "bold $warning")),
        row(("requests  ", "$muted"), (requests, busy), " running" if plan.running_requests is not None else ""),
        row(("benches   ", "$muted"), (str(plan.running_benches), benches), " running"),
    ]
    if plan.processes:
        lines.append(row(("processes ", "$muted"), plan.processes[0]))
        lines += [row("          ", line) for line in plan.processes[1:4]]
        if len(plan.processes) > 4:
            lines.append(styled(f"          and {len(plan.processes) - 4} more", "$muted"))
    return [*lines, *(styled(note, "$warning") for note in plan.notes)]


async def _ask(
    screen: ConsoleScreen,
    title: str,
    lines: list[Content],
    yes: str,
    foreign: LaunchView | None,
    then: Callable[[], None],
) -> None:
    """`foreign`: a launch that is not ours, whose name must be typed first."""
    from specconsole.ui.forms.confirm import Confirm

    def answered(said: bool | None) -> None:
        if said:
            then()

    screen.app.push_screen(Confirm(title, lines, yes=yes, typed=foreign.name if foreign else ""), answered)


async def attach(screen: ConsoleScreen) -> None:
    from specconsole.ui.forms.attach import Attach

    host = screen.desk.host_name
    found = await screen.desk.commands.found_servers(host)

    def ordered(order: AttachOrder | None) -> None:
        if order is not None:
            screen.console_app.errands.start(
                f"watch {order.value} on {order.host}", lambda _: screen.desk.commands.attach(order), _select(screen)
            )

    screen.app.push_screen(Attach(host, found), ordered)


async def evidence(screen: ConsoleScreen) -> None:
    view = screen.desk.launch
    if view is None:
        return
    lines = [
        styled("Into a new folder on this machine go:"),
        styled("· py-spy's stacks of its ranks, where py-spy is on the host"),
        styled("· the NCCL environment of its processes"),
        styled("· the GPU samples so far, and the last lines of every rank"),
    ]

    def collected(folder: Path) -> None:
        screen.console_app.say(str(folder), title="evidence is in", severity="information", timeout=20)

    await _ask(
        screen, f"collect evidence of {view.name}?", lines, "collect it", None,
        lambda: screen.console_app.errands.start(
            f"evidence of {view.name}",
            lambda progress: screen.desk.commands.collect_evidence(view.launch_id, progress),
            collected,
        ),
    )  # fmt: skip


async def forget(screen: ConsoleScreen) -> None:
    view = screen.desk.launch
    if view is None:
        return
    lines = [styled("It leaves this list. Its folder on the host, with log and settings, stays.")]
    await _ask(
        screen, f"drop {view.name}?", lines, "drop it", None,
        lambda: screen.console_app.errands.start(
            f"drop {view.name}", lambda _: screen.desk.commands.forget(view.launch_id)
        ),
    )  # fmt: skip


async def probes(screen: ConsoleScreen) -> None:
    """What the profile's probes read from the selected launch's log."""
    from specconsole.ui.screens.probes import ProbesScreen

    launch_id, board = screen.desk.launch_id, screen.desk.board
    view = screen.desk.launch
    if view is not None:
        screen.app.push_screen(ProbesScreen(view.name, lambda: board.launches.get(launch_id)))


async def account(screen: ConsoleScreen) -> None:
    """How the selected launch really runs, beside what was asked."""
    from specconsole.ui.screens.account import AccountScreen

    view = screen.desk.launch
    if view is not None and view.account is not None:
        screen.app.push_screen(AccountScreen(view.name, view.account))
