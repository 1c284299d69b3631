"""Other clients' files. Those in ./foreign were written by the clients themselves: sglang.bench_serving 0.5.17 on an
H200, and, against one paced server (20 events a stream, 10 ms apart, at 4 streams), sglang.bench_serving 0.5.17,
vllm bench serve 0.32, guidellm 0.8.1 and aiperf 0.13. The dictionaries below have older versions' keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specconsole.adapters.foreign_results import read_documents
from specconsole.core.measuring.fairness import comparable, differences
from specconsole.core.measuring.importing import import_results
from specconsole.errors import BadInputError
from tests.core.measuring.build import point, result

FOREIGN = Path(__file__).parent / "foreign"
SGLANG = FOREIGN / "sglang-0.5.jsonl"
VLLM = {
    "date": "20261129", "model_id": "m", "num_prompts": 8, "request_rate": "inf", "max_concurrency": 4, "duration": 2.0,
    "completed": 8, "failed": 1, "total_input_tokens": 80, "total_output_tokens": 800, "request_throughput": 4.0,
    "output_throughput": 400.0, "total_token_throughput": 440.0, "mean_ttft_ms": 20.0, "median_ttft_ms": 19.0,
    "p99_ttft_ms": 40.0, "mean_tpot_ms": 9.0, "median_tpot_ms": 8.5, "mean_e2el_ms": 900.0,
    "spec_decode_num_drafts": 300, "spec_decode_draft_tokens": 900, "spec_decode_num_accepted_tokens": 480,
    "spec_decode_acceptance_length": 2.6, "spec_decode_per_position_acceptance_rates": [0.8, 0.5, 0.3],
}  # fmt: skip
GUIDELLM = {
    "benchmarks": [
        {
            "config": {"strategy": {"type_": "concurrent", "streams": streams}},
            "metrics": {
                "request_totals": {"successful": 10, "errored": 0},
                "output_tokens_per_second": {"successful": {"mean": 100.0 * streams}},
                "time_to_first_token_ms": {
                    "successful": {"mean": 30.0, "median": 28.0, "count": 10, "percentiles": {"p90": 40.0, "p99": 55.0}}
                },
                "request_latency": {
                    "successful": {"mean": 1.5, "median": 1.4, "percentiles": {"p90": 2.0, "p99": 2.2}}
                },
            },
        }
        for streams in (1, 2)
    ]
}
AIPERF = {
    "input_config": {"loadgen": {"concurrency": 8}, "endpoint": {"model_names": ["m"]}},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 812.0},
    "request_throughput": {"unit": "requests/sec", "avg": 3.2},
    "request_count": {"unit": "requests", "avg": 64.0},
    "time_to_first_token": {"unit": "ms", "avg": 35.0, "p50": 33.0, "p90": 50.0, "p99": 71.0},
    "inter_token_latency": {"unit": "ms", "avg": 9.0, "p50": 8.8, "p90": 10.0, "p99": 14.0},
    "request_latency": {"unit": "ms", "avg": 2400.0, "p50": 2300.0, "p90": 2600.0, "p99": 2900.0},
}


def test_a_real_file_of_sglang() -> None:
    documents, at_s = read_documents(SGLANG)
    raw = json.loads(SGLANG.read_text())
    (found,) = import_results(documents, source=str(SGLANG), result_id="r", at_s=at_s)
    assert found.imported_from == "sglang.bench_serving"
    assert found.conditions.version == raw["server_info"]["version"] == "0.5.17"
    assert (found.conditions.num_steps, found.conditions.running_cap, found.conditions.speculative) == (3, 48, True)
    (one,) = found.points
    assert one.concurrency == 8
    assert one.metrics.output_tok_s == raw["output_throughput"]
    assert one.metrics.ttft_s.p50 == pytest.approx(raw["median_ttft_ms"] / 1e3)
    assert one.metrics.e2e_s.p99 == pytest.approx(raw["p99_e2e_latency_ms"] / 1e3)
    assert one.acceptance.accept_length == raw["accept_length"]
    assert "since the server's start" in one.acceptance.source
    assert "imported" in one.all_marks


@pytest.mark.parametrize(
    ("file", "client", "engine", "model", "tpot_s"),
    [
        ("sglang-0.5-no-speculation.jsonl", "sglang.bench_serving", "vllm", None, None),
        ("vllm-0.32.json", "vllm bench serve", "unknown", "m", 0.010),
        ("guidellm-0.8.json", "guidellm", "unknown", "m", 0.0095),
        ("aiperf-0.13.json", "aiperf", "unknown", "m", None),
    ],
)
def test_real_files_of_one_known_server(
    file: str, client: str, engine: str, model: str | None, tpot_s: float | None
) -> None:
    """The witness is the server's schedule: 16 answers, 4 at once, 190 ms from the first event to the last."""
    documents, at_s = read_documents(FOREIGN / file)
    (found,) = import_results(documents, source=file, result_id="r", at_s=at_s)
    assert found.imported_from == client
    assert (found.conditions.engine, found.conditions.model) == (engine, model)
    (one,) = found.points
    assert (one.concurrency, one.rate_per_s) == (4, None)
    assert (one.metrics.succeeded, one.metrics.failed) == (16, 0)
    assert one.metrics.request_rate_per_s == pytest.approx(4 / 0.2, rel=0.15)
    if one.metrics.e2e_s.p50 is not None:
        assert one.metrics.e2e_s.p50 == pytest.approx(0.195, rel=0.1)
    if tpot_s is not None:
        assert one.metrics.tpot_s.p50 == pytest.approx(tpot_s, rel=0.02)
    assert "imported" in one.all_marks


