"""`specconsole window`, and `specconsole` alone: the window over the live services."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    import asyncio
    from pathlib import Path

    from textual.theme import Theme

    from specconsole.services.board import Board
    from specconsole.services.commands import Commands, LaunchOrder
    from specconsole.ui.app import ConsoleApp
    from specconsole.ui.window_state import WindowState

HELP = "open the window"

LEAVE_WAIT_S = 15.0
"""A stop that is under way is let finish this long; the host's own part of it goes on regardless."""


SERVICES = (
    "specconsole.wiring", "specconsole.adapters.http", "specconsole.adapters.sqlite_store",
    "specconsole.adapters.process_launcher", "specconsole.services.supervisor", "specconsole.services.adoption",
    "specconsole.services.benches", "specconsole.services.console_commands", "specconsole.services.host_desk",
    "specconsole.services.history_commands",
    "specconsole.services.host_sampler", "specconsole.services.host_link", "specconsole.services.gpu_memory",
)  # fmt: skip
"""What the wiring imports when it builds: half a second of the loop if it were left to that."""


EPILOG = """Leaving it (q, ctrl+q, SIGTERM, SIGHUP) touches no server.
exit status: 0 left, 1 a fault of ours ended it, 2 no terminal, or a settings file with an error, 130 interrupted
while it opened"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("--host", action="append", default=[], metavar="HOST", help="watch this host too (repeatable)")


def run(args: argparse.Namespace | None = None) -> int:
    return run_window(hosts=tuple(getattr(args, "host", ())), read_only=bool(args is not None and args.read_only))


def _begin() -> None:
    """Comes before Textual is loaded. Raises BadInputError without a terminal."""
    import gc
    import os

    _check_terminal()
    # A key that comes right after a frame waits for the next one: half as long as Textual has it. Frames are drawn only
    # when something changed.
    os.environ.setdefault("TEXTUAL_FPS", "120")
    # Until the first paint everything that is made stays; looking for garbage in it costs a tenth of the time.
    gc.disable()


async def _painted(app: ConsoleApp) -> None:
    """Waits for the first paint. What stands then stays until the end: no later look for garbage goes through it
    (100 ms between a key and its paint, each time)."""
    import gc

    await app.painted.wait()
    gc.freeze()
    gc.enable()


def _check_terminal() -> None:
    import sys

    from specconsole.errors import BadInputError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInputError("the window needs a terminal", try_="a verb, as in: specconsole status --json")


class Settings:
    """What the window needs from files, read before its loop begins. Raises BadInputError for a bad key file."""

    def __init__(self, *, remember: bool = True) -> None:
        from pathlib import Path

        import platformdirs

        from specconsole.assets import shipped_folder
        from specconsole.ui.keymap import read_keymap
        from specconsole.ui.theme_files import DEFAULT_THEME, read_named
        from specconsole.ui.window_state import WindowState, read_state

        config = Path(platformdirs.user_config_dir("specconsole"))
        self.remember = remember
        self.state_path = Path(platformdirs.user_state_dir("specconsole")) / "window.json"
        self.actions = read_keymap(config / "keys.toml")
        self.state = read_state(self.state_path) if remember else WindowState()
        self.theme_folders = [shipped_folder("themes"), config / "themes"]
        # The one that is shown first; the others are read behind the first paint.
        first = read_named(self.theme_folders, self.state.theme or DEFAULT_THEME)
        self.themes = [first] if first is not None else self.all_themes()[0]

    def all_themes(self) -> tuple[list[Theme], list[str]]:
        """Every theme of ours and of the person, and what is wrong with the others."""
        from specconsole.ui.theme_files import read_themes

        themes, problems = read_themes(self.theme_folders)
        return themes, [str(problem) for problem in problems]

    def app(
        self, board: Board, commands: Commands, *, badge: str = "", welcome: str = "", starting: bool = False
    ) -> ConsoleApp:
        """The app over a board and commands."""
        import time

        from specconsole.ui.app import ConsoleApp
        from specconsole.ui.desk import Desk

        return ConsoleApp(
            Desk(board, commands, monotonic_s=time.monotonic, wall_s=time.time, badge=badge, starting=starting),
            self.themes,
            actions=self.actions,
            state=self.state,
            save=self.save if self.remember else None,
            more_themes=self.all_themes,
            welcome=welcome,
        )

    def save(self, state: WindowState) -> None:
        """Writes the window's state down."""
        from specconsole.ui.window_state import write_state

        if self.remember:
            write_state(self.state_path, state)


