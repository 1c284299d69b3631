"""A log that grows at 2,000 lines/s and is rotated all the time, followed over a link that breaks all the time.

The witness is the writer's own record of every byte. What arrived must be that record, in order and once, but for
places that were marked as lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from specconsole.adapters.ssh import SshLink
from specconsole.adapters.system_clock import SystemClock
from specconsole.errors import TransportError
from specconsole.services.board import Board
from specconsole.services.follower import Break, Chunk, Follower, Place
from specconsole.services.host_link import HostLink, Pace
from tests.support.fault_proxy import FaultProxy
from tests.support.sshd_lab import SshdLab
from tests.support.waiting import until

ROUNDS = int(os.environ.get("SPECCONSOLE_FAULT_ROUNDS", "200"))
LINES_PER_S = 2000
REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass
class Local:
    """What arrived, in pieces between marked losses."""

    pieces: list[bytearray] = field(default_factory=lambda: [bytearray()])
    marks: list[Break] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))

    def take(self, came: Chunk | Break | None) -> None:
        if isinstance(came, Chunk):
            self.pieces[-1] += came.data
        elif isinstance(came, Break):
            self.marks.append(came)
            if came.lost_bytes != 0:
                self.pieces.append(bytearray())


def compare(local: Local, truth: bytes) -> int:
    """Bytes missing at marked places. Fails on a gap that is not marked, a repeat, or a byte that is not the host's."""
    at = missing = 0
    for number, piece in enumerate(local.pieces):
        if not piece:
            continue
        # A piece begins where the last one ended, or later when a loss is marked between them. Numbers make every
        # stretch of 200 bytes unique.
        found = truth.find(piece[:200], at)
        assert found >= 0, f"piece {number} repeats or invents bytes: {bytes(piece[:200])!r}"
        assert found == at or number > 0, f"{found} bytes are missing at the start"
        missing += found - at
        expected = truth[found : found + len(piece)]
        if expected != piece:
            differs = next(i for i, (a, b) in enumerate(zip(expected, piece, strict=False)) if a != b)
            raise AssertionError(
                f"piece {number} differs at byte {differs} of {len(piece)} (truth {found + differs}):"
                f" {bytes(piece[differs - 80 : differs + 80])!r} is not {expected[differs - 80 : differs + 80]!r}"
            )
        at = found + len(piece)
    assert at == len(truth), f"{len(truth) - at} bytes are missing at the end"
    return missing


@asynccontextmanager
async def writing(folder: Path, seed: int, *, keep: int = 6, modes: str = "rename,copytruncate") -> AsyncIterator[None]:
    argv = [
        sys.executable,
        "-m",
        "tests.support.log_writer",
        str(folder),
        str(LINES_PER_S),
        str(seed),
        str(keep),
        modes,
    ]
    process = await asyncio.create_subprocess_exec(*argv, cwd=REPOSITORY)
    try:
        await until((folder / "truth").exists)
        yield
    finally:
        process.terminate()
        async with asyncio.timeout(20):
            await process.wait()


class Following:
    """A keeper, a follower and what arrived; `rest` reads to the end once the writer is gone."""

    def __init__(self, path: Path, place: Place | None = None) -> None:
        self.link = SshLink("proxied")
        self.keeper = HostLink(
            self.link, Board(), SystemClock(), jitter=lambda: 0.0,
            pace=Pace(look_s=0.05, quiet_s=0.2, stale_s=0.6, probe_s=0.5),
        )  # fmt: skip
        self.follower = Follower(self.link, str(path), place)
        self.local = Local()
        self.lost = 0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.keeper.run())
            group.create_task(self._follow())

    async def _follow(self) -> None:
        while True:
            try:
                came = await self.follower.poll()
            except TransportError:
                self.lost += 1
                self.keeper.nudge()
                await asyncio.sleep(0.02)
                continue
            self.local.take(came)
            await asyncio.sleep(0.0 if came else 0.02)

    async def rest(self, truth: bytes) -> None:
        quiet = 0
        async with asyncio.timeout(60):
            while quiet < 125:  # five seconds: a starved machine may need one for a connection's first look
                before = self.local.size, len(self.local.marks)
                await asyncio.sleep(0.04)
                quiet = quiet + 1 if before == (self.local.size, len(self.local.marks)) and self.link.connected else 0
                if self.local.pieces[-1][-200:] == truth[-200:]:
                    return


@asynccontextmanager
async def following(path: Path) -> AsyncIterator[Following]:
    it = Following(path)
    task = asyncio.create_task(it.run())
    try:
        yield it
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await it.follower.aclose()
        await it.keeper.aclose()


