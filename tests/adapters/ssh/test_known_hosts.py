"""known_hosts: read as OpenSSH reads it, written so that OpenSSH agrees. The witness is ssh-keygen."""

from __future__ import annotations

import multiprocessing
import stat
import subprocess
from pathlib import Path

import pytest

from specconsole.adapters.ssh import known_hosts
from specconsole.errors import BadInputError, SpecconsoleError
from tests.support.sshd_lab import make_key


def keygen(*arguments: str | Path) -> str:
    return subprocess.run(["ssh-keygen", *arguments], capture_output=True).stdout.decode()


@pytest.fixture
def key(tmp_path: Path) -> str:
    return " ".join(make_key(tmp_path / "host").with_suffix(".pub").read_text().split()[:2])


@pytest.mark.parametrize(("port", "name"), [(22, "gpu-a"), (2222, "[gpu-a]:2222")])
def test_what_is_added_is_found_by_openssh_and_by_us(tmp_path: Path, key: str, port: int, name: str) -> None:
    file = tmp_path / "new folder" / "known_hosts"
    known_hosts.add(str(file), "gpu-a", port, key)
    assert key in keygen("-F", name, "-f", file)
    [entry] = known_hosts.entries([str(file)], "gpu-a", "", port)
    assert (entry.key, entry.place) == (key, f"{file}:1")
    assert entry.fingerprint == keygen("-lf", file).split()[1]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_the_rest_of_the_file_stays_and_a_missing_newline_is_mended(tmp_path: Path, key: str) -> None:
    file = tmp_path / "known_hosts"
    mine = b"# mine\nold.example ssh-ed25519 AAAAgarbage\n@revoked * ssh-ed25519 x\nlast without newline"
    file.write_bytes(mine)
    known_hosts.add(str(file), "gpu-a", 22, key)
    assert file.read_bytes() == mine + b"\n" + f"gpu-a {key}\n".encode()


def test_the_same_key_is_not_written_twice_and_hashed_files_stay_hashed(tmp_path: Path, key: str) -> None:
    file = tmp_path / "known_hosts"
    known_hosts.add(str(file), "other", 22, key)
    keygen("-H", "-f", file)
    assert file.read_text().startswith("|1|")
    known_hosts.add(str(file), "gpu-a", 2222, key)
    known_hosts.add(str(file), "gpu-a", 2222, key)
    lines = file.read_text().splitlines()
    assert len(lines) == 2
    assert all(line.startswith("|1|") for line in lines)
    assert key in keygen("-F", "[gpu-a]:2222", "-f", file)
    assert [entry.key for entry in known_hosts.entries([str(file)], "gpu-a", "", 2222)] == [key]


def _add_many(path: str, first: int, key: str) -> None:
    for number in range(first, first + 50):
        known_hosts.add(path, f"host-{number}", 22, key)


def test_many_writers_lose_nothing(tmp_path: Path, key: str) -> None:
    file = tmp_path / "known_hosts"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_add_many, args=(str(file), 50 * n, key)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert sorted(file.read_text().split()[::3]) == sorted(f"host-{number}" for number in range(200))


def test_what_can_not_be_a_name_or_a_file(tmp_path: Path, key: str) -> None:
    with pytest.raises(BadInputError):
        known_hosts.add(str(tmp_path / "k"), "a b", 22, key)
    with pytest.raises(BadInputError):
        known_hosts.add(str(tmp_path / "k"), "*", 22, key)
    with pytest.raises(SpecconsoleError, match="can't be written"):
        known_hosts.add("/proc/known_hosts", "gpu-a", 22, key)
    with pytest.raises(SpecconsoleError, match="can't be written"):
        known_hosts.add("/dev/null", "gpu-a", 22, key)


def test_a_bad_line_does_not_hide_the_others(tmp_path: Path, key: str) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"nonsense\n@strange a b\n\x00\ngpu-a {key}\n")
    assert len(known_hosts.entries([str(file)], "gpu-a", "", 22)) == 1
    assert len(known_hosts.load([str(file)]).match("gpu-a", "", None)[0]) == 1
