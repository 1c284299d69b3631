"""Probes of a profile on a real process that prints as a patched server does. Witness: its log, read by the test."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from tests.cli.console import Verbs, write_profile
from tests.support.waiting import wait_until

PATCHED = """
import sys, time
for n in range(300):
    stamp = f"[2026-11-29 14:02:{n // 10:02d} TP0]"
    print(f"{stamp} [EAGLE3_PROFILE] draft {4 + n % 7}.25 ms verify {9 + n % 3}.5 ms", flush=True)
    if n % 50 == 0: print("nothing of interest 12.5 ms", flush=True)
print("[EAGLE3_PROFILE] draft nan ms verify none", flush=True)
time.sleep(600)
"""
PROBES = {
    "draft_ms": r"\[EAGLE3_PROFILE\] draft (\S+) ms",
    "verify_ms": r"\[EAGLE3_PROFILE\] .* verify (\d+\.?\d*) ms",
    "never": r"not printed (\d+)",
}


@pytest.fixture
def verbs(capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(capsys)


def numbers(log: bytes) -> list[float]:
    return [float(found) for found in re.findall(rb"draft (\d+\.\d+) ms", log)]


def test_numbers_of_a_real_log_are_read_kept_and_shown(verbs: Verbs, tmp_path: Path, isolated_home: Path) -> None:
    path = write_profile(tmp_path, "patched", [sys.executable, "-u", "-c", PATCHED], probes=PROBES)
    launch_id = verbs("launch", str(path)).out.strip()
    [view] = verbs("status", "--json").json
    log = Path(view["log_path"])
    wait_until(lambda: b"verify none" in log.read_bytes(), what="it has printed all")
    witness = numbers(log.read_bytes())
    assert len(witness) == 300
    [view] = verbs("status", "--json").json
    shown = {probe["name"]: probe for probe in view["probes"]}
    assert list(shown) == list(PROBES)
    draft = shown["draft_ms"]
    assert (draft["count"], draft["unreadable"], draft["last"]) == (300, 1, witness[-1])
    assert draft["mean"] == pytest.approx(sum(witness) / 300)
    assert shown["never"]["count"] == 0
    assert shown["never"]["mean"] is None
    done = verbs("logs", launch_id, "--probe", "draft_ms")
    rows = [line.split("\t") for line in done.out.splitlines()[1:]]
    assert [float(row[4]) for row in rows] == witness
    data = log.read_bytes()
    for row in rows[::37]:
        assert numbers(data[int(row[3]) :].split(b"\n")[0]) == [float(row[4])]
    # The log's own stamps: thirty seconds from the first to the last.
    assert (float(rows[0][1]), float(rows[-1][1])) == (0.0, 29.0)
    assert "300 numbers" in done.err
    both = [json.loads(line) for line in verbs("logs", launch_id, "--probe", "all", "--json").out.splitlines()]
    assert {one["probe"] for one in both} == {"draft_ms", "verify_ms"}
    wrong = verbs("logs", launch_id, "--probe", "draft")
    assert (wrong.status, "did you mean draft_ms" in wrong.err) == (4, True)
    # A console that has nothing of it kept reads it again, and gets the same.
    shutil.rmtree(isolated_home / ".local/state/specconsole/spool")
    again = verbs("logs", launch_id, "--probe", "draft_ms").out.splitlines()[1:]
    assert [line.split("\t")[3:5] for line in again] == [row[3:5] for row in rows]
    assert verbs("stop", launch_id).status == 0
    verbs("status", "--all")
    with sqlite3.connect(isolated_home / ".local/state/specconsole/store.sqlite") as store:
        kept = dict(store.execute("SELECT record_id, body FROM records WHERE kind = 'probe'").fetchall())
    store.close()
    assert set(kept) == {f"{launch_id}/draft_ms", f"{launch_id}/verify_ms"}
    assert json.loads(kept[f"{launch_id}/draft_ms"])["count"] == 300


def test_a_bad_probe_is_refused_with_its_line(verbs: Verbs, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("engine = \"other\"\ncommand = [\"x\"]\n\n[probes]\nok = 'foo (\\d+)'\nslow = 'foo (a+)+'\n")
    done = verbs("profiles", "show", str(path))
    assert done.status == 2
    assert f"{path}:6: `probes.slow` repeats more than one character" in done.err
    path.write_text('engine = "other"\ncommand = ["x"]\nprobes = {n = 5}\n')
    assert "`probes.n` must be a regular expression in quotes" in verbs("profiles", "show", str(path)).err


def test_probes_are_inherited_one_by_one(verbs: Verbs, tmp_path: Path) -> None:
    write_profile(tmp_path, "base", ["x"], probes={"a": r"foo (\d+)", "b": r"bar (\d+)"})
    child = tmp_path / "child.toml"
    child.write_text('extends = "./base.toml"\nunset = ["probes.a"]\n[probes]\nc = \'baz (\\d+)\'\n')
    shown = verbs("profiles", "show", str(child), "--json").json
    assert shown["probes"] == {"b": r"bar (\d+)", "c": r"baz (\d+)"}
