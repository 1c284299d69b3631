"""Transport: commands. Arguments, input, output, statuses, time limits and cancellation."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specconsole.errors import SpecconsoleError
from specconsole.ports import Transport
from tests.support.waiting import PATIENCE_S, is_alive, until

PRINTF = "/usr/bin/printf"

NASTY = (
    "", " ", "a b", "'", '"', "\\", "`id`", "$(id)", "$HOME", "${x:-y}", "a\nb", "\n", "\t", "\r\n", "*", "?", "[a-z]",
    "~", "~root", "-n", "--", "--help", "-", ";", "&", "|", ">", "<", "#", "!!", "!x", "%s", "%", "\\n",
    "\x1b[31m", "\x7f",
    "{a,b}", "a=b", "'\"'\"'", "\\'", "é", "日本", "🚀", "e\u0301", "\u202e", os.fsdecode(b"\xff\xfe"),
    os.fsdecode(b"caf\xe9"), "^", "(", ")", "x" * 5000, "'" * 300, "\\" * 301,
)  # fmt: skip


async def echoed(transport: Transport, arguments: list[str]) -> list[str]:
    """What a program on the host got as its arguments."""
    done = await transport.run([PRINTF, "%s\\0", *arguments])
    assert done.exit_status == 0
    assert done.stderr == b""
    return [os.fsdecode(part) for part in done.stdout.split(b"\0")[:-1]]


async def test_arguments_arrive_byte_for_byte(transport: Transport) -> None:
    assert await echoed(transport, list(NASTY)) == list(NASTY)


argument = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    st.binary(max_size=30).filter(lambda data: b"\0" not in data).map(os.fsdecode),
    st.lists(st.sampled_from(["'", '"', "\\", "$", "`", "!", "\n", " ", "-", "(", "^", "%"]), max_size=12).map("".join),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arguments=st.lists(argument, min_size=1, max_size=12))
async def test_any_arguments_arrive_byte_for_byte(transport: Transport, arguments: list[str]) -> None:
    assert await echoed(transport, arguments) == arguments


async def test_the_program_itself_may_have_any_name(transport: Transport, folder: Path) -> None:
    program = folder / 'it\'s $(a) "program"\nof ours'
    program.write_text('#!/bin/sh\nprintf %s "$0"\n')
    program.chmod(0o755)
    done = await transport.run([str(program)])
    assert done.stdout == os.fsencode(program)


async def test_a_nul_in_an_argument_is_an_error_of_ours(transport: Transport) -> None:
    with pytest.raises(SpecconsoleError, match="NUL"):
        await transport.run(["echo", "a\0b"])


@pytest.mark.parametrize("status", [0, 1, 7, 42, 126, 127, 130, 254, 255])
async def test_exit_statuses_are_the_commands_own(transport: Transport, status: int) -> None:
    done = await transport.run(["sh", "-c", f"exit {status}"])
    assert done.exit_status == status
    assert done.ok is (status == 0)


@pytest.mark.parametrize("signal_name", ["KILL", "TERM", "SEGV"])
async def test_ended_by_a_signal_is_unknown_not_success(transport: Transport, signal_name: str) -> None:
    done = await transport.run(["sh", "-c", f"ulimit -c 0; kill -{signal_name} $$"])
    assert done.exit_status is None
    assert not done.ok


async def test_a_command_that_is_not_there_fails_and_says_its_name(transport: Transport) -> None:
    """As an error of ours, or as a shell would: status 127 and a line."""
    try:
        done = await transport.run(["no-such-command-anywhere"])
        said, status = done.stderr.decode(), done.exit_status
    except SpecconsoleError as error:
        said, status = str(error), 127
    assert "no-such-command-anywhere" in said
    assert status == 127


async def test_both_outputs_come_apart_whatever_bytes_they_hold(transport: Transport) -> None:
    script = r"printf 'out \377\376\000\033[31m\r'; printf 'err \200\n\001' >&2"
    done = await transport.run(["sh", "-c", script])
    assert done.stdout == b"out \xff\xfe\x00\x1b[31m\r"
    assert done.stderr == b"err \x80\n\x01"
    assert not done.truncated


async def test_standard_input_arrives_whole(transport: Transport) -> None:
    data = bytes(range(256)) * 4096
    assert (await transport.run(["cat"], stdin=data)).stdout == data


async def test_without_input_a_reader_sees_the_end_at_once(transport: Transport) -> None:
    assert (await transport.run(["cat"], timeout_s=PATIENCE_S)).stdout == b""


async def test_a_command_that_does_not_read_its_input_still_ends(transport: Transport) -> None:
    done = await transport.run(["sh", "-c", "exit 3"], stdin=b"x" * 5_000_000, timeout_s=PATIENCE_S)
    assert done.exit_status == 3


async def test_large_output_arrives_whole(transport: Transport) -> None:
    size = 12_000_000
    done = await transport.run(["sh", "-c", f"head -c {size} /dev/zero; echo end"])
    assert len(done.stdout) == size + 4
    assert done.stdout.endswith(b"\0end\n")
    assert not done.truncated


async def test_output_beyond_the_limit_is_read_dropped_and_told(transport: Transport) -> None:
    script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo last >&2; exit 4"
    done = await transport.run(["sh", "-c", script], max_output_bytes=1000)
    assert done.truncated
    assert done.exit_status == 4
    assert len(done.stdout) == 1000
    assert done.stdout.startswith(b"line 0\nline 1\n")
    assert done.stderr == b"last\n"


async def pids_of(file: Path, count: int) -> list[int]:
    """Waits for a script on the host to write down `count` process ids."""

    def written() -> list[int]:
        words = file.read_text().split() if file.exists() else []
        return [int(word) for word in words] if len(words) == count else []

    return await until(written, what=f"{count} pids in {file}")


async def test_after_the_time_limit_the_whole_group_is_gone(transport: Transport, folder: Path) -> None:
    pids = folder / "pids"
    script = 'sh -c \'echo $$ >>"$0"; exec sleep 300\' "$1" & echo $$ >>"$1"; sleep 300'
    with pytest.raises(TimeoutError):
        await transport.run(["sh", "-c", script, "sh", str(pids)], timeout_s=2)
    for pid in await pids_of(pids, 2):
        await until(lambda pid=pid: not is_alive(pid), what=f"pid {pid} is gone")


async def test_a_child_that_outlives_its_parent_is_ended_by_the_time_limit_too(
    transport: Transport, folder: Path
) -> None:
    """It holds the output open, so that the command's end alone is not the end of its output."""
    pids = folder / "pids"
    with pytest.raises(TimeoutError):
        await transport.run(["sh", "-c", 'sleep 300 & echo $! >"$1"; exit 0', "sh", str(pids)], timeout_s=1)
    [pid] = await pids_of(pids, 1)
    await until(lambda: not is_alive(pid), what=f"pid {pid} is gone")


