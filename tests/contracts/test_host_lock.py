"""Locks on a host: one holder, owner and age told, expired ones broken by exactly one."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from specconsole.adapters.host_lock import HostLock
from specconsole.adapters.local import LocalTransport
from specconsole.errors import BadInputError
from specconsole.ports import Transport


@pytest.fixture
def transport() -> Transport:
    return LocalTransport()


def lock(transport: Transport, owner: str, *, lease_s: int = 30) -> HostLock:
    return HostLock(transport, "stop-x", owner=owner, lease_s=lease_s)


async def holder_file(home: Path) -> Path:
    found = await asyncio.to_thread(lambda: list(home.glob(".local/state/specconsole/locks/*/stop-x/holder")))
    assert len(found) == 1
    return found[0]


async def test_one_holds_it_and_the_other_learns_who(transport: Transport) -> None:
    async with lock(transport, "ann@laptop") as first:
        assert first.holder is None
        second = lock(transport, "bob@desk, the 'quoted' $one")
        assert not await second.take()
        assert second.holder is not None
        assert second.holder.owner == "ann@laptop"
        assert second.holder.age_s is not None
        assert second.describe().startswith("ann@laptop (for ")
        await second.release()
        assert not await lock(transport, "carl").take(), "a release by another must change nothing"
    third = lock(transport, "bob@desk, the 'quoted' $one")
    assert await third.take()
    assert not await lock(transport, "x").take()
    await third.release()


async def test_twenty_at_once_and_one_has_it(transport: Transport) -> None:
    locks = [lock(transport, f"console {n}") for n in range(20)]
    taken = await asyncio.gather(*(one.take() for one in locks))
    assert sum(taken) == 1
    for one in locks:
        await one.release()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda text: text.replace(text.splitlines()[2], "1"), id="expired"),
        pytest.param(lambda text: text.replace(text.splitlines()[1], "another-boot/pid:[1]"), id="another-boot"),
        pytest.param(lambda text: "", id="its-maker-died-before-it-wrote"),
        pytest.param(lambda text: "tok\nbo", id="torn"),
    ],
)
async def test_a_dead_lock_is_broken_by_exactly_one(transport: Transport, isolated_home: Path, damage) -> None:  # type: ignore[no-untyped-def]  # a table of small functions
    dead = lock(transport, "a dead console")
    assert await dead.take()
    path = await holder_file(isolated_home)
    text = await asyncio.to_thread(path.read_text)
    await asyncio.to_thread(path.write_text, damage(text))
    locks = [lock(transport, f"console {n}") for n in range(8)]
    taken = await asyncio.gather(*(one.take() for one in locks))
    assert sum(taken) == 1
    assert not await dead.renew(), "the dead one must learn that it lost it"
    await dead.release()
    winner = locks[taken.index(True)]
    assert await winner.renew()
    await winner.release()


async def test_a_lease_is_renewed(transport: Transport, isolated_home: Path) -> None:
    mine = lock(transport, "me", lease_s=5)
    assert await mine.take()
    path = await holder_file(isolated_home)
    before = (await asyncio.to_thread(path.read_text)).splitlines()
    longer = HostLock(transport, "stop-x", owner="me", lease_s=500)
    longer._token = mine._token
    assert await longer.renew()
    after = (await asyncio.to_thread(path.read_text)).splitlines()
    assert int(after[2]) >= int(before[2]) + 490
    assert (after[0], after[3], after[4]) == (before[0], before[3], before[4])
    await mine.release()


async def test_a_folder_that_can_hold_no_lock_is_one_clear_error(transport: Transport, isolated_home: Path) -> None:
    def block() -> None:
        (isolated_home / ".local").mkdir()
        (isolated_home / ".local/state").write_text("a file")

    await asyncio.to_thread(block)
    with pytest.raises(BadInputError, match="can't keep a lock in the state folder"):
        await lock(transport, "me").take()


async def test_a_full_disk_is_not_taken_for_another_console(
    transport: Transport, isolated_home: Path, tmp_path: Path
) -> None:
    """`printf` to a full disk leaves an empty file: once that was waited for as a lock of somebody else."""
    disk = tmp_path / "disk"

    def fill() -> bool:
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], check=False).returncode:
            return False
        (isolated_home / ".local").mkdir(exist_ok=True)
        (isolated_home / ".local/state").symlink_to(disk)
        subprocess.run(["dd", "if=/dev/zero", f"of={disk}/fill"], check=False, capture_output=True)
        return True

    if not await asyncio.to_thread(fill):
        pytest.skip("needs the right to mount a small tmpfs")
    try:
        with pytest.raises(BadInputError, match="can't keep a lock"):
            await lock(transport, "me").take()
        (disk / "fill").unlink()
        assert await lock(transport, "me").take()
    finally:
        await asyncio.to_thread(subprocess.run, ["umount", "-l", str(disk)], check=True)
