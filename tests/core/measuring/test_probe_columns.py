"""Probes of measured points: kept, compared and exported like any other metric."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, replace

import msgspec
import pytest

from specconsole.cli.result_export import csv_text
from specconsole.cli.result_text import result_json, table_text
from specconsole.core.measuring.figures_text import point_text
from specconsole.core.measuring.metrics import find_metric, probe_names
from specconsole.core.measuring.result import MeasuredPoint
from specconsole.errors import BadInputError
from tests.core.measuring.build import point, result

PLAIN = result("plain", [point(1, 100.0), point(4, 200.0)])
PATCHED = result("patched", [replace(point(load, 150.0), probes={"draft_ms": 4.0 + load}) for load in (1, 4)])


def test_a_point_is_kept_with_its_probes_and_an_old_one_has_none() -> None:
    kept = asdict(PATCHED.points[0])
    assert msgspec.convert(kept, MeasuredPoint, strict=False) == PATCHED.points[0]
    del kept["probes"]
    assert msgspec.convert(kept, MeasuredPoint, strict=False).probes == {}


def test_a_probe_is_a_metric_of_the_results_that_have_it() -> None:
    metric = find_metric("probe:draft_ms", [PLAIN, PATCHED])
    assert metric is not None
    assert [metric.value(one) for one in (*PLAIN.points, *PATCHED.points)] == [None, None, 5.0, 8.0]
    assert metric.better == "neither"  # only the person knows
    assert find_metric("probe:draft_ms", [PLAIN]) is None
    assert find_metric("output_tok_s") is not None
    assert probe_names([PLAIN, PATCHED]) == ("draft_ms",)
    lines = [line.split() for line in table_text([PLAIN, PATCHED], "probe:draft_ms", None)]
    assert ["plain", "–", "–"] in lines
    assert ["patched", "5", "8"] in lines
    with pytest.raises(BadInputError, match="can't be probe:other"):
        table_text([PATCHED], "probe:other", None)


def test_exports_carry_them() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text([PLAIN, PATCHED]))))
    assert [row["probe:draft_ms"] for row in rows] == ["", "", "5.0", "8.0"]
    [first, _] = result_json(PATCHED)["points"]
    assert (first["probes"], first["values"]["probe:draft_ms"]) == ({"draft_ms": 5.0}, 5.0)
    assert "draft_ms 5 (probe, mean)" in point_text(PATCHED.points[0])
