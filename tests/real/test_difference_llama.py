"""Two real llama.cpp servers with different flags: what `diff` says, beside what /proc and the servers say."""

from __future__ import annotations

import json
import re
import shutil
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from specconsole.demo.models import ModelFiles
from tests.cli.console import Verbs, write_profile
from tests.support.llama import MODULE

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


@pytest.fixture
def verbs(capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(capsys)


def words_of(view: dict[str, Any]) -> list[str]:
    """The server's words as the kernel has them."""
    record = (Path(view["log_path"]).parent / "process").read_text()
    pid = re.search(r"pid=(\d+)", record)
    assert pid is not None
    return Path(f"/proc/{pid[1]}/cmdline").read_bytes().decode().split("\0")[:-1]


def flag_values(words: list[str]) -> dict[str, tuple[str, ...]]:
    """Flag -> the words behind it, made without the code under test."""
    found: dict[str, tuple[str, ...]] = {}
    name = ""
    for word in words[3:]:  # python -m module
        if word.startswith("-"):
            name, found[word] = word, ()
        else:
            found[name] = (*found[name], word)
    return found


def props(port: int) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/props", timeout=10) as answer:
        return json.loads(answer.read())


def test_diff_says_what_the_kernel_and_the_servers_say(
    verbs: Verbs, tmp_path: Path, llama_models: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = {"engine": "llamacpp", "grace_s": 10, "model": str(llama_models.target)}
    command = [sys.executable, "-m", MODULE]
    one = write_profile(tmp_path, "plain", command, **shared, args={"ctx_size": 512, "parallel": 2})
    other = write_profile(
        tmp_path, "drafted", command, **shared, draft_model=str(llama_models.draft),
        args={"ctx_size": 1024, "parallel": 2, "spec_draft_n_max": 3}, env={"OMP_NUM_THREADS": "1"},
        secrets={"MY_API_KEY": "env:MY_KEY"},
    )  # fmt: skip
    monkeypatch.setenv("MY_KEY", "not-to-be-shown-anywhere")
    done = verbs("launch", str(one), str(other), "--wait", "--json")
    assert done.status == 0, done.err
    left, right = done.json
    try:
        told = verbs("diff", left["launch_id"], "drafted", "--json")
        assert told.status == 1
        rows = {(row["section"], row["key"]): row for row in told.json["rows"]}
        flags = {key: row for (section, key), row in rows.items() if section == "flags"}
        witness = flag_values(words_of(left)), flag_values(words_of(right))
        differing = {k for k in {*witness[0], *witness[1]} if witness[0].get(k) != witness[1].get(k)}
        assert {key for key, row in flags.items() if row["differs"]} == differing
        assert differing == {"-md", "--ctx-size", "--spec-draft-n-max", "--port"}
        for key in differing:
            told_words = [flags[key][side] for side in ("left", "right")]
            assert told_words == [" ".join(side[key]) if key in side else None for side in witness]
        assert {key for key, row in flags.items() if not row["differs"]} - {"command"} == set(witness[0]) - differing

        settings = {key: row for (section, key), row in rows.items() if section == "settings"}
        slots = [props(view["port"]) for view in (left, right)]
        contexts = [one["default_generation_settings"]["n_ctx"] for one in slots]
        assert [settings["context"][side] for side in ("left", "right")] == contexts
        assert settings["context"]["differs"] is (contexts[0] != contexts[1])
        assert settings["running cap"]["left"] == slots[0]["total_slots"]
        assert settings["running cap"]["differs"] is False
        assert settings["speculation"]["differs"] is True

        environment = {key: row for (section, key), row in rows.items() if section == "environment"}
        assert environment["OMP_NUM_THREADS"]["left"] is None
        assert environment["OMP_NUM_THREADS"]["right"] == "1"
        assert environment["MY_API_KEY"]["right"] == "***"
        assert rows["versions", "version"]["differs"] is False
        assert rows["versions", "version"]["left"] == slots[0]["build_info"]
        answered = rows["phases", "until it answered"]
        assert [answered["left"], answered["right"]] == pytest.approx(
            [left["answered_after_s"], right["answered_after_s"]], abs=0.02
        )
        memory = next(row for (section, _), row in rows.items() if section == "memory")
        assert (memory["differs"], memory["left_known"]) == (None, False), "no GPU here: unknown, and not equal"

        text = verbs("diff", "plain", "drafted").out
        assert re.search(r"^! --ctx-size +512 +1024$", text, re.MULTILINE)
        assert "--parallel" not in text
        assert "--parallel" in verbs("diff", "plain", "drafted", "--all").out
        assert "not-to-be-shown" not in text + told.out

        listed = verbs("history", "ctx-size", "1024", "--json").json["launches"]
        assert [row["launch_id"] for row in listed] == [right["launch_id"]]
        assert (listed[0]["state"], listed[0]["outcome"]) == ("runs", None)
    finally:
        for view in (left, right):
            assert verbs("stop", view["launch_id"]).status == 0
    # After the stop, and with the folder of one gone, it says the same of what it kept.
    assert [row["outcome"] for row in verbs("history", "--json").json["launches"]] == ["stopped", "stopped"]
    shutil.rmtree(Path(right["log_path"]).parent)
    again = verbs("diff", "plain", "last", "--json").json
    kept = {row["key"]: row for row in again["rows"] if row["section"] == "flags" and row["differs"]}
    assert kept.keys() == differing
    assert any("is gone from local" in note for note in again["notes"])
    contexts_kept = next(row for row in again["rows"] if (row["section"], row["key"]) == ("settings", "context"))
    assert [contexts_kept["left"], contexts_kept["right"]] == contexts
