"""The window over a scripted board and a real spool that somebody floods: `python -m tests.ui.flood`.

For tests in a real terminal and for benchmarks; what it shows is simulated, and says so.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from specconsole.services.spool import Spool
from specconsole.ui.app import ConsoleApp
from specconsole.ui.desk import Desk
from specconsole.ui.theme_files import read_themes
from tests.ui.fakes import fake_world, loading

FLOOD_STEP_S = 0.02

HOSTILE = (
    "\x1b]52;c;SE9TVElMRQ==\x07", "\x1b]0;HOSTILE-TITLE\x07", "\x1b]2;HOSTILE-TITLE\x1b\\", "\x1b[2J", "\x1b[777;777H",
    "\x1b[?1049l", "\x1b[?1000h", "\x1bc", "\x1b(0", "\x1b[5;8m", "\x1b]8;;http://HOSTILE/\x1b\\", "\x1bP$qm\x1b\\",
    "\x1b_HOSTILE\x1b\\", "\x1b[6n", "\x1b[>c", "\x1b]11;?\x07", "\x9b31m", "\x9d0;HOSTILE\x9c", "\x90q\x9c", "\x85",
    "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f", "\x7f", "\u202e\u2066\u2069", "\u2028\u2029", "\u200f",
    "\x1b[200~", "\x1b[3J", "\x1b[!p", "\x1b#8", "\x1bE\x1bM\x1bD", "[bold]x[/]", "[TP1]", "[@click=app.quit]q[/]",
    "\r\x1b[K", "\x0e\x0f", "\x1b", "\x1b[", "\x1b]", "\x1b]52;c;" + "QUFB" * 50, "\ufeff", "e\u0301\u0302", "広",
)  # fmt: skip


def hostile_block(lines: int, seed: int) -> bytes:
    """Lines of everything that could drive a terminal, some of it in bytes that are no UTF-8."""
    chance = random.Random(seed)
    made = []
    for number in range(lines):
        body = "".join(chance.choice(HOSTILE) + chance.choice(("", "text", " ", "\t")) for _ in range(4))
        raw = f"[2026-11-29 14:02:{number % 60:02d} TP{number % 8}] {body}".encode("utf-8", "surrogatepass")
        if chance.random() < 0.2:
            raw += bytes(chance.randrange(128, 256) for _ in range(6))
        made.append(raw.replace(b"\n", b"") + b"\n")
    return b"".join(made)


def plain_block(lines: int, seed: int) -> bytes:
    """Lines as a server under load prints them."""
    return b"".join(
        f"[2026-11-29 14:13:37 TP{number % 8}] Decode batch, #running-req: 8, #token: {2400 + number}, "
        f"token usage: 0.{number % 100:02d}, accept len: 2.{number % 90:02d}, seed {seed}\n".encode()
        for number in range(lines)
    )


async def flood(spool: Spool, arguments: argparse.Namespace) -> None:
    """Appends at a rate (lines a second; 0: as fast as it goes), until `--lines` are written."""
    make = hostile_block if arguments.hostile else plain_block
    block_lines = 5_000 if not arguments.rate else max(1, round(arguments.rate * FLOOD_STEP_S))
    blocks = [make(block_lines, seed) for seed in range(4)]
    written, began = 0, time.monotonic()
    while arguments.lines == 0 or written < arguments.lines:
        if arguments.rate:
            due = int((time.monotonic() - began) * arguments.rate)
            while written < due:
                spool.append(blocks[written // block_lines % 4])
                written += block_lines
            await asyncio.sleep(FLOOD_STEP_S)
        else:
            spool.append(blocks[written // block_lines % 4])
            written += block_lines
            await asyncio.sleep(0)


async def main(arguments: argparse.Namespace, folder: Path) -> None:
    board, commands = fake_world()
    board.publish_launch(replace(loading(), as_of_s=time.monotonic()))
    spool = Spool(folder)
    spool.append(plain_block(200, 9))
    commands.sources["L1"] = spool
    themes, _ = read_themes([Path(__file__).parents[2] / "themes"])
    desk = Desk(board, commands, monotonic_s=time.monotonic, wall_s=time.time, badge="SIMULATED")
    app = ConsoleApp(desk, themes)

    async def go() -> None:
        await asyncio.sleep(arguments.wait_s)
        await flood(spool, arguments)
        board.tell("note", "L1", f"flood over: {spool.line_count} lines", 0.0)
        if arguments.quit_after_s:
            await asyncio.sleep(arguments.quit_after_s)
            app.exit()

    writing = asyncio.get_running_loop().create_task(go())
    try:
        await app.run_async()
    finally:
        writing.cancel()
        await asyncio.wait([writing])


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--wait-s", type=float, default=0.5)
    parser.add_argument("--quit-after-s", type=float, default=0.0)
    return parser.parse_args(argv)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="flood-") as folder:
        asyncio.run(main(parse(sys.argv[1:]), Path(folder)))
