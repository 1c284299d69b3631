"""Looks for planted keys wherever this console shows, copies, keeps or sends something."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from specconsole.core.measuring.run_plan import BenchOrder
from specconsole.wiring import Console, state_folder
from tests.engines import watched, witness
from tests.engines.engines import REPOSITORY
from tests.support.tmux import Tmux

KEY = "planted-5d0c9f7a1e-key"
TOKEN = "hf_" + "Q7w2E9r4T6y8U1i3O5p0A2s4D6f8G1h3J5"
"""As long as Hugging Face's."""
SECRETS = (KEY, TOKEN)
_COPIED = re.compile(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)(?:\x1b\\|\x07)")

WORKLOAD = """
kind = "chat"
output_tokens = 16
ignore_eos = true
concurrency = [1]
requests_per_concurrency = 2
least_requests = 2
"""


def in_files(*folders: Path) -> dict[str, str]:
    """File -> the secret that stands in it."""
    return {
        str(path): secret
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
        for secret in SECRETS
        if secret.encode() in path.read_bytes()
    }


async def kept(console: Console, start: watched.Start, *, printed: tuple[str, ...]) -> None:
    """Board, plans, the console's own folder, the launch's folder; `printed`: what the server's own log does hold."""
    await console.supervisor.find(start.launch_id).account.settled()
    view = console.board.launches[start.launch_id]
    assert view.account is not None
    assert view.log_path is not None
    assert view.spool_path is not None
    on_host = await asyncio.to_thread(Path(view.log_path).read_bytes)
    spool = await asyncio.to_thread(Path(view.spool_path).read_bytes)
    for secret in SECRETS:
        assert (secret.encode() in on_host) == (secret in printed), "the host's own file stays as the server wrote it"
    for secret in printed:
        at = on_host.index(secret.encode())
        assert spool[at : at + len(secret)] == b"*" * len(secret), "masked at equal length, at the same offset"
    line = await asyncio.to_thread(Path(f"/proc/{start.session}/cmdline").read_bytes)
    assert KEY.encode() in line, "the trap: it stands in the process table"
    plan = await console.commands.stop_plan(start.launch_id)
    assert plan.processes
    told = repr(plan) + repr(view) + json.dumps(view.reading.to_json() if view.reading is not None else None)
    assert not [secret for secret in SECRETS if secret in told]
    assert await asyncio.to_thread(in_files, state_folder()) == {}
    folder = Path(view.log_path).parent
    others = {path: found for path, found in in_files(folder).items() if path != view.log_path}
    assert others == {}, "beside the log, the launch's folder on the host holds none"


async def sent(console: Console, start: watched.Start, folder: Path) -> None:
    """Evidence of a hang, a measured result and its exports."""
    evidence = await console.commands.collect_evidence(start.launch_id, lambda text: None)
    texts = await asyncio.to_thread(lambda: "".join(path.read_text() for path in evidence.iterdir()))
    assert "--api-key ***" in texts, "the command line is in it, starred"
    assert await asyncio.to_thread(in_files, evidence) == {}

    workload = folder / "few.toml"
    workload.write_text(WORKLOAD)
    prepared, host = await console.benches.prepare_launch(start.launch_id, BenchOrder(str(workload), repeats=1))
    bench_id = await console.benches.start(prepared, host)
    result = await console.benches.wait(bench_id)
    assert result.ended == "done", "it had the key"
    assert sum(point.metrics.succeeded for point in result.points) == 2
    for form in ("markdown", "csv", "json", "html"):
        argv = [sys.executable, "-m", "specconsole", "results", "export", bench_id, "--format", form]
        done = await asyncio.to_thread(
            subprocess.run, argv, cwd=REPOSITORY, capture_output=True, timeout=120, check=True
        )
        assert len(done.stdout) > 100
        assert not [secret for secret in SECRETS if secret.encode() in done.stdout + done.stderr], form
    assert await asyncio.to_thread(in_files, state_folder()) == {}


def shown(
    start_tmux: Callable[..., Tmux], host: str, folder: Path, name: str, *, held: str, printed: tuple[str, ...]
) -> None:
    """A window of somebody else, who knows none of the values: its screens, its clipboard, its files.

    `held`: a word of the log's line that holds the key; all of the log is copied.
    """
    (folder / "config/specconsole").mkdir(parents=True)
    (folder / "config/specconsole/hosts.toml").write_text(f"[hosts.{host}]\n")
    environment = {
        "PYTHONPATH": str(REPOSITORY), "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_STATE_HOME": str(folder / "state"), "PLANTED": "", "PLANTED_TOKEN": "",
    }  # fmt: skip
    argv = [sys.executable, "-m", "specconsole"]
    tmux = start_tmux(argv, columns=150, rows=44, cwd=REPOSITORY, environment=environment)
    tmux.wait_for(f"{name} @ {host}", timeout_s=120)
    tmux.wait_for("answers", timeout_s=120)
    screens = []
    for key in ("1", "w", "g", "PageDown", "i", "Escape"):
        tmux.keys(key)
        screens.append(_settled(tmux))
    tmux.keys("K")
    screens.append(tmux.wait_for(f"stop {name}?", timeout_s=60))
    tmux.keys("Escape")
    witness.wait_for(lambda: f"stop {name}?" not in tmux.screen(), 60, "the question is gone")
    for keys in (("1",), ("g",), ("s",), ("-N", "60", "PageDown"), ("y",)):
        tmux.keys(*keys)
        screens.append(_settled(tmux))
    witness.wait_for(lambda: _COPIED.search(tmux.raw()) is not None, 120, "the log is copied")
    raw = tmux.raw()
    copied = b"".join(base64.b64decode(part) for part in _COPIED.findall(raw))
    assert held.encode() in copied, copied[:2000]
    everything = raw + copied + "".join(screens).encode()
    assert not [secret for secret in SECRETS if secret.encode() in everything]
    for secret in printed:
        assert b"*" * len(secret) in copied
    tmux.keys("q")
    tmux.exit_status(timeout_s=60)
    found = in_files(folder / "state")
    assert found == {}, found


def _settled(tmux: Tmux) -> str:
    """The screen once it stands still."""
    seen, end = tmux.screen(), time.monotonic() + 15
    while time.monotonic() < end:
        time.sleep(0.4)
        now = tmux.screen()
        if now == seen:
            break
        seen = now
    return seen
