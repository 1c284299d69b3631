"""What is exported fits the schema that stands in the documents, and the schema is no sieve."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specconsole.cli.result_schema import result_schema
from specconsole.cli.result_text import result_json
from specconsole.core.measuring.importing import import_results
from tests.cli.console import Verbs
from tests.core.measuring.build import point, result
from tests.support.json_schema import faults

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = ROOT / "tests" / "core" / "measuring" / "foreign"


def test_the_document_is_the_schema() -> None:
    assert json.loads((ROOT / "docs" / "results.schema.json").read_text()) == result_schema(), (
        "specconsole results export --format schema --out docs/results.schema.json"
    )


def test_an_export_fits_and_spoilt_ones_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    verbs = Verbs(capsys)
    for file in sorted(FOREIGN.iterdir()):
        assert verbs("results", "import", str(file)).status == 0
    listed = verbs("results", "list", "--json").json
    assert len(listed) == len(list(FOREIGN.iterdir()))
    ids = [one["result_id"] for one in listed]
    exported = verbs("results", "export", *ids, "--format", "json").json
    schema = verbs("results", "export", "--format", "schema").json
    assert exported
    assert faults(exported, schema, schema) == []
    assert faults(listed, schema, schema) == []
    spoilers: tuple[tuple[Callable[[dict[str, Any]], object], str], ...] = (
        (lambda r: r.pop("conditions"), "no conditions"),
        (lambda r: r["points"][0]["metrics"].update(output_tok_s="fast"), "output_tok_s"),
        (lambda r: r["points"][0]["values"].pop("ttft_p99_ms"), "ttft_p99_ms"),
        (lambda r: r.update(joy=1), "what is joy?"),
        (lambda r: r.update(schema=2), "schema"),
    )
    for spoil, said in spoilers:
        broken = json.loads(json.dumps(exported))
        spoil(broken[0])
        assert said in " ".join(faults(broken, schema, schema))


def test_results_of_our_own_fit_too() -> None:
    ours = result("draft", [point(4, 100.0, accept=2.5, marks=("queued",))], speculative=True, sampling={"t": 0})
    raw = json.loads(json.dumps([result_json(ours)]))
    assert faults(raw, result_schema(), result_schema()) == []
    (theirs,) = import_results(
        [json.loads((FOREIGN / "vllm-0.32.json").read_text())], source="v", result_id="r", at_s=1
    )
    assert faults(json.loads(json.dumps([result_json(theirs)])), result_schema(), result_schema()) == []
