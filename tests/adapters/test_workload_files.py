"""Workload files: every shipped one is read; every mistake is named with file, line and key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specconsole.adapters.workload_files import WorkloadFiles, read_prompts
from specconsole.assets import shipped_files, shipped_folder
from specconsole.core.measuring.workload import build_bodies
from specconsole.errors import BadInputError, NotFoundError


def test_every_shipped_workload_gives_bodies() -> None:
    files = WorkloadFiles([shipped_folder("profiles/workloads")])
    assert set(files.paths()) == set(shipped_files("profiles/workloads"))
    for name in files.paths():
        workload, prompts = files.read(name)
        bodies = build_bodies(workload, prompts, model="m", count=50, engine="vllm")
        assert len({json.dumps(b) for b in bodies}) == 50, name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("concurency = [1]", "w.toml:1: `concurency` is not a known key (try: did you mean `concurrency`?)"),
        ('kind = "chat"\nconcurrency = ["a"]', "w.toml:2: `concurrency`"),
        ("output_tokens = [9, 3]", "w.toml:1: `output_tokens` must be a range"),
        ("concurrency = [0]", "w.toml:1: `concurrency` must be from 1"),
        ("[sampling]\ntemprature = 1.0", "did you mean `temperature`"),
        ('kind = "poetry"', "one of"),
        ('kind = "file"', "`prompt_file` is missing"),
        ('kind = "file"\nprompt_file = "nowhere.jsonl"', "nowhere.jsonl"),
        ("concurrency = [", "w.toml"),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "w.toml").write_text(text)
    files = WorkloadFiles([tmp_path, shipped_folder("profiles/workloads")])
    with pytest.raises(BadInputError) as caught:
        files.read(str(tmp_path / "w.toml"))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(NotFoundError, match="did you mean maths"):
        WorkloadFiles([shipped_folder("profiles/workloads")]).read("math")


@pytest.mark.parametrize(
    "text",
    [
        "first\n\nsecond\n",
        '{"prompt": "first"}\n{"messages": [{"role": "user", "content": "second"}]}\n',
        '["first", {"prompt": "second"}]',
        '[{"conversations": [{"from": "human", "value": "first"}, {"from": "gpt", "value": "x"}]},'
        ' {"conversations": [{"from": "gpt", "value": "x"}]},'
        ' {"conversations": [{"from": "user", "value": "second"}]}]',
    ],
)
def test_prompt_files_of_every_form(tmp_path: Path, text: str) -> None:
    (tmp_path / "p").write_text(text)
    found = read_prompts(tmp_path / "p")
    assert [p.text or p.messages[0]["content"] for p in found] == ["first", "second"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"prompt": "a"}\n{"prompt": \n', "p:2"),
        (b'{"text": "a"}\n', "p:1: has neither"),
        (b"[1]", "entry 1"),
        (b"", "holds no prompt"),
        (b"caf\xe9", "not UTF-8"),
    ],
)
def test_an_unreadable_prompt_names_file_and_line(tmp_path: Path, data: bytes, says: str) -> None:
    (tmp_path / "p").write_bytes(data)
    with pytest.raises(BadInputError) as caught:
        read_prompts(tmp_path / "p")
    assert says in str(caught.value)
