"""`specconsole check` about drafts: a copy that knows more positions, what a map covers, what another one shares.

Witnesses: the links and bytes on the disk, and sets made by the test itself.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from specconsole.demo.models import ModelShape
from specconsole.demo.vocabulary import build_vocabulary
from tests.cli.console import Verbs, write_profile
from tests.cli.test_check_verb import SHAPE, add_map, write_broken_draft
from tests.engines.support.checkpoints import Checkpoints, write_checkpoints

TREE = {"speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4}


@pytest.fixture
def verbs(capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(capsys)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Checkpoints:
    return write_checkpoints(tmp_path_factory.mktemp("checkpoints"), shape=ModelShape(layers=8), shards=2)


@pytest.fixture
def models(whole: Checkpoints, tmp_path: Path) -> Checkpoints:
    shutil.copytree(whole.target.parent, tmp_path / "models")
    return Checkpoints(*(tmp_path / "models" / name for name in ("target", "draft", "eagle3")))


def profile(folder: Path, models: Checkpoints, **more: Any) -> Path:
    args = {"speculative_algorithm": "EAGLE3", "max_running_requests": 48, **TREE, **more.pop("args", {})}
    shape = {"engine": "sglang", "engine_version": "0.5.17", "model": str(models.target),
             "draft_model": str(models.eagle3), "args": args, **more}  # fmt: skip
    return write_profile(folder, "s", [sys.executable, "serve.py"], **shape)


def findings(verbs: Verbs, *words: str) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in verbs("check", *words, "--json").json["findings"]}


def shorten(folder: Path, positions: int) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "max_position_embeddings": positions}))


def test_a_copy_of_the_draft_that_knows_the_context(verbs: Verbs, models: Checkpoints, tmp_path: Path) -> None:
    shorten(models.eagle3, 2048)
    path = profile(tmp_path, models)
    before = findings(verbs, str(path))["context-beyond-draft"]
    assert before["severity"] == "stop"
    copy = tmp_path / "it's a copy"
    done = verbs("check", str(path), "--write-config-copy", str(copy), "--json")
    assert (done.status, done.json["fix"]) == (0, {"draft_model": str(copy)})
    names = {one.name for one in models.eagle3.iterdir()} - {"config.json"}
    assert {one.name: os.readlink(one) for one in copy.iterdir() if one.is_symlink()} == {
        name: str(models.eagle3 / name) for name in names
    }
    changed, own = (json.loads((folder / "config.json").read_text()) for folder in (copy, models.eagle3))
    assert changed == {**own, "max_position_embeddings": SHAPE.context_tokens}
    after = findings(verbs, str(path), "--set", f"draft_model={copy}")
    assert "context-beyond-draft" not in after
    assert after["fits"]["severity"] == "ok"
    # Nothing is written over, and a console that only looks writes nothing.
    assert verbs("check", str(path), "--write-config-copy", str(copy)).status == 5
    assert verbs("--read-only", "check", str(path), "--write-config-copy", str(tmp_path / "no")).status == 5
    assert verbs("check", str(path), "--set", "context_length=1024", "--write-config-copy", str(tmp_path / "no")).status
    assert {one.name for one in tmp_path.iterdir() if "copy" in one.name or one.name == "no"} == {"it's a copy"}


def test_a_copy_that_can_not_be_made_leaves_nothing(verbs: Verbs, models: Checkpoints, tmp_path: Path) -> None:
    path = profile(tmp_path, models)
    shorten(models.eagle3, 2048)
    for folder in (tmp_path / "none" / "copy", Path("/proc/copy")):
        done = verbs("check", str(path), "--write-config-copy", str(folder))
        assert (done.status, "no copy was made" in done.problem) == (5, True)
    (models.eagle3 / "config.json").write_text("[")
    assert (
        verbs("check", str(path), "--set", "context_length=4096", "--write-config-copy", str(tmp_path / "c")).status
        == 2
    )
    assert not list(tmp_path.rglob("*specconsole-new*"))


def test_what_a_map_covers_and_shares(verbs: Verbs, models: Checkpoints, tmp_path: Path) -> None:
    """The demo's tokenizer is byte-level BPE: its merged tokens are the common ones."""
    size = build_vocabulary().size
    write_broken_draft(models.eagle3, draft_vocabulary=size - 64)
    file, empty = models.eagle3 / "model.safetensors", (models.eagle3 / "model.safetensors").read_bytes()
    add_map(file, "d2t", [64] * (size - 64))
    path = profile(tmp_path, models)
    vocabulary = json.loads((models.target / "tokenizer.json").read_text())["model"]["vocab"]
    common = [number for text, number in vocabulary.items() if len(text) > 1 and not text.startswith("<")]
    share = sum(number >= 64 for number in common[:2000]) / len(common[:2000])
    covered = findings(verbs, str(path))["coverage"]
    assert (covered["severity"], covered["text"].split(" ")[0]) == ("note", f"{share:.0%}")
    other = tmp_path / "other"
    shutil.copytree(models.eagle3, other)
    (other / "model.safetensors").write_bytes(empty)
    add_map(other / "model.safetensors", "d2t", [0] * (size - 65) + [64])
    both = len({*range(64, size)} & {*range(size - 65), size - 1})
    shared = findings(verbs, str(path), "--compare-draft", str(other))["overlap"]
    assert (shared["severity"], f"{both} of its {size - 64} tokens" in shared["text"]) == ("note", True)
    assert "nothing to compare" in findings(verbs, str(path), "--compare-draft", str(models.draft))["overlap"]["text"]


def test_what_forbids_a_start_is_mended_by_the_settings_that_are_offered(
    verbs: Verbs, models: Checkpoints, tmp_path: Path
) -> None:
    shorten(models.eagle3, 2048)
    path = profile(tmp_path, models, args={"speculative_eagle_topk": 4, "page_size": 64, "tp": 1, "pp": 2})
    done = verbs("check", str(path), "--json")
    assert (done.status, done.json["fix_is_whole"]) == (1, True)
    words = [word for key, value in done.json["fix"].items() for word in ("--set", f"{key}={json.dumps(value)}")]
    assert verbs("check", str(path), *words).status in (0, 6)
    # As it is printed for a person, through a real shell.
    line = next(one for one in verbs("check", str(path)).out.splitlines() if one.startswith("mended: "))
    assert verbs(*shlex.split(line)[2:]).status in (0, 6)
