"""`specconsole window`, and `specconsole` alone: the window over the live services."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from specconsole.services.board import Board
    from specconsole.services.commands import Commands, LaunchOrder
    from specconsole.ui.app import ConsoleApp

HELP = "open the window"

LEAVE_WAIT_S = 15.0
"""A stop that is under way is let finish this long; the host's own part of it goes on regardless."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", action="append", default=[], metavar="HOST", help="watch this host too (repeatable)")


def run(args: argparse.Namespace) -> int:
    return run_window(hosts=tuple(getattr(args, "host", ())), read_only=bool(args.read_only))


def _check_terminal() -> None:
    import sys

    from specconsole.errors import BadInputError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInputError("the window needs a terminal", try_="a verb, as in: specconsole status --json")


def build_app(
    board: Board, commands: Commands, *, badge: str = "", remember: bool = True, welcome: str = ""
) -> ConsoleApp:
    """The app over a board and commands, with the person's themes and keys. Raises BadInputError for a bad key file."""
    import time
    from pathlib import Path

    import platformdirs

    from specconsole.assets import shipped_folder
    from specconsole.ui.app import ConsoleApp
    from specconsole.ui.desk import Desk
    from specconsole.ui.keymap import read_keymap
    from specconsole.ui.theme_files import read_themes

    config = Path(platformdirs.user_config_dir("specconsole"))
    state: Path = Path(platformdirs.user_state_dir("specconsole")) / "window.json"
    themes, problems = read_themes([shipped_folder("themes"), config / "themes"])
    actions = read_keymap(config / "keys.toml")
    desk = Desk(board, commands, monotonic_s=time.monotonic, wall_s=time.time, badge=badge)
    return ConsoleApp(
        desk,
        themes,
        actions=actions,
        state_path=state if remember else None,
        problems=[str(problem) for problem in problems],
        welcome=welcome,
    )


def run_window(
    *, hosts: tuple[str, ...] = (), read_only: bool = False, first_order: LaunchOrder | None = None, welcome: str = ""
) -> int:
    """Opens the window; `first_order` is placed as soon as it stands, and `welcome` is said."""
    import asyncio
    import sys

    _check_terminal()

    async def live() -> list[str]:
        from specconsole.wiring import open_supervisor

        async with open_supervisor(hosts=_all_hosts(hosts), read_only=read_only) as supervisor:
            app = build_app(
                supervisor.board, supervisor.commands, badge="read-only" if read_only else "", welcome=welcome
            )
            if first_order is not None:
                app.order_first(first_order)
            await app.run_async()
            return await app.errands.finish(LEAVE_WAIT_S)

    for late in asyncio.run(live()):
        print(f"specconsole: {late}: still under way when the window closed", file=sys.stderr)
    return 0


def _all_hosts(more: tuple[str, ...]) -> tuple[str, ...]:
    """`local` and those named; the supervisor adds the ones that were added before."""
    return tuple(dict.fromkeys(("local", *more)))


def run_replay(speed: float = 1.0) -> int:
    """Plays the recorded start of a real server in the window, marked as what it is."""
    import asyncio
    import tempfile
    from pathlib import Path

    _check_terminal()

    async def play(folder: Path) -> None:
        from specconsole.adapters.system_clock import SystemClock
        from specconsole.demo.recording import load_recording
        from specconsole.services.replay import Replay

        recording = load_recording()
        replay = Replay(recording, folder, SystemClock(), speed=speed)
        replay.show(0.0)
        pace = "" if speed == 1.0 else f" ×{speed:g}"
        app = build_app(
            replay.board, replay.commands, badge=f"RECORDING{pace}", remember=False, welcome=recording.title
        )
        playing = asyncio.create_task(replay.run())
        try:
            await app.run_async()
        finally:
            playing.cancel()
            await asyncio.wait([playing])

    with tempfile.TemporaryDirectory(prefix="specconsole-replay-") as folder:
        asyncio.run(play(Path(folder)))
    return 0