def run_window(
    *, hosts: tuple[str, ...] = (), read_only: bool = False, first_order: LaunchOrder | None = None, welcome: str = ""
) -> int:
    """Opens the window; `first_order` is placed as soon as it stands, and `welcome` is said."""
    import asyncio
    import sys

    _begin()
    settings = Settings()

    async def live() -> tuple[list[str], int]:
        from specconsole.services.board import Board
        from specconsole.services.looking_only import LookingOnly

        app = settings.app(
            Board(),
            LookingOnly("the services are starting", read_only=read_only),
            badge="read-only" if read_only else "",
            welcome=welcome,
            starting=True,
        )
        if first_order is not None:
            app.order_first(first_order)
        left = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(_serve(app, hosts, left, read_only=read_only), name="services")
            try:
                await app.run_async()
            finally:
                settings.state = app.state
                left.set()
                if not app.painted.is_set():
                    serving.cancel()
        return app.late_errands, app.return_code or 0

    late_ones, status = asyncio.run(live())
    settings.save(settings.state)
    for late in late_ones:
        print(f"specconsole: {late}: still under way when the window closed", file=sys.stderr)
    return status


async def _serve(app: ConsoleApp, hosts: tuple[str, ...], left: asyncio.Event, *, read_only: bool) -> None:
    """Starts the services once the window is painted, and ends them when it was left. A fault ends the window."""
    import asyncio
    import gc

    await _painted(app)
    try:
        for name in SERVICES:
            await asyncio.to_thread(importlib.import_module, name)
        from specconsole import wiring

        known = await asyncio.to_thread(_all_hosts, hosts)
        async with wiring.open_supervisor(hosts=known, read_only=read_only, window=True, spare_store=True) as console:
            app.connect(console.board, console.commands, known)
            if console.store_trouble:
                app.say(console.store_trouble, title="store", severity="warning", timeout=30)
            gc.freeze()

            async def tell(host: str) -> None:
                await console.supervisor.discovered(host)
                app.looked_on(host)

            looks = [asyncio.create_task(tell(host), name=f"first look on {host}") for host in known]
            await left.wait()
            for look in looks:
                look.cancel()
            app.late_errands = await app.errands.finish(LEAVE_WAIT_S)
    finally:
        app.exit()


def _all_hosts(more: tuple[str, ...]) -> tuple[str, ...]:
    """`local`, those of the hosts files, and those named. Raises BadInputError for a hosts file with an error."""
    from specconsole.wiring import host_names

    return tuple(dict.fromkeys((*host_names(), *more)))


def run_replay(speed: float = 1.0) -> int:
    """Plays the recorded start of a real server in the window, marked as what it is."""
    import asyncio
    import tempfile
    from pathlib import Path

    _begin()
    settings = Settings(remember=False)

    async def play(folder: Path) -> None:
        from specconsole.adapters.system_clock import SystemClock
        from specconsole.demo.recording import load_recording
        from specconsole.services.replay import Replay

        recording = load_recording()
        replay = Replay(recording, folder, SystemClock(), speed=speed)
        replay.show(0.0)
        pace = "" if speed == 1.0 else f" ×{speed:g}"
        app = settings.app(replay.board, replay.commands, badge=f"RECORDING{pace}", welcome=recording.title)
        tasks = [asyncio.create_task(replay.run()), asyncio.create_task(_painted(app))]
        try:
            await app.run_async()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    with tempfile.TemporaryDirectory(prefix="specconsole-replay-") as folder:
        asyncio.run(play(Path(folder)))
    return 0