async def test_the_time_limit_holds_against_one_that_ignores_term(transport: Transport, folder: Path) -> None:
    pids = folder / "pids"
    script = 'trap "" TERM INT HUP; echo $$ >"$1"; while :; do sleep 1; done'
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        await transport.run(["sh", "-c", script, "sh", str(pids)], timeout_s=1)
    assert time.monotonic() - began < PATIENCE_S
    [pid] = await pids_of(pids, 1)
    await until(lambda: not is_alive(pid), what=f"pid {pid} is gone")


async def test_cancelling_ends_the_command_and_leaves_the_transport_usable(transport: Transport, folder: Path) -> None:
    pids = folder / "pids"
    running = asyncio.create_task(
        transport.run(["sh", "-c", 'echo $$ >"$1"; exec sleep 300', "sh", str(pids)], timeout_s=300)
    )
    [pid] = await pids_of(pids, 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: not is_alive(pid), what=f"pid {pid} is gone")
    assert (await transport.run(["echo", "still here"])).stdout == b"still here\n"


async def test_many_at_once_do_not_mix(transport: Transport) -> None:
    async def one(number: int) -> None:
        done = await transport.run(["sh", "-c", f"sleep 0.0{number % 5}; echo {number}; exit {number}"], stdin=b"x")
        assert (done.exit_status, done.stdout) == (number, f"{number}\n".encode())

    async with asyncio.TaskGroup() as group:
        for number in range(24):
            group.create_task(one(number))


async def test_a_script_gets_its_arguments_byte_for_byte(transport: Transport) -> None:
    done = await transport.run_sh('for word in "$@"; do printf "%s\\0" "$word"; done; echo "$# $-" >&2; exit 5', NASTY)
    assert done.stdout == b"".join(os.fsencode(word) + b"\0" for word in NASTY)
    assert done.stderr.startswith(f"{len(NASTY)} ".encode())
    assert done.exit_status == 5


async def test_a_script_may_be_long_and_hold_any_text(transport: Transport) -> None:
    script = "# " + "x" * 300_000 + "\ncat <<'END'\n$(not run) `nor this` é \\ '\nEND\necho done\n"
    done = await transport.run_sh(script)
    assert done.stdout == "$(not run) `nor this` é \\ '\ndone\n".encode()


async def test_a_script_runs_in_a_posix_shell_whatever_the_login_shell(transport: Transport) -> None:
    done = await transport.run_sh('x=${1#a}; case $x in bc) echo "posix $((1 + 2))" ;; esac', ["abc"])
    assert done.stdout == b"posix 3\n"


async def test_a_script_has_a_time_limit(transport: Transport) -> None:
    with pytest.raises(TimeoutError):
        await transport.run_sh("sleep 300", timeout_s=0.5)
