"""A launch that waits for its turn outlives the console that queued it. Witness: /proc and the socket itself."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.cli.console import Verbs, start_console, write_profile
from tests.support.fixtures_gpus import FakeGpus
from tests.support.victims import victim_argv
from tests.support.waiting import all_pids, environ_of, wait_until


def marked(launch_id: str) -> list[int]:
    return [pid for pid in all_pids() if environ_of(pid).get(b"SPECCONSOLE_LAUNCH") == launch_id.encode()]


def test_the_console_is_killed_while_it_waits_and_the_server_comes_all_the_same(
    tmp_path: Path, isolated_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs = Verbs(capsys)
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        path = write_profile(tmp_path, "later", victim_argv("--port", "{port}"), port=port)
        # Without waiting it is refused, and that says who holds the port.
        assert verbs("launch", str(path)).status == 5
        console = start_console("launch", str(path), "--when-free", "--look-every", "0.2", "--wait")
        tickets = lambda: list(isolated_home.glob(".local/state/specconsole/queue/*/0*"))  # noqa: E731
        wait_until(tickets, what="it stands in the queue")
        console.kill()
        console.communicate()
        [queued] = verbs("status", "--json").json
        launch_id = queued["launch_id"]
        assert (queued["state"], queued["age_s"], queued["exit_status"]) == ("queued", None, None)
        assert queued["waiting"]["needs"] == [f"port {port}"]
        assert len(marked(launch_id)) >= 1
        reason = lambda: verbs("status", "--json").json[0]["waiting"]["reasons"]  # noqa: E731
        wait_until(reason, what="it says for whom")
        assert f"port {port} is held by pid" in verbs("status").out
    ready = lambda: b"running" in (isolated_home / log).read_bytes()  # noqa: E731
    log = Path(queued["log_path"]).relative_to(isolated_home)
    wait_until(ready, what="the server was started with no console there")
    with socket.create_connection(("127.0.0.1", port)):
        pass
    [running] = verbs("status", "--json").json
    assert running["state"] in ("starting", "answers")
    assert running["waiting"] is None
    assert verbs("stop", launch_id).status == 0
    assert marked(launch_id) == []


def test_stop_is_how_waiting_is_called_off(
    tmp_path: Path, fake_gpus: FakeGpus, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs = Verbs(capsys)
    fake_gpus.set(gpus=[{"index": 0}, {"index": 1}])  # the GPU tool is a simulated one
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        path = write_profile(tmp_path, "later", victim_argv(), port=port, env={"CUDA_VISIBLE_DEVICES": "1"})
        done = verbs("launch", str(path), "--when-free", "--json")
        [view] = done.json
        assert view["state"] == "queued"
        assert view["waiting"]["needs"] == ["GPU 1", f"port {port}"]
        stopped = verbs("stop", "--all", "--json")
        assert (stopped.status, stopped.json["alive"]) == (0, 0)
    assert marked(view["launch_id"]) == []
    [ended] = verbs("status", "--all", "--json").json
    assert (ended["state"], ended["exit_status"]) == ("stopped", None)
