"""Flags out of real `--help` texts."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

import specconsole
from specconsole.core.launching.help_text import FlagCatalogue, check_words, parse_help

HELP = Path(specconsole.__file__).parent / "catalogues"


@pytest.fixture(scope="module")
def sglang() -> tuple[str, FlagCatalogue]:
    text = gzip.decompress((HELP / "sglang-0.5.17.txt.gz").read_bytes()).decode()
    return text, FlagCatalogue(parse_help(text))


def test_every_flag_of_the_usage_line_is_found(sglang: tuple[str, FlagCatalogue]) -> None:
    """Witness: the usage block, which the parser does not read."""
    text, catalogue = sglang
    usage = text.split("\n\n")[0]
    named = set(re.findall(r"(?<![\w-])--[a-z0-9][\w-]*", usage))
    assert len(named) > 400
    assert {name for name in named if catalogue.find(name) is None} == set()


def test_names_choices_and_replacements(sglang: tuple[str, FlagCatalogue]) -> None:
    _, catalogue = sglang
    draft = catalogue.find("speculative_draft_model")
    assert draft is not None
    assert draft.name == "--speculative-draft-model-path"
    assert draft.takes_value
    mode = catalogue.find("--speculative-attention-mode")
    assert mode is not None
    assert mode.choices == ("prefill", "decode")
    old = catalogue.find("--cuda-graph-max-bs")
    assert old is not None
    assert (old.deprecated, old.replacement) == (True, "--cuda-graph-max-bs-decode")
    switch = catalogue.find("--trust-remote-code")
    assert switch is not None
    assert not switch.takes_value


@pytest.mark.parametrize(
    ("key", "value", "level", "says"),
    [
        ("cuda_graph_b", 1, "error", "ambiguous"),
        ("speculative_num_step", 3, "warning", "silently take it for --speculative-num-steps"),
        ("speculative_attention_mode", "decod", "error", "prefill, decode, not decod"),
        ("speculativ_algorithm", "EAGLE3", "error", "no such flag"),
        ("page_size", True, "error", "needs a value"),
        ("cuda_graph_max_bs", 8, "warning", "use --cuda-graph-max-bs-decode"),
        ("tp", 8, "note", "short for --tensor-parallel-size"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_write(
    sglang: tuple[str, FlagCatalogue], key: str, value: object, level: str, says: str
) -> None:
    (problem,) = check_words(sglang[1], [(key, value)])
    assert problem.level == level
    assert says in problem.text


def test_right_settings_pass(sglang: tuple[str, FlagCatalogue]) -> None:
    settings = [("model-path", "/m"), ("speculative_num_steps", 3), ("trust_remote_code", True), ("page-size", 1)]
    assert check_words(sglang[1], settings) == ()


def test_the_nearest_name_is_offered(sglang: tuple[str, FlagCatalogue]) -> None:
    (problem,) = check_words(sglang[1], [("mem_fracton_static", 0.8)])
    assert problem.fix == "--mem-fraction-static"


def test_llama_cpp_layout_colours_and_rubbish() -> None:
    text = (
        "\x1b[1m-m,    --model FNAME\x1b[0m                    model path to load\n"
        "                                        (env: LLAMA_ARG_MODEL)\n"
        "--spec-type TYPE                        type of speculation (default: none)\n"
        "-np,   --parallel N                     number of slots (default: -1, -1 = auto)\n"
        "----- common params -----\n"
    )
    flags = parse_help(text)
    assert [(f.name, f.aliases, f.metavar, f.default) for f in flags] == [
        ("--model", ("-m", "--model"), "FNAME", None),
        ("--spec-type", ("--spec-type",), "TYPE", "none"),
        ("--parallel", ("-np", "--parallel"), "N", "-1, -1 = auto"),
    ]
    assert parse_help("Traceback (most recent call last):\n  File x\n\x00\xff") == ()
