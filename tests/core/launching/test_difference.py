"""Two launches side by side: what differs, what is the same, and what nobody can tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from specconsole.core.launching.annotations import Annotations, Note
from specconsole.core.launching.difference import Difference, difference
from specconsole.core.launching.difference_side import LaunchSide, flags_of, side_of
from specconsole.core.launching.difference_text import left_text, right_text, summary
from specconsole.core.launching.effective import Account, Effective, Speculation
from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.measuring.difference_results import result_rows, results_of
from specconsole.core.records import StoredLaunch
from specconsole.core.views.history_facts import masked_spec, row_of, secret_name
from tests.core.measuring.build import point, result

SIDE = LaunchSide("L1", "chain", "gpu-a", "sglang", "stopped")


def rows(found: Difference, section: str) -> dict[str, tuple[Any, Any, bool | None]]:
    return {row.key: (row.left, row.right, row.differs) for row in found.rows if row.section == section}


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ("python3 -u -m sglang.launch_server --tp 8 --enable-x -c 3",
         {"command": "python3 -u -m sglang.launch_server", "--tp": "8", "--enable-x": True, "-c": "3"}),
        ("vllm serve Qwen/Qwen3 --port=8000 --sizes 1 2 4 --seed -1",
         {"command": "vllm serve Qwen/Qwen3", "--port": "8000", "--sizes": "1 2 4", "--seed": "-1"}),
        ("llama-server -m a.gguf -md d.gguf --draft-max 4",
         {"command": "llama-server", "-m": "a.gguf", "-md": "d.gguf", "--draft-max": "4"}),
        ("x --env A=1 --env B=2", {"command": "x", "--env": "A=1 B=2"}),
        ('x --speculative-config {"method":"eagle3","num_speculative_tokens":3}',
         {"command": "x", "--speculative-config.method": "eagle3", "--speculative-config.num_speculative_tokens": 3}),
        ("x", {"command": "x"}),
        ("", {}),
    ],
)  # fmt: skip
def test_words_as_flags(words: str, flags: dict[str, Any]) -> None:
    assert flags_of(words.split()) == flags


def test_absent_is_a_difference_and_unknown_is_none() -> None:
    left = replace(SIDE, flags={"--tp": "8", "--x": True}, settings={"a": 1, "b": 0.9}, environment={"A": "1"})
    right = replace(SIDE, launch_id="L2", flags={"--tp": "8"}, settings=None, environment={"A": "1", "B": "2"})
    found = difference(left, right)
    assert rows(found, "flags") == {"--tp": ("8", "8", False), "--x": (True, None, True)}
    assert rows(found, "settings") == {"a": (1, None, None), "b": (0.9, None, None)}
    assert rows(found, "environment") == {"A": ("1", "1", False), "B": (None, "2", True)}
    assert {row.key for row in found.shown()} >= {"--x", "a", "b", "B"}
    assert "--tp" not in {row.key for row in found.shown()}
    assert "--tp" in {row.key for row in found.shown(everything=True)}
    texts = {row.key: (left_text(row), right_text(row)) for row in found.rows}
    assert texts["--x"] == ("on", "–")
    assert texts["a"] == ("1", "unknown")
    both = difference(SIDE, replace(SIDE, launch_id="L2"))
    for section in ("flags", "settings", "versions", "environment", "phases", "memory"):
        assert {one[2] for one in rows(both, section).values()} == {None}, section


def test_two_writings_of_one_setting_are_the_same() -> None:
    left = replace(SIDE, settings={"tp_size": 8, "backend": "Triton", "sizes": [4], "share": 0.90})
    right = replace(SIDE, settings={"tp_size": "8", "backend": "triton", "sizes": 4, "share": 0.9})
    assert {one[2] for one in rows(difference(left, right), "settings").values()} == {False}


def test_an_account_that_names_some_settings_only_leaves_the_others_unknown() -> None:
    left = replace(SIDE, settings={"a": 1}, settings_complete=False)
    right = replace(SIDE, settings={"b": 1}, settings_complete=False)
    assert rows(difference(left, right), "settings") == {"a": (1, None, None), "b": (None, 1, None)}


@pytest.mark.parametrize(
    ("left", "right", "differs"),
    [(100.0, 109.0, False), (100.0, 112.0, True), (1.0, 1.4, False), (1.0, 1.6, True), (0.0, 0.0, False)],
)
def test_durations_differ_from_half_a_second_and_a_tenth_on(left: float, right: float, differs: bool) -> None:
    found = difference(replace(SIDE, phases_s={"weights": left}), replace(SIDE, phases_s={"weights": right}))
    [row] = [row for row in found.rows if row.key == "weights"]
    assert row.differs is differs
    assert bool(row.remark) is differs


def test_memory_differs_from_256_mib_on() -> None:
    gib = 1 << 30
    left = replace(SIDE, memory_bytes={"GPU 0 taken": 90 * gib, "GPU 1 taken": 5 * gib})
    right = replace(SIDE, memory_bytes={"GPU 0 taken": 90 * gib + (200 << 20), "GPU 1 taken": 6 * gib})
    found = difference(left, right)
    assert {key: one[2] for key, one in rows(found, "memory").items()} == {"GPU 0 taken": False, "GPU 1 taken": True}
    assert [left_text(row) for row in found.rows if row.key == "GPU 1 taken"] == ["5.00 GiB"]


def stored(**facts: Any) -> StoredLaunch:
    return StoredLaunch("L1", "gpu-a", "/l/L1", "chain", "sglang", "ada@desk", 10.0, 70.0, "stopped", facts)


def test_a_side_from_what_the_store_keeps() -> None:
    timeline = [
        {"phase": "starting", "part": None, "start_s": 0.0, "seconds": 9.0},
        {"phase": "weights", "part": "target", "start_s": 10.0, "seconds": 1.5},
        {"phase": "graph-capture", "part": "target", "start_s": 15.0, "seconds": 4.0},
        {"phase": "graph-capture", "part": "target", "start_s": 20.0, "seconds": None},
        {"phase": "ready", "part": None, "start_s": 31.0, "seconds": 5.0},
        {"phase": "graph-capture", "part": None, "start_s": 40.0, "seconds": 1.0},
    ]
    gpus = [{"index": 0, "uuid": "G", "used_bytes": 5, "total_bytes": 100, "pids": []}]
    launch = stored(
        asked={"argv": ["x", "--a", "1"], "env": {"PYTHONUNBUFFERED": "1", "B": "2"}, "working_dir": "/w"},
        timeline=timeline, basis="whole", answered_after_s=33.0, server={"version": "0.5.17"},
        memory=[{"moment": "before-launch", "at_s": 1.0, "gpus": gpus},
                {"moment": "answers", "at_s": 2.0, "gpus": [{**gpus[0], "used_bytes": 65}]}],
    )  # fmt: skip
    account = Account(Effective({"tp_size": 8}, Speculation(True, "EAGLE3", 3), context=4096, build={"torch": "2.9"}))
    row = replace(row_of(launch), annotations=Annotations((Note("1", 1.0, "ada", "warm"),), ("best",)))
    side = side_of(launch, row, account)
    assert side.flags == {"command": "x", "--a": "1"}
    assert side.environment == {"B": "2", "working folder": "/w"}
    assert side.phases_s == {"starting": 10.0, "weights (target)": 5.0, "graph-capture (target)": 16.0}
    assert side.memory_bytes == {"GPU 0 before": 5, "GPU 0 answering": 65, "GPU 0 taken": 60}
    assert side.settings is not None
    assert (side.settings["speculation"], side.settings["context"], side.settings["tp_size"]) == (
        "EAGLE3, 3 steps",
        4096,
        8,
    )
    assert side.versions == {"torch": "2.9", "version": "0.5.17"}
    assert (side.answered_after_s, side.tags, side.note) == (33.0, ("best",), "warm")
    tail = side_of(stored(timeline=timeline, basis="tail"), row, None)
    assert (tail.phases_s, tail.flags, tail.settings, tail.memory_bytes) == (None, None, None, None)


@pytest.mark.parametrize(
    "facts",
    [
        {"asked": "x", "timeline": "y", "memory": {}, "server": 1, "failure": [], "metrics": 0},
        {"asked": {"argv": None, "env": [], "tags": None}, "timeline": [1], "basis": "whole", "memory": [1, {}, None]},
        {"timeline": [{}], "basis": "whole", "answered_after_s": True},
    ],
)
def test_what_another_version_or_a_fault_wrote_is_unknown_and_no_end(facts: dict[str, Any]) -> None:
    launch = stored(**facts)
    side = side_of(launch, row_of(launch), None)
    assert side.answered_after_s is None
    assert summary(difference(side, side))


def test_what_is_kept_holds_no_secret() -> None:
    spec = LaunchSpec(
        "L1", "p", "sglang", ("x", "--api-key", "abcdefgh", "--note", "hf_abcdefghijklmnopqrstuvwxyz"),
        env={"HF_TOKEN": "short", "MAX_TOKENS": "5", "URL": "https://x?api_key=abcdefgh"},
        secret_places={"MY_KEY": "env:THERE"}, settings={"api-key": "abcdefgh", "max_total_tokens": 5, "t": ["a"]},
    )  # fmt: skip
    kept = masked_spec(spec)
    text = str(kept)
    for secret in ("abcdefgh", "hf_abc", "short", "THERE"):
        assert secret not in text
    assert kept["env"]["MAX_TOKENS"] == "5"
    assert kept["env"]["MY_KEY"] == "***"
    assert kept["settings"] == {"api-key": "***", "max_total_tokens": 5, "t": ["a"]}
    assert [secret_name(n) for n in ("hf_token", "num_tokens", "ssl-key", "OPENAI_API_KEY", "keys", "tokenizer")] == [
        True, False, True, True, True, False,
    ]  # fmt: skip


def test_results_at_equal_workload_say_what_the_noise_allows() -> None:
    left = [result("plain", [point(1, v, n) for n, v in enumerate((100.0, 101.0, 99.0))])]
    right = [
        result("drafted", [
            *[point(1, v, n, accept=2.5, launch_id="L2") for n, v in enumerate((200.0, 202.0, 198.0))],
            point(4, 300.0, accept=2.4, launch_id="L2"),
        ], speculative=True),
    ]  # fmt: skip
    found, notes = result_rows(left, right)
    said = {row.key: row for row in found}
    output = said["w C=1 output"]
    assert (output.left, output.right, output.differs) == (100.0, 200.0, True)
    assert output.remark == "2.00 times, better"
    accept = said["w C=1 accept length"]
    assert (accept.left, accept.left_known, accept.right, accept.differs) == (None, True, 2.5, True)
    assert (said["w C=4 output"].left_known, said["w C=4 output"].differs) == (False, None)
    assert notes == ()
    near = [result("again", [point(1, v, n, launch_id="L2") for n, v in enumerate((100.5, 101.5, 98.5))])]
    [same] = [row for row in result_rows(left, near)[0] if row.key == "w C=1 output"]
    assert (same.differs, "within the noise" in same.remark) == (False, True)
    other = [result("other", [point(1, 1.0)], workload_hash="else")]
    assert result_rows(left, other) == ((), ("both were measured, with no workload in common",))
    assert result_rows(left, []) == ((), ("the left one alone was measured",))
    assert result_rows([], []) == ((), ("neither was measured",))
    warm = [result("warm", [point(1, 100.0, launch_id="L2")], cache="flushed")]
    found, notes = result_rows(left, warm)
    assert found == ()
    assert notes[0].startswith("w: not compared, prefix cache")
    assert [r.points for r in results_of([*left, *right], "L2")] == [right[0].points]
