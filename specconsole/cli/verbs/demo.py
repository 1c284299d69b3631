"""`specconsole demo`: a real server with a real draft model, on this machine, from nothing."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from specconsole.errors import EXIT_CANCELLED, EXIT_OK, BadInputError, SpecconsoleError

if TYPE_CHECKING:
    from pathlib import Path

HELP = "run a real llama.cpp server with a draft model, from nothing, on this machine"
EPILOG = """Without a terminal, or with --headless, it runs through as text: models, launch, phases, answers, requests,
stop, proof. On a terminal it opens the window with the server's start in it.
exit status: 0 all of it went well and nothing is left, 1 something failed, 2 not installed or no terminal,
130 interrupted (the server was stopped)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--headless", action="store_true", help="as text, also on a terminal")
    parser.add_argument("--replay", action="store_true", help="instead: play a recorded start of SGLang on an H200")
    parser.add_argument("--speed", type=float, default=1.0, metavar="N", help="with --replay: N times as fast")


def run(args: argparse.Namespace) -> int:
    if args.replay:
        if not 0 < args.speed <= 1000:
            raise BadInputError(f"--speed can't be {args.speed:g}", try_="a number over 0, up to 1000")
        from specconsole.cli.verbs.window import run_replay

        return run_replay(args.speed)
    if args.read_only:
        raise BadInputError("the demo starts a server, and this console is read-only", try_="demo --replay")
    check_installed()
    if args.headless or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return run_headless()
    from specconsole.cli.verbs.window import run_window
    from specconsole.services.commands import LaunchOrder

    write_demo_models()
    status = run_window(
        first_order=LaunchOrder("demo", "local"),
        welcome="The demo: llama.cpp's own server on a tiny random model with a draft, for real, on this machine",
    )
    asyncio.run(_say_what_runs())
    return status


async def _say_what_runs() -> None:
    """Leaving the window leaves servers running; somebody new is told so, and how to end them."""
    from specconsole.adapters.local import LocalTransport
    from specconsole.adapters.process_launcher import ProcessLauncher

    records = await ProcessLauncher(LocalTransport()).discover()
    for record in records:
        if record.alive and record.spec is not None and record.spec.profile.startswith("demo"):
            print(f"The demo's server runs on, on port {record.spec.port}: specconsole stop {record.launch_id}")


def check_installed() -> None:
    """Raises BadInputError when the extra that brings the server is missing."""
    from importlib.util import find_spec

    missing = [name for name in ("xllamacpp", "gguf", "numpy") if find_spec(name) is None]
    if missing:
        raise BadInputError(
            f"the demo needs {', '.join(missing)}",
            try_="pip install 'specconsole[demo]', or: specconsole demo --replay",
        )


def write_demo_models() -> Path:
    """The two models where the demo's profiles look for them."""
    from pathlib import Path

    from specconsole.demo.models import write_models

    # As in profiles/demo.toml.
    folder = Path.home() / ".cache" / "specconsole" / "demo"
    try:
        write_models(folder)
    except OSError as error:
        raise SpecconsoleError(
            f"can't write the demo's models: {error.strerror}", where=str(folder), try_="11 MB of free space there"
        ) from None
    return folder


def run_headless() -> int:
    try:
        return asyncio.run(_headless())
    except asyncio.CancelledError:
        print("specconsole demo: ended by a signal; the server was stopped", file=sys.stderr)
        return EXIT_CANCELLED


async def _headless() -> int:
    import contextlib
    import signal
    import time

    from specconsole.demo.headless import run_demo
    from specconsole.wiring import open_supervisor

    began_s = time.monotonic()
    last = ""

    def say(about: str, text: str) -> None:
        nonlocal last
        print(f"{about if about != last else '':9s} {text}", flush=True)
        last = about

    me = asyncio.current_task()
    assert me is not None
    with contextlib.suppress(NotImplementedError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
    say("demo", "llama.cpp's own server with a draft model on this machine: no GPU, nothing downloaded")
    folder = await asyncio.to_thread(write_demo_models)
    say("models", f"target and draft with random weights in {folder} ({time.monotonic() - began_s:.1f} s)")
    async with open_supervisor(()) as console:
        await run_demo(console, say)
    say("done", f"in {time.monotonic() - began_s:.1f} s")
    return EXIT_OK