def test_vllms_acceptance_stays_its_own_figure() -> None:
    (found,) = import_results([VLLM], source="v.json", result_id="r", at_s=1.0)
    (one,) = found.points
    assert one.acceptance.accept_length is None
    assert (one.acceptance.engine_figure, one.acceptance.proposed_drafts) == (2.6, 900)
    assert one.metrics.failed == 1
    assert one.metrics.tpot_s.mean == pytest.approx(0.009)


def test_guidellm_and_aiperf() -> None:
    (found,) = import_results([GUIDELLM], source="g.json", result_id="r", at_s=1.0)
    assert [(p.concurrency, p.metrics.output_tok_s) for p in found.points] == [(1, 100.0), (2, 200.0)]
    assert found.points[0].metrics.ttft_s.p99 == pytest.approx(0.055)
    assert found.points[0].metrics.e2e_s.mean == 1.5
    (other,) = import_results([AIPERF], source="a.json", result_id="r", at_s=1.0)
    assert other.points[0].concurrency == 8
    assert other.points[0].metrics.e2e_s.p99 == pytest.approx(2.9)


def test_theirs_is_never_compared_with_ours() -> None:
    (theirs,) = import_results([VLLM], source="v.json", result_id="r", at_s=1.0)
    assert not comparable(differences(result("ours", [point(4, 400.0)]), theirs))


@pytest.mark.parametrize(
    ("text", "said"),
    [("{}", "entry 1"), ("[1, 2]", "something else than objects"), ('{"a": 1}\n{"a": ', ":2"), ("", "no benchmark")],
)
def test_other_files_are_refused_with_their_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)

    def read() -> None:
        documents, at_s = read_documents(path)
        import_results(documents, source=str(path), result_id="r", at_s=at_s)

    with pytest.raises(BadInputError) as caught:
        read()
    assert said in str(caught.value)


def test_repeats_of_one_load_are_told_apart() -> None:
    again: dict[str, Any] = {**VLLM, "output_throughput": 410.0}
    (found,) = import_results([VLLM, again], source="v.jsonl", result_id="r", at_s=1.0)
    assert [p.repeat for p in found.points] == [0, 1]
