"""The day's work over SSH with real consoles, a real sshd and a real llama.cpp server, on a link that breaks.

The host is this machine, seen through an sshd with a home folder of its own, so the witnesses are /proc, the server's
own file and the socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from specconsole.demo.models import ModelFiles
from tests.cli.console import write_profile
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.llama import MODULE
from tests.support.sshd_lab import SshdLab
from tests.support.waiting import all_pids, environ_of, free_port, is_alive

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SECRET = "hf_PlantedSecretThatMustNotLeak0123456789"


class Person:
    """Somebody with a console of their own: own home, own client id, the same account on the host."""

    def __init__(self, home: Path, proxy: FaultProxy, sshd: SshdLab) -> None:
        self.home = home
        home.mkdir()
        sshd.client_config(home, alias="gpu", user=sshd.accounts[0], port=proxy.port)
        self.env = {
            **os.environ, "HOME": str(home), "PLANTED": SECRET,
            **{f"XDG_{kind}_HOME": str(home / sub) for kind, sub in (
                ("CONFIG", ".config"), ("STATE", ".local/state"), ("CACHE", ".cache"), ("DATA", ".local/share"))},
        }  # fmt: skip

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "specconsole", *words, env=self.env, start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip

    async def does(self, *words: str) -> tuple[int | None, str, str]:
        console = await self.start(*words)
        out, err = await console.communicate()
        assert b"Traceback" not in err, err.decode()
        return console.returncode, out.decode(), err.decode()

    async def launches(self) -> list[dict[str, Any]]:
        status, out, err = await self.does("status", "--host", "gpu", "--json", "--all")
        assert status == 0, err
        found: list[dict[str, Any]] = json.loads(out)
        return found


@pytest.fixture
async def link(sshd: SshdLab) -> AsyncIterator[FaultProxy]:
    async with fault_proxy(sshd.port) as proxy:
        yield proxy


@pytest.fixture
async def alice(tmp_path: Path, link: FaultProxy, sshd: SshdLab) -> AsyncIterator[Person]:
    person = Person(tmp_path / "alice", link, sshd)
    yield person
    for launch in await person.launches():
        if launch["state"] not in ("stopped", "failed", "gone"):
            await person.does("stop", launch["launch_id"], "--host", "gpu", "--theirs", launch["name"])


@pytest.fixture
def profile(tmp_path: Path, llama_models: ModelFiles) -> Path:
    return write_profile(
        tmp_path, "tiny", [sys.executable, "-m", MODULE], engine="llamacpp", grace_s=5, port=free_port(),
        model=str(llama_models.target), draft_model=str(llama_models.draft), secrets={"HF_TOKEN": "env:PLANTED"},
    )  # fmt: skip


def servers(launch_id: str) -> list[int]:
    """By /proc alone."""
    return [pid for pid in all_pids() if environ_of(pid).get(b"SPECCONSOLE_LAUNCH") == launch_id.encode()]


def files_with(secret: bytes, *folders: Path) -> list[Path]:
    return [
        path for folder in folders for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and secret in path.read_bytes()
    ]  # fmt: skip


async def test_launched_followed_through_cuts_and_stopped_with_no_secret_anywhere(
    alice: Person, link: FaultProxy, sshd: SshdLab, profile: Path
) -> None:
    launching = await alice.start("launch", str(profile), "--host", "gpu", "--wait", "--json")
    seen: set[bytes] = set()
    while launching.returncode is None:
        # Arguments of every process of the machine, ours and the host's, all the while.
        for pid in all_pids():
            with contextlib.suppress(OSError):
                if SECRET.encode() in (line := Path(f"/proc/{pid}/cmdline").read_bytes()):
                    seen.add(line)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(launching.wait()), 0.05)
    out, err = await launching.communicate()
    assert launching.returncode == 0, err.decode()
    [launch] = json.loads(out)
    assert launch["state"] == "answers"
    launch_id = launch["launch_id"]
    [pid] = servers(launch_id)
    assert environ_of(pid)[b"HF_TOKEN"] == SECRET.encode()  # it did arrive
    following = await alice.start("logs", launch_id, "--host", "gpu", "--follow", "--raw")
    assert following.stdout is not None
    # The first connection stands: what is cut from here on is a console that follows.
    written = await asyncio.wait_for(following.stdout.read(1), 60)
    reading = asyncio.create_task(following.stdout.read())
    for _ in range(3):
        await asyncio.sleep(0.4)
        link.cut()
    status, _, err_text = await alice.does("stop", launch_id, "--host", "gpu")
    assert status == 0, err_text
    assert not is_alive(pid)
    written += await asyncio.wait_for(reading, 60)
    log = Path(launch["log_path"]).read_bytes()
    assert written == log, (await following.stderr.read()).decode()
    assert servers(launch_id) == []
    await following.wait()
    assert not seen
    assert files_with(SECRET.encode(), alice.home, sshd.homes[sshd.accounts[0]], sshd.folder) == []


async def test_two_people_on_one_account_keep_off_each_other(
    alice: Person, link: FaultProxy, sshd: SshdLab, profile: Path, tmp_path: Path
) -> None:
    bob = Person(tmp_path / "bob", link, sshd)
    watching = await alice.start("launch", str(profile), "--host", "gpu", "--wait")
    status, _, err = await bob.does("launch", str(profile), "--host", "gpu")
    await watching.communicate()
    # Whoever came second was refused for the port or its lock; exactly one server runs.
    first, second = (watching.returncode, status)
    assert sorted([first, second]) == [0, 5], err
    [mine] = [one for one in await bob.launches() if one["state"] not in ("failed", "stopped")]
    assert len(servers(mine["launch_id"])) == 1
    owner, other = (alice, bob) if first == 0 else (bob, alice)
    assert mine["ours"] is (owner is bob)
    # Not the other one's to stop, unless it is typed.
    status, _, err = await other.does("stop", mine["launch_id"], "--host", "gpu")
    assert status == 5, err
    assert "--theirs tiny" in err
    assert len(servers(mine["launch_id"])) == 1
    # The owner's console is killed in the middle; the other one goes on watching.
    watcher = await other.start("attach", mine["launch_id"], "--host", "gpu", "--to-end")
    killed = await owner.start("logs", mine["launch_id"], "--host", "gpu", "--follow")
    await asyncio.sleep(1.0)
    killed.kill()
    await killed.wait()
    assert len(servers(mine["launch_id"])) == 1
    assert watcher.returncode is None
    both = await asyncio.gather(
        owner.does("stop", mine["launch_id"], "--host", "gpu"),
        other.does("stop", mine["launch_id"], "--host", "gpu", "--theirs", "tiny"),
    )
    assert {status for status, _, _ in both} == {0}, both
    assert servers(mine["launch_id"]) == []
    await asyncio.wait_for(watcher.communicate(), 60)
    assert watcher.returncode == 0


async def test_log_follows_a_file_of_a_host_through_cuts_and_a_rotation(
    alice: Person, link: FaultProxy, sshd: SshdLab
) -> None:
    log = sshd.homes[sshd.accounts[0]] / "followed.log"
    log.write_bytes(b"".join(b"line %d\n" % number for number in range(1000)))
    following = await alice.start("log", f"gpu:{log}", "--follow", "--json")
    assert following.stdout is not None

    async def lines(wanted: int) -> None:
        assert following.stdout is not None
        async with asyncio.timeout(60):
            while json.loads(await following.stdout.readline())["lines"] != wanted:
                pass

    await lines(1000)
    link.cut()
    with log.open("ab") as file:
        file.write(b"".join(b"line %d\n" % number for number in range(1000, 1500)))
    await lines(1500)
    link.cut()
    log.rename(log.with_suffix(".log.1"))
    log.write_bytes(b"after the rotation\n")
    await lines(1501)
    following.kill()
    await following.wait()


async def test_an_unreachable_host_is_exit_3_for_every_verb(alice: Person, link: FaultProxy) -> None:
    await link.refuse()
    for words in (["status"], ["logs", "x"], ["attach", "x"], ["stop", "x"]):
        status, _, err = await alice.does(*words, "--host", "gpu")
        assert status == 3, err
        assert "nothing listens on the SSH port" in err
    status, _, err = await alice.does("log", "gpu:/etc/hostname")
    assert status == 3, err
    await link.listen_again()
    status, out, err = await alice.does("log", "gpu:/etc/hostname", "--json")
    assert (status, json.loads(out)["lines"]) == (0, 1), err
