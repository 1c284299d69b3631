"""Profiles on disk: which folder wins, circles, and that hand-written files stay as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from specconsole.adapters.toml_files import ProfileFiles, project_folder
from specconsole.errors import BadInputError


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


def test_the_nearer_folder_hides_and_may_extend_what_it_hides(tmp_path: Path) -> None:
    mine, shipped = tmp_path / "mine", tmp_path / "shipped"
    write(shipped, "base", 'engine = "sglang"\n[args]\ntp_size = 1\npage_size = 1\n')
    path = write(mine, "base", 'extends = "base"\n[args]\ntp_size = 8\n')
    before = path.read_bytes()
    profile = ProfileFiles([mine, shipped]).read("base")
    assert profile.args == {"tp_size": 8, "page_size": 1}
    assert path.read_bytes() == before


def test_a_path_is_taken_from_the_files_own_folder(tmp_path: Path) -> None:
    write(tmp_path / "a", "base", 'engine = "vllm"\n')
    child = write(tmp_path / "b", "child", 'extends = "../a/base.toml"\n')
    assert ProfileFiles([]).read(str(child)).engine == "vllm"


def test_the_projects_folder_is_found_from_below(tmp_path: Path) -> None:
    folder = tmp_path / "repo" / ".specconsole" / "profiles"
    write(folder, "p", 'engine = "vllm"\n')
    (tmp_path / "repo" / "deep" / "er").mkdir(parents=True)
    assert project_folder(tmp_path / "repo" / "deep" / "er") == folder
    assert project_folder(tmp_path) is None


@pytest.mark.parametrize(
    ("files", "what", "try_"),
    [
        ({"a": "b", "b": "c", "c": "b"}, "in a circle: b -> c -> b", ""),
        ({"a": "a"}, "in a circle: a -> a", ""),
        ({"a": "bee", "bees": "x"}, "extends` names bee", "did you mean bees"),
        ({"a": "./none.toml"}, "which is no file", ""),
    ],
)
def test_what_can_not_be_extended_is_named(tmp_path: Path, files: dict[str, str], what: str, try_: str) -> None:
    for name, parent in files.items():
        write(tmp_path, name, f'engine = "vllm"\nextends = "{parent}"\n')
    with pytest.raises(BadInputError) as caught:
        ProfileFiles([tmp_path]).read("a")
    assert what in caught.value.what
    assert try_ in caught.value.try_
    assert caught.value.where.endswith(".toml:2")
