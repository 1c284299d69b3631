"""Transport: files. Offsets on open handles, renames under them, whole reads, atomic writes."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from pathlib import Path

import pytest

from specconsole.errors import BadInputError, FileMissingError, SpecconsoleError
from specconsole.ports import Transport
from tests.contracts.conftest import Host

ODD_NAMES = [
    "plain",
    "with blank",
    "it's",
    'a"b',
    "$(id)",
    "new\nline",
    "-rf",
    "é",
    "日本",
    "#",
    "*",
    os.fsdecode(b"caf\xe9"),
]


async def test_stat_tells_size_kind_mode_and_time(transport: Transport, folder: Path) -> None:
    file = folder / "log"
    file.write_bytes(b"12345")
    file.chmod(0o640)
    os.utime(file, (1_700_000_000, 1_700_000_000))
    found = await transport.stat(str(file))
    assert found is not None
    assert (found.size_bytes, found.is_dir, stat.S_IMODE(found.mode)) == (5, False, 0o640)
    assert stat.S_ISREG(found.mode)
    assert abs(found.mtime_s - 1_700_000_000) <= 1
    there = await transport.stat(str(folder))
    assert there is not None
    assert there.is_dir


@pytest.mark.parametrize("name", ["nothing", "nothing/below", "file/below"])
async def test_stat_of_what_is_not_there_is_none(transport: Transport, folder: Path, name: str) -> None:
    (folder / "file").touch()
    assert await transport.stat(str(folder / name)) is None


async def test_reads_at_any_offset_and_nothing_beyond_the_end(transport: Transport, folder: Path) -> None:
    data = os.urandom(300_000)
    (folder / "data").write_bytes(data)
    file = await transport.open_file(str(folder / "data"))
    try:
        assert await file.read_at(0, 10) == data[:10]
        assert await file.read_at(299_990, 1000) == data[-10:]
        assert await file.read_at(300_000, 10) == b""
        assert await file.read_at(10_000_000, 10) == b""
        collected = b""
        while block := await file.read_at(len(collected), 65536):
            collected += block
        assert collected == data
    finally:
        await file.aclose()


async def test_a_growing_file_is_followed_on_one_handle(transport: Transport, folder: Path) -> None:
    path = folder / "log"
    path.touch()
    file = await transport.open_file(str(path))
    try:
        seen = b""
        with path.open("ab", buffering=0) as writer:
            for number in range(50):
                writer.write(b"line %d \xff\n" % number)
                seen += await file.read_at(len(seen), 65536)
                assert (await file.stat()).size_bytes == path.stat().st_size == len(seen)
        assert seen == path.read_bytes()
    finally:
        await file.aclose()


async def test_a_renamed_and_replaced_file_is_drained_on_the_old_handle(host: Host) -> None:
    transport, folder = host.transport, host.folder
    path = folder / "log"
    path.write_bytes(b"old")
    file = await transport.open_file(str(path))
    try:
        assert await file.read_at(0, 100) == b"old"
        path.rename(folder / "log.1")
        with (folder / "log.1").open("ab") as writer:
            writer.write(b" and more")
        path.write_bytes(b"new")
        assert await file.read_at(3, 100) == b" and more"
        assert (await file.stat()).size_bytes == 12
        assert await transport.read_file(str(path)) == b"new"
        (folder / "log.1").unlink()
        if host.holds_deleted:
            assert await file.read_at(0, 100) == b"old and more"
        else:
            with pytest.raises(FileMissingError):
                await file.read_at(0, 100)
    finally:
        await file.aclose()


async def test_a_truncated_file_shows_its_new_size(transport: Transport, folder: Path) -> None:
    path = folder / "log"
    path.write_bytes(b"x" * 1000)
    file = await transport.open_file(str(path))
    try:
        path.write_bytes(b"new")
        assert (await file.stat()).size_bytes == 3
        assert await file.read_at(1000, 10) == b""
        assert await file.read_at(0, 10) == b"new"
    finally:
        await file.aclose()


async def test_a_handle_may_be_closed_twice(transport: Transport, folder: Path) -> None:
    (folder / "file").touch()
    file = await transport.open_file(str(folder / "file"))
    await file.aclose()
    await file.aclose()


async def test_many_files_open_at_once(transport: Transport, folder: Path) -> None:
    for number in range(40):
        (folder / f"f{number}").write_text(f"content {number}")
    files = await asyncio.gather(*(transport.open_file(str(folder / f"f{number}")) for number in range(40)))
    try:
        contents = await asyncio.gather(*(file.read_at(0, 100) for file in files))
        assert contents == [f"content {number}".encode() for number in range(40)]
    finally:
        await asyncio.gather(*(file.aclose() for file in files))


async def test_what_is_missing_is_said_by_name(transport: Transport, folder: Path) -> None:
    missing = str(folder / "not-there")
    with pytest.raises(FileMissingError, match="not-there"):
        await transport.open_file(missing)
    with pytest.raises(FileMissingError, match="not-there"):
        await transport.read_file(missing)
    with pytest.raises(FileMissingError, match="not-there"):
        await transport.list_dir(missing)


async def test_what_can_not_be_read_is_not_called_missing(host: Host) -> None:
    with pytest.raises(SpecconsoleError) as refused:
        await host.transport.read_file(str(host.folder))
    assert not isinstance(refused.value, FileMissingError)
    if not host.as_root:
        with pytest.raises(SpecconsoleError, match=r"(?i)denied") as refused:
            await host.transport.read_file("/proc/1/environ")
        assert not isinstance(refused.value, FileMissingError)


async def test_a_whole_file_up_to_its_limit(transport: Transport, folder: Path) -> None:
    data = os.urandom(2_000_000)
    path = folder / "whole"
    path.write_bytes(data)
    assert await transport.read_file(str(path)) == data
    assert await transport.read_file(str(path), max_bytes=len(data)) == data
    with pytest.raises(BadInputError, match="larger"):
        await transport.read_file(str(path), max_bytes=len(data) - 1)


async def test_a_file_of_proc_says_size_0_and_is_read_all_the_same(transport: Transport) -> None:
    assert await transport.read_file("/proc/version") == Path("/proc/version").read_bytes()


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_any_name_can_be_written_read_and_listed(transport: Transport, folder: Path, name: str) -> None:
    path = str(folder / name)
    await transport.write_file(path, b"content of " + os.fsencode(name))
    assert await transport.list_dir(str(folder)) == [name]
    assert await transport.read_file(path) == b"content of " + os.fsencode(name)
    assert Path(path).read_bytes() == b"content of " + os.fsencode(name)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o400])
async def test_a_written_file_has_the_mode_asked_for_and_leaves_nothing_beside(
    transport: Transport, folder: Path, mode: int
) -> None:
    await transport.write_file(str(folder / "file"), b"data", mode=mode)
    assert stat.S_IMODE((folder / "file").stat().st_mode) == mode
    assert os.listdir(folder) == ["file"]


async def test_a_secret_is_at_no_time_readable_by_others(transport: Transport, folder: Path) -> None:
    """Witness: every mode that any name in the folder ever shows while it is written again and again."""
    seen: set[int] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            for entry in os.scandir(folder):
                try:
                    seen.add(stat.S_IMODE(entry.stat().st_mode))
                except FileNotFoundError:
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for number in range(20):
            await transport.write_file(str(folder / "secret"), b"%d" % number)
    finally:
        over.set()
        watcher.join()
    assert seen
    assert {mode & 0o077 for mode in seen} == {0}


async def test_a_reader_sees_the_old_file_or_the_new_one(transport: Transport, folder: Path) -> None:
    path = folder / "state"
    versions = [bytes([65 + number]) * 200_000 for number in range(8)]
    path.write_bytes(versions[0])
    seen: list[bytes] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            seen.append(path.read_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for version in versions[1:]:
            await transport.write_file(str(path), version)
    finally:
        over.set()
        watcher.join()
    assert all(content in versions for content in seen)
    assert path.read_bytes() == versions[-1]


async def test_a_failed_write_leaves_the_old_file(transport: Transport, folder: Path) -> None:
    (folder / "a-folder").mkdir()
    (folder / "a-folder" / "inside").touch()
    with pytest.raises(SpecconsoleError):
        await transport.write_file(str(folder / "a-folder"), b"x")
    with pytest.raises(SpecconsoleError):
        await transport.write_file(str(folder / "no-folder" / "file"), b"x")
    assert os.listdir(folder) == ["a-folder"]
    assert os.listdir(folder / "a-folder") == ["inside"]


async def test_a_folder_is_listed_sorted_and_without_dots(transport: Transport, folder: Path) -> None:
    for name in ("b", "a", ".hidden", "C"):
        (folder / name).touch()
    (folder / "sub").mkdir()
    assert await transport.list_dir(str(folder)) == sorted([".hidden", "C", "a", "b", "sub"])
    for number in range(600):
        (folder / "sub" / f"{number:04}").touch()
    assert await transport.list_dir(str(folder / "sub")) == [f"{number:04}" for number in range(600)]