async def cut(proxy: FaultProxy, chance: random.Random) -> None:
    proxy.cut()
    await asyncio.sleep(chance.uniform(0, 0.2))


async def stall(proxy: FaultProxy, chance: random.Random) -> None:
    proxy.stall()
    await asyncio.sleep(chance.uniform(0.05, 0.5))
    proxy.resume()


async def half_open(proxy: FaultProxy, chance: random.Random) -> None:
    before = proxy.accepted
    proxy.half_open()
    await until(lambda: proxy.accepted > before, timeout_s=30, what="a new connection in place of the dead one")


async def refuse(proxy: FaultProxy, chance: random.Random) -> None:
    await proxy.refuse()
    proxy.cut()
    await asyncio.sleep(chance.uniform(0.1, 0.4))
    await proxy.listen_again()


FAULTS: dict[str, Callable[[FaultProxy, random.Random], Awaitable[None]]] = {
    "cut": cut, "stall": stall, "half-open": half_open, "refuse": refuse,
}  # fmt: skip


@pytest.fixture
def host_folder(sshd: SshdLab, ssh_account: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the account can read, in its home on the lab's host."""
    folder = sshd.homes[ssh_account] / tmp_path_factory.mktemp("faults").name
    folder.mkdir()
    folder.chmod(0o755)
    return folder


@pytest.fixture
def quick_keepalive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead link is given up after 0.6 s instead of 15 s, so that rounds are short; rotations follow each other after
    0.3 s here, so a beginning counts as seen within less."""
    monkeypatch.setattr("specconsole.adapters.ssh.connect.KEEPALIVE_S", 0.2)
    monkeypatch.setattr("specconsole.services.follower.SURE_S", 0.25)


async def rounds(
    proxy: FaultProxy, folder: Path, names: list[str], count: int, seed: int, **writer: str | int
) -> Local:
    """`count` faults of each kind in random order, then the comparison; returns what arrived."""
    chance = random.Random(seed)
    order = names * count
    chance.shuffle(order)
    async with following(folder / "log") as it:
        async with writing(folder, seed, **writer):  # type: ignore[arg-type]  # keep and modes by name
            await until(lambda: it.local.size > 10_000)
            for name in order:
                await asyncio.sleep(chance.uniform(0.02, 0.4))
                await FAULTS[name](proxy, chance)
        truth = (folder / "truth").read_bytes()
        await it.rest(truth)
        compare(it.local, truth)
        return it.local


@pytest.mark.usefixtures("quick_keepalive")
@pytest.mark.parametrize("name", sorted(FAULTS))
async def test_a_few_rounds(name: str, ssh_proxy: FaultProxy, host_folder: Path) -> None:
    local = await rounds(ssh_proxy, host_folder, [name], 3, seed=len(name))
    assert local.size > 10_000
    if not any("faster" in mark.text for mark in local.marks):
        assert compare(local, (host_folder / "truth").read_bytes()) == 0, "all of it was still there to be read"


async def lost_by_the_host(proxy: FaultProxy, folder: Path, count: int, seed: int) -> None:
    """One old file is kept and `> log` happens: outages outlast what the host keeps, and that has to be said."""
    local = await rounds(proxy, folder, ["refuse", "stall", "cut"], count, seed, keep=1, modes="rename,cut")
    missing = compare(local, (folder / "truth").read_bytes())
    marked = [mark for mark in local.marks if mark.lost_bytes != 0]
    assert bool(missing) <= bool(marked)


@pytest.mark.usefixtures("quick_keepalive")
async def test_what_the_hosts_own_rotation_lost_is_marked(ssh_proxy: FaultProxy, host_folder: Path) -> None:
    await lost_by_the_host(ssh_proxy, host_folder, 3, seed=5)


@pytest.mark.faults
@pytest.mark.timeout(3 * 3600)
@pytest.mark.usefixtures("quick_keepalive")
async def test_what_the_hosts_own_rotation_lost_is_marked_many_rounds(ssh_proxy: FaultProxy, host_folder: Path) -> None:
    await lost_by_the_host(ssh_proxy, host_folder, ROUNDS // 3, seed=random.randrange(1_000_000))


@pytest.mark.faults
@pytest.mark.timeout(3 * 3600)
@pytest.mark.usefixtures("quick_keepalive")
@pytest.mark.parametrize("name", sorted(FAULTS))
async def test_many_rounds(name: str, ssh_proxy: FaultProxy, host_folder: Path) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")  # noqa: T201  # shown when it fails
    await rounds(ssh_proxy, host_folder, [name], ROUNDS, seed=seed)
