"""The part of `specconsole attach` that deals with servers started by hand: what could be adopted, and adopting it."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from specconsole.errors import EXIT_OK, BadInputError

if TYPE_CHECKING:
    from specconsole.services.commands import AttachOrder
    from specconsole.wiring import Console


def add_adopting_arguments(parser: argparse.ArgumentParser) -> None:
    """The ways to name a server that no console started."""
    group = parser.add_argument_group("a server started by hand (without any: list what runs and could be adopted)")
    group.add_argument("--pid", type=int, metavar="N", help="one of its processes")
    group.add_argument("--port", type=int, metavar="N", help="the port it listens on")
    group.add_argument("--log", metavar="PATH", help="its log file, on the host")
    group.add_argument("--log-command", metavar="CMD", help="what prints its log and goes on: 'docker logs -f NAME'")
    group.add_argument("--name", default="", help="what to call it here")


def adopting_order(args: argparse.Namespace) -> AttachOrder | None:
    """None when no way was given. Raises BadInputError for two of them."""
    from specconsole.services.commands import AttachOrder

    ways = {"pid": args.pid, "port": args.port, "log": args.log, "log-command": args.log_command}
    given = [(by, value) for by, value in ways.items() if value is not None]
    if len(given) > 1 or (given and args.launch):
        raise BadInputError("name one server: a LAUNCH, or one of --pid, --port, --log, --log-command")
    if not given:
        return None
    by, value = given[0]
    return AttachOrder(args.host, by, str(value), args.name)  # type: ignore[arg-type]  # a key of `ways`


async def list_offers(console: Console, args: argparse.Namespace) -> int:
    """Prints the running engines that no console watches."""
    offers = await console.commands.found_servers(args.host)
    if args.json:
        shape = [
            {"host": o.host, "pid": o.pid, "engine": o.engine, "port": o.port, "user": o.user, "command": o.command,
             "log": o.log_path}
            for o in offers
        ]  # fmt: skip
        print(json.dumps(shape))
        return EXIT_OK
    for o in offers:
        where = f"port {o.port}" if o.port is not None else "no port"
        print(
            f"{o.host}  pid {o.pid}  {o.engine}  {where}  {o.user or '?'}  log {o.log_path or 'unknown'}  {o.command}"
        )
    hint = (
        f"specconsole attach --host {args.host} --pid PID" if offers else "nothing runs there that no console watches"
    )
    print(f"specconsole attach: {hint}", file=sys.stderr)
    return EXIT_OK


async def adopt(console: Console, order: AttachOrder, args: argparse.Namespace) -> int:
    """Adopts it and shows what its log says."""
    from specconsole.cli.launch_text import launch_json, state_text

    launch_id = await console.commands.attach(order)
    await console.supervisor.watches[launch_id].settled()
    view = console.board.launches[launch_id]
    if args.json:
        print(json.dumps(launch_json(view)))
    else:
        print(f"{view.launch_id}  {view.name}: {state_text(view)}")
    return EXIT_OK
