"""`specconsole profiles`: what it prints and writes, checked by reading the files and launching lines ourselves."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path

import pytest

from tests.cli.console import Verbs


@pytest.fixture
def verbs(capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(capsys)


@pytest.fixture
def mine(isolated_home: Path) -> Path:
    folder = isolated_home / ".config" / "specconsole" / "profiles"
    folder.mkdir(parents=True)
    return folder


def test_list_names_shipped_own_and_broken_ones(verbs: Verbs, mine: Path) -> None:
    (mine / "broken.toml").write_text('engine = "sglang"\n[args\n')
    rows = {row["name"]: row for row in verbs("profiles", "list", "--json").json}
    assert f"{mine}/broken.toml:2" in rows["broken"]["problem"]
    assert rows["sglang-eagle3-tree"]["extends"] == ["sglang-eagle3-chain", "sglang-baseline"]
    plain = verbs("profiles")
    assert (plain.status, "BROKEN: " in plain.out) == (0, True)


def test_show_prints_a_file_that_means_the_same(verbs: Verbs, mine: Path) -> None:
    (mine / "odd.toml").write_text(
        'extends = "vllm-eagle3"\n[env]\nX = "$${HOME}"\n[hosts.big.args]\nmax_model_len = 5\n'
    )
    (mine / "again.toml").write_text(verbs("profiles", "show", "odd").out)
    assert verbs("profiles", "diff", "odd", "again").status == 0
    assert verbs("profiles", "show", "odd", "--host", "big", "--json").json["args"]["max_model_len"] == 5
    assert "${HOME}" in verbs("profiles", "show", "odd", "--json").json["env"]["X"]
    (mine / "keyed.toml").write_text('engine = "vllm"\n[secrets]\nHF_TOKEN = "env:HF_TOKEN"\n')
    assert 'HF_TOKEN = "env:HF_TOKEN"' in verbs("profiles", "show", "keyed").out


def test_check_says_what_and_exits_by_severity(verbs: Verbs, mine: Path) -> None:
    (mine / "bad.toml").write_text('extends = "sglang-eagle3-chain"\nunset = ["args.speculative_eagle_topk"]\n')
    (mine / "typo.toml").write_text('extends = "sglang-baseline"\n[args]\nmem_fraction_statik = 0.8\n')
    (mine / "warn.toml").write_text('extends = "sglang-eagle3-chain"\n[args]\nspeculative_num_draft_tokens = 8\n')
    (mine / "broken.toml").write_text('extends = "nothing"\n')
    assert verbs("profiles", "check", "sglang-baseline").status == 0
    bad = verbs("profiles", "check", "bad")
    assert (bad.status, "speculative_eagle_topk missing" in bad.out) == (1, True)
    typo = verbs("profiles", "check", "typo", "--json")
    [finding] = typo.json[0]["findings"]
    assert (typo.status, finding["severity"]) == (1, "stop")
    assert finding["fix"] == {"mem_fraction_statik": None, "mem_fraction_static": 0.8}
    warn = verbs("profiles", "check", "warn")
    assert (warn.status, "sets draft tokens to steps + 1 = 4" in warn.out) == (6, True)
    broken = verbs("profiles", "check", "broken", "bad")
    assert (broken.status, f"{mine}/broken.toml:1" in broken.out) == (2, True)


def test_diff_names_every_setting(verbs: Verbs) -> None:
    done = verbs("profiles", "diff", "sglang-eagle3-chain", "sglang-eagle3-tree", "--json")
    assert done.status == 1
    assert {one["key"]: (one["left"], one["right"]) for one in done.json} == {
        "args.speculative_num_steps": (3, 4),
        "args.speculative_eagle_topk": (1, 4),
        "args.speculative_num_draft_tokens": (4, 16),
    }


def test_new_writes_once_and_only_what_can_be_read(verbs: Verbs, mine: Path) -> None:
    done = verbs(
        "profiles", "new", "fast", "--extends", "sglang-eagle3-chain", "--set", "tp_size=8", "--set", "port=3000"
    )
    assert done.out.strip() == str(mine / "fast.toml")
    assert tomllib.loads((mine / "fast.toml").read_text()) == {
        "extends": "sglang-eagle3-chain", "args": {"tp_size": 8}, "port": 3000,
    }  # fmt: skip
    before = (mine / "fast.toml").read_bytes()
    assert verbs("profiles", "new", "fast", "--engine", "vllm").status == 5
    assert (mine / "fast.toml").read_bytes() == before
    assert verbs("profiles", "new", "x", "--extends", "sglang-basline").status == 4
    assert verbs("profiles", "new", "y", "--engine", "vllm", "--set", "port=x").status == 2
    assert verbs("profiles", "new", "../z", "--engine", "vllm").status == 2
    assert [path.name for path in mine.iterdir()] == ["fast.toml"]


def test_an_imported_command_launches_as_it_stood(verbs: Verbs, mine: Path) -> None:
    pasted = (
        "NCCL_ALGO=Tree HF_TOKEN=hf_abc nohup python -m sglang.launch_server --model-path '/models/a b' "
        "--served-model-name '${name}' --tp 8 --port 30000 > log 2>&1 &"
    )
    done = verbs("profiles", "import", pasted, "--name", "pasted")
    assert (done.status, "HF_TOKEN looks like a secret" in done.err) == (0, True)
    shown = verbs("profiles", "show", "pasted", "--json").json
    words = shlex.split(shown["command_line"])
    assert words[:3] == ["python", "-m", "sglang.launch_server"]
    asked = dict(zip(words[3::2], words[4::2], strict=True))
    assert asked == {"--model-path": "/models/a b", "--served-model-name": "${name}", "--tp": "8",
                     "--host": "127.0.0.1", "--port": "30000"}  # fmt: skip
    assert (shown["env"], shown["secrets"]) == ({"NCCL_ALGO": "Tree"}, {"HF_TOKEN": "env:HF_TOKEN"})
    assert b"hf_abc" not in (mine / "pasted.toml").read_bytes()
    assert verbs("profiles", "import", "ls -l").status == 2
