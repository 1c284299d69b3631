"""The follower against real files that are rotated, cut, replaced and late; with inodes and, as over SFTP, without."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from specconsole.adapters.local import LocalTransport
from specconsole.ports import FileStat, RemoteFile
from specconsole.services.follower import READ_BYTES, Break, Chunk, Follower


class WithoutInodes(LocalTransport):
    """What SFTP version 3 tells: no inode, whole seconds."""

    async def stat(self, path: str) -> FileStat | None:
        found = await super().stat(path)
        return None if found is None else _poorer(found)

    async def open_file(self, path: str) -> RemoteFile:
        return _PoorFile(await super().open_file(path))


class _PoorFile:
    def __init__(self, file: RemoteFile) -> None:
        self._file = file

    async def read_at(self, offset: int, max_bytes: int) -> bytes:
        return await self._file.read_at(offset, max_bytes)

    async def stat(self) -> FileStat:
        return _poorer(await self._file.stat())

    async def aclose(self) -> None:
        await self._file.aclose()


def _poorer(found: FileStat) -> FileStat:
    return replace(found, inode=None, mtime_s=float(int(found.mtime_s)))


@pytest.fixture(params=[LocalTransport, WithoutInodes], ids=["inodes", "no-inodes"])
def transport(request: pytest.FixtureRequest) -> LocalTransport:
    made: LocalTransport = request.param()
    return made


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


async def everything(follower: Follower, *, looks: int = 4) -> list[bytes | Break]:
    """All that comes until `looks` times nothing came."""
    got: list[bytes | Break] = []
    quiet = 0
    while quiet < looks:
        came = await follower.poll()
        quiet = quiet + 1 if came is None else 0
        if isinstance(came, Chunk):
            got.append(came.data)
        elif came is not None:
            got.append(came)
    return got


async def test_a_growing_file_byte_for_byte(transport: LocalTransport, log: Path) -> None:
    follower = Follower(transport, str(log))
    assert await everything(follower) == []
    assert follower.missing
    log.write_bytes(b"one\n")
    assert await everything(follower) == [b"one\n"]
    big = os.urandom(READ_BYTES * 2 + 12345)
    with log.open("ab") as file:
        file.write(big)
    assert b"".join(part for part in await everything(follower) if isinstance(part, bytes)) == big
    assert follower.place.offset == 4 + len(big)
    await follower.aclose()


async def test_only_the_last_piece_is_live(transport: LocalTransport, log: Path) -> None:
    log.write_bytes(b"x" * (READ_BYTES + 10))
    follower = Follower(transport, str(log))
    first, second = await follower.poll(), await follower.poll()
    assert isinstance(first, Chunk)
    assert isinstance(second, Chunk)
    assert (first.caught_up, second.caught_up) == (False, True)
    await follower.aclose()


async def test_a_renamed_file_is_drained_before_the_new_one(transport: LocalTransport, log: Path) -> None:
    log.write_bytes(b"old 1\n")
    follower = Follower(transport, str(log))
    await everything(follower)
    with log.open("ab") as writer:
        log.rename(log.with_suffix(".1"))
        writer.write(b"old 2, after the rename\n")
        writer.flush()
        assert await everything(follower) == [b"old 2, after the rename\n"]
    log.write_bytes(b"new file, with another length\n")
    os.utime(log, (2_000_000_000, 2_000_000_000))
    got = await everything(follower)
    assert [part for part in got if isinstance(part, bytes)] == [b"new file, with another length\n"]
    breaks = [part for part in got if isinstance(part, Break)]
    assert [(one.kind, one.lost_bytes) for one in breaks] in ([("replaced", 0)], [("truncated", None)])
    await follower.aclose()


@pytest.mark.parametrize("after", [b"", b"s\n", b"fresh start, longer than all that had been written before\n" * 5])
async def test_copytruncate_is_noticed_however_much_came_since(
    transport: LocalTransport, log: Path, after: bytes
) -> None:
    log.write_bytes(b"before the cut\n" * 10)
    follower = Follower(transport, str(log))
    await everything(follower)
    with log.open("r+b") as file:
        file.truncate(0)
        file.write(after)
    got = await everything(follower)
    assert [one.kind for one in got if isinstance(one, Break)] == ["truncated"]
    assert [one.lost_bytes for one in got if isinstance(one, Break)] == [None]
    assert b"".join(part for part in got if isinstance(part, bytes)) == after
    await follower.aclose()


async def test_a_writer_that_goes_on_behind_the_hole(transport: LocalTransport, log: Path) -> None:
    with log.open("wb", buffering=0) as writer:
        writer.write(b"a" * 1000 + b"\n")
        follower = Follower(transport, str(log))
        await everything(follower)
        os.truncate(log, 0)
        assert [one.kind for one in await everything(follower) if isinstance(one, Break)] == ["truncated"]
        writer.write(b"behind the hole\n")
        assert b"".join(part for part in await everything(follower) if isinstance(part, bytes)) == b"behind the hole\n"
    await follower.aclose()


async def test_another_console_goes_on_where_the_first_was(transport: LocalTransport, log: Path) -> None:
    log.write_bytes(b"first part\n")
    first = Follower(transport, str(log))
    await everything(first)
    place = first.place
    await first.aclose()
    with log.open("ab") as file:
        file.write(b"second part\n")
    second = Follower(transport, str(log), place)
    assert await everything(second) == [b"second part\n"]
    await second.aclose()


async def test_it_does_not_go_on_in_a_file_that_is_another(transport: LocalTransport, log: Path) -> None:
    log.write_bytes(b"first part, quite long\n")
    first = Follower(transport, str(log))
    await everything(first)
    place = first.place
    await first.aclose()
    log.unlink()
    log.write_bytes(b"another file, and longer than the one before was\n")
    second = Follower(transport, str(log), place)
    got = await everything(second)
    assert isinstance(got[0], Break)
    assert (got[0].kind, got[0].lost_bytes) == ("replaced", None)
    assert got[1:] == [b"another file, and longer than the one before was\n"]
    await second.aclose()


@pytest.mark.parametrize(("sure_s", "marks"), [(60.0, [0]), (0.0, [0, None])])
async def test_a_beginning_that_nobody_saw_is_sure_for_a_moment_only(
    transport: LocalTransport, log: Path, monkeypatch: pytest.MonkeyPatch, sure_s: float, marks: list[int | None]
) -> None:
    monkeypatch.setattr("specconsole.services.follower.SURE_S", sure_s)
    follower = Follower(transport, str(log))
    log.write_bytes(b"one\n")
    assert await everything(follower) == [b"one\n"]
    log.rename(log.with_name("server.log.1"))
    log.write_bytes(b"two\n")
    os.truncate(log, 0)
    log.write_bytes(b"three\n")
    got = await everything(follower)
    assert [one.lost_bytes for one in got if isinstance(one, Break)] == marks
    assert [one for one in got if not isinstance(one, Break)] == [b"three\n"]
    await follower.aclose()
