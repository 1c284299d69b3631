"""Ten thousand argument lists arrive at a real process byte for byte: sh as it is and as bash, here and over SSH.

Many lists travel in one launch, with a word between them that none of them holds. The witness is the kernel's own copy
of the argument list, /proc/PID/cmdline. SPECCONSOLE_ARGUMENT_LISTS asks for more than the usual number.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contracts.conftest import Host
from tests.contracts.launches import Bench, bench_on, log_of
from tests.support.waiting import until

LISTS = int(os.environ.get("SPECCONSOLE_ARGUMENT_LISTS", "10000"))
IN_ONE_LAUNCH = 4000
BETWEEN = "\x01between lists\x01"
PYTHON = "/usr/bin/python3"
WAIT = "import time; print('up', flush=True); time.sleep(600)"
_SHELL = [
    "$(id)", "`id`", "${HOME}", "$HOME", "$$", "$?", "$(", "`", "$", "\\", "\\\\", "'", '"', "''", "'\"'\"'", ";", "&",
    "&&", "||", "|", "<", ">", ">/dev/null", "2>&1", "(", ")", "{", "}", "{a,b}", "[a-z]", "*", "?", "~", "~root", "#",
    "!", "!!", "^", "%", "%s", "%n", "=", "A=1", "\n", "\r", "\r\n", "\t", " ", "  ", "\x7f", "\x1b[31m", "\x01",
    "\x08", "<<EOF", "EOF", "$'\\n'", "--", "-", "-c", "-n", "-e", "--help", "-1", "@", "+", ",", ":", "é", "日本",
    "🙂", "\u202e", "\ufeff", "n" * 300, os.fsdecode(b"\xff\xfe"), os.fsdecode(b"\xc3"), os.fsdecode(b"a\x80b"),
    "if", "done", "exec", "\\n", "\\0", "\\c", "%%", "''''",
]  # fmt: skip


def argument(choice: random.Random) -> str:
    kind = choice.random()
    if kind < 0.05:
        return ""
    if kind < 0.5:
        word = "".join(choice.choices(_SHELL, k=choice.randrange(1, 5)))
    elif kind < 0.8:
        word = os.fsdecode(bytes(choice.randrange(1, 256) for _ in range(choice.randrange(1, 16))))
    else:
        word = "".join(choice.choices("ab -'\"\\$`\n", k=choice.randrange(1, 24)))
    # What begins so is the home folder by intent (script.quote_path).
    return f"x{word}" if word.startswith("~/") else word


def lists_of(seed: int, count: int) -> list[list[str]]:
    choice = random.Random(seed)
    return [[argument(choice) for _ in range(choice.randrange(7))] for _ in range(count)]


def words_of(lists: list[list[str]]) -> list[str]:
    return [word for one in lists for word in (*one, BETWEEN)]


def as_arrived(pid: int, first: int) -> list[list[bytes]]:
    """The argument list that the kernel keeps, cut into lists again."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[first:-1]
    found: list[list[bytes]] = [[]]
    for word in words:
        if word == os.fsencode(BETWEEN):
            found.append([])
        else:
            found[-1].append(word)
    return found[:-1]


async def arrive(bench: Bench, seed: int, count: int) -> None:
    lists = lists_of(seed, count)
    assert not any(BETWEEN in word for one in lists for word in one)
    record = await bench.start(bench.spec(PYTHON, "-SEc", WAIT, *words_of(lists)))
    await until(lambda: log_of(record) == b"up\n", what=f"it runs: {log_of(record)!r}")
    assert record.process is not None
    arrived = as_arrived(record.process.pid, first=3)
    wrong = [(sent, got) for sent, got in zip(lists, arrived, strict=True) if [os.fsencode(w) for w in sent] != got]
    assert wrong[:1] == [], f"seed {seed}"
    await bench.stop(record.launch_id)


@pytest.fixture(params=["sh", "bash", "busybox"])
def shell(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What `sh` is on this machine for the test."""
    name: str = request.param
    if name == "sh":
        return name
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    folder = tmp_path / "shells"
    folder.mkdir()
    (folder / "sh").symlink_to(program)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return name


@pytest.fixture
async def bench(host: Host) -> AsyncIterator[Bench]:
    async with bench_on(host) as bench:
        yield bench


@pytest.mark.parametrize("host", ["local"], indirect=True)
async def test_here(shell: str, bench: Bench) -> None:
    said = (await bench.host.transport.run_sh("exec sh -c 'printf %s \"${BASH_VERSION:+bash}\"'")).stdout
    assert said == (b"bash" if shell == "bash" else b"")
    for seed, count in _batches(LISTS * 3 // 8):
        await arrive(bench, seed, count)


@pytest.mark.parametrize("host", ["ssh-user"], indirect=True)
async def test_over_ssh(bench: Bench) -> None:
    for seed, count in _batches(LISTS // 4):
        await arrive(bench, 1_000_000 + seed, count)


def _batches(lists: int) -> list[tuple[int, int]]:
    """(seed, lists) of each launch; other seeds by SPECCONSOLE_SEED."""
    start = int(os.environ.get("SPECCONSOLE_SEED", "0"))
    return [(start + n, min(IN_ONE_LAUNCH, lists - at)) for n, at in enumerate(range(0, lists, IN_ONE_LAUNCH))]
