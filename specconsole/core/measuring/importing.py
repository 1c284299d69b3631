"""Results of other benchmark clients -> ours, marked `imported`: their numbers, by their definitions.

Told apart by their keys: `sglang.bench_serving` (a JSON line a run, 0.4 to 0.5.23), `vllm bench serve` (0.10 to 0.33),
guidellm (`benchmarks.json`, 0.3 on), aiperf (`profile_export_aiperf.json`, 0.2 on). Their throughput is over the whole
run with ramp and drain, SGLang's accept length is cumulative since the server's start; none of them is ever compared
with a result of ours (`fairness`: measured by).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specconsole.core.measuring.acceptance import Acceptance
from specconsole.core.measuring.point import PointMetrics, Spread
from specconsole.core.measuring.result import ClientFigures, Conditions, MeasuredPoint, Result
from specconsole.errors import BadInputError

_SERVERS = {"sglang": "sglang", "sglang-native": "sglang", "sglang-oai": "sglang", "sglang-oai-chat": "sglang",
            "vllm": "vllm", "vllm-chat": "vllm", "trt": "tensorrt-llm"}  # fmt: skip
"""`--backend` of the two engines' clients; `openai` may be any server."""
_NOTHING = Spread(0, None, None, None, None)


def import_results(
    documents: Sequence[Mapping[str, Any]], *, source: str, result_id: str, at_s: float
) -> tuple[Result, ...]:
    """One result for all documents of one file that one client wrote. Raises BadInputError naming `source`."""
    found: dict[str, list[tuple[MeasuredPoint, Conditions]]] = {}
    for number, document in enumerate(documents):
        for client, point, conditions in _read(document, source, number, at_s):
            found.setdefault(client, []).append((point, conditions))
    results: list[Result] = []
    for client, measured in found.items():
        seen: dict[float, int] = {}
        points = []
        for point, _ in measured:
            repeat = seen.get(point.load, 0)
            seen[point.load] = repeat + 1
            points.append(_again(point, repeat))
        suffix = "" if len(found) == 1 else f"-{len(results)}"
        results.append(
            Result(
                result_id=f"{result_id}{suffix}",
                name=source.rpartition("/")[2],
                started_at_s=at_s,
                ended_at_s=at_s,
                conditions=measured[0][1],
                points=tuple(points),
                imported_from=client,
            )
        )
    if not results:
        raise BadInputError("holds no benchmark result", where=source)
    return tuple(results)


def _read(
    document: Mapping[str, Any], source: str, number: int, at_s: float
) -> list[tuple[str, MeasuredPoint, Conditions]]:
    if isinstance(document.get("benchmarks"), list):
        return [_guidellm(one, at_s) for one in document["benchmarks"] if isinstance(one, Mapping)]
    if isinstance(document.get("output_token_throughput"), Mapping):
        return [_aiperf(document, at_s)]
    if "total_token_throughput" in document and "model_id" in document:
        return [_vllm(document, at_s)]
    if "output_throughput" in document and "dataset_name" in document:
        return [_sglang(document, at_s)]
    raise BadInputError(
        "is of no client that is known here",
        where=f"{source}: entry {number + 1}",
        try_="sglang.bench_serving, vllm bench serve, guidellm (benchmarks.json), aiperf (profile_export_aiperf.json)",
    )


def _sglang(raw: Mapping[str, Any], at_s: float) -> tuple[str, MeasuredPoint, Conditions]:
    info = raw.get("server_info") if isinstance(raw.get("server_info"), Mapping) else {}
    assert isinstance(info, Mapping)
    length = _number(raw.get("accept_length"))
    acceptance = Acceptance(
        length, None, None, None, source="server_info, since the server's start" if length else "",
        why_not="" if length else "no speculation, or not told",
    )  # fmt: skip
    metrics = _metrics(
        raw, succeeded=raw.get("completed"), failed=None, e2e="e2e_latency", total=raw.get("total_throughput")
    )
    workload = " ".join(str(raw[k]) for k in ("dataset_name",) if raw.get(k) is not None)
    conditions = Conditions(
        engine=_SERVERS.get(str(raw.get("backend")), "unknown"),
        version=_text(info.get("version")),
        model=_text(info.get("model_path")),
        draft_model=_text(info.get("speculative_draft_model_path")),
        workload=workload,
        num_steps=_whole(info.get("speculative_num_steps")),
        speculative=bool(info.get("speculative_algorithm")) if info else None,
        running_cap=_whole(info.get("max_running_requests")),
        dp_size=_whole(info.get("dp_size")) or 1,
    )
    return "sglang.bench_serving", _point(raw, metrics, acceptance, at_s), conditions


def _vllm(raw: Mapping[str, Any], at_s: float) -> tuple[str, MeasuredPoint, Conditions]:
    drafts, accepted = _whole(raw.get("spec_decode_num_drafts")), _whole(raw.get("spec_decode_num_accepted_tokens"))
    figure = _number(raw.get("spec_decode_acceptance_length"))
    positions = raw.get("spec_decode_per_position_acceptance_rates") or ()
    acceptance = Acceptance(
        accept_length=None,
        target_steps=None,
        accepted_drafts=accepted,
        proposed_drafts=_whole(raw.get("spec_decode_draft_tokens") or raw.get("spec_decode_num_draft_tokens")),
        per_position_ratio=tuple(float(p) for p in positions if isinstance(p, int | float)),
        engine_figure=figure,
        engine_figure_is="1 + accepted / drafts" if figure is not None else "",
        why_not="steps without a draft are not counted there" if drafts else "no speculation, or not told",
    )
    metrics = _metrics(
        raw,
        succeeded=raw.get("completed"),
        failed=raw.get("failed"),
        e2e="e2el",
        total=raw.get("total_token_throughput"),
    )
    conditions = Conditions(
        engine="vllm" if drafts is not None else _SERVERS.get(str(raw.get("backend")), "unknown"),
        model=_text(raw.get("model_id")), workload=_text(raw.get("dataset_name")) or "",
        speculative=drafts is not None and drafts > 0,
    )  # fmt: skip
    return "vllm bench serve", _point(raw, metrics, acceptance, at_s), conditions


def _guidellm(raw: Mapping[str, Any], at_s: float) -> tuple[str, MeasuredPoint, Conditions]:
    metrics = raw.get("metrics") if isinstance(raw.get("metrics"), Mapping) else {}
    assert isinstance(metrics, Mapping)
    args = raw.get("config") or raw.get("args") or {}
    strategy = args.get("strategy") if isinstance(args, Mapping) else None
    strategy = strategy if isinstance(strategy, Mapping) else {}
    streams = _whole(strategy.get("streams") or strategy.get("max_concurrency"))
    rate = _number(strategy.get("rate"))
    totals = metrics.get("request_totals") if isinstance(metrics.get("request_totals"), Mapping) else {}
    assert isinstance(totals, Mapping)

    def spread(name: str, scale: float) -> Spread:
        one = _good(metrics.get(name))
        shares = one.get("percentiles") if isinstance(one.get("percentiles"), Mapping) else {}
        assert isinstance(shares, Mapping)
        values = (one.get("mean"), one.get("median"), shares.get("p90"), shares.get("p99"))
        return Spread(_whole(one.get("count")) or 0, *(_scaled(value, scale) for value in values))

    point = _bare_metrics(
        succeeded=_whole(totals.get("successful")) or 0,
        failed=_whole(totals.get("errored")) or 0,
        ttft=spread("time_to_first_token_ms", 1e-3),
        tpot=spread("time_per_output_token_ms", 1e-3),
        itl=spread("inter_token_latency_ms", 1e-3),
        e2e=spread("request_latency", 1.0),
        output=_number(_good(metrics.get("output_tokens_per_second")).get("mean")),
        total=_number(_good(metrics.get("tokens_per_second")).get("mean")),
        rate=_number(_good(metrics.get("requests_per_second")).get("mean")),
        running=_number(_good(metrics.get("request_concurrency")).get("mean")),
    )
    load = {"max_concurrency": streams, "request_rate": rate}
    model = _text(_mapping(args.get("backend")).get("model")) if isinstance(args, Mapping) else None
    conditions = Conditions(engine="unknown", model=model, workload="guidellm")
    return "guidellm", _point(load, point, _unknown(), at_s), conditions


def _aiperf(raw: Mapping[str, Any], at_s: float) -> tuple[str, MeasuredPoint, Conditions]:
    def one(name: str) -> Mapping[str, Any]:
        found = raw.get(name)
        return found if isinstance(found, Mapping) else {}

    def spread(name: str) -> Spread:
        found = one(name)
        scale = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}.get(str(found.get("unit")), 1.0)
        values = (_scaled(found.get(k), scale) for k in ("avg", "p50", "p90", "p99"))
        return Spread(_whole(found.get("count")) or 0, *values)

    config = _mapping(raw.get("input_config"))
    load, model = _aiperf_order(config)
    failed = _number(one("error_request_count").get("avg"))
    if failed is None:
        failed = sum(_number(_mapping(e).get("count")) or 0 for e in raw.get("error_summary") or ())
    point = _bare_metrics(
        succeeded=round(_number(one("request_count").get("avg")) or 0),
        failed=round(failed),
        ttft=spread("time_to_first_token"),
        tpot=_NOTHING,
        itl=spread("inter_token_latency"),
        e2e=spread("request_latency"),
        output=_number(one("output_token_throughput").get("avg")),
        total=_number(one("total_token_throughput").get("avg")),
        rate=_number(one("request_throughput").get("avg")),
        running=_number(one("effective_concurrency").get("avg")),
    )
    conditions = Conditions(engine="unknown", model=model, workload="aiperf")
    return "aiperf", _point(load, point, _unknown(), at_s), conditions


def _aiperf_order(config: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The load and the model that were asked for; 0.13 has them under `phases` and `models`."""
    phases = [_mapping(phase) for phase in config.get("phases") or ()]
    order = next((phase for phase in phases if phase.get("kind") != "warmup"), _mapping(config.get("loadgen")))
    load = {
        "max_concurrency": order.get("concurrency"),
        "request_rate": order.get("rate", order.get("request_rate")),
    }
    items = _mapping(config.get("models")).get("items") or ()
    names = [_mapping(item).get("name") for item in items] or _mapping(config.get("endpoint")).get("model_names") or ()
    return load, _text(names[0]) if names else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _metrics(raw: Mapping[str, Any], *, succeeded: Any, failed: Any, e2e: str, total: Any) -> PointMetrics:
    """Of the two clients that write `mean_ttft_ms` and the like."""

    def spread(name: str) -> Spread:
        keys = (f"mean_{name}_ms", f"median_{name}_ms", f"p90_{name}_ms", f"p99_{name}_ms")
        return Spread(_whole(succeeded) or 0, *(_scaled(raw.get(key), 1e-3) for key in keys))

    return _bare_metrics(
        succeeded=_whole(succeeded) or 0,
        failed=_whole(failed) or 0,
        ttft=spread("ttft"),
        tpot=spread("tpot"),
        itl=spread("itl"),
        e2e=spread(e2e),
        output=_number(raw.get("output_throughput")),
        total=_number(total),
        rate=_number(raw.get("request_throughput")),
        running=_number(raw.get("concurrency")),
    )


def _bare_metrics(
    *, succeeded: int, failed: int, ttft: Spread, tpot: Spread, itl: Spread, e2e: Spread, output: float | None,
    total: float | None, rate: float | None, running: float | None,
) -> PointMetrics:  # fmt: skip
    return PointMetrics(
        succeeded=succeeded,
        failed=failed,
        failures={"unknown": failed} if failed else {},
        ttft_s=ttft,
        tpot_s=tpot,
        itl_s=itl,
        e2e_s=e2e,
        output_tok_s=output,
        total_tok_s=total,
        request_rate_per_s=rate,
        goodput_per_s=None,
        running_mean=running,
        cached_token_share_ratio=None,
        decode_time_s=0.0,
        decode_tokens=0,
        decode_share_ratio=None,
        window=None,
        tokens_from=None,
        per_event_tokens=False,
        marks=("failures",) if failed else (),
    )


def _point(raw: Mapping[str, Any], metrics: PointMetrics, acceptance: Acceptance, at_s: float) -> MeasuredPoint:
    concurrency = _whole(raw.get("max_concurrency"))
    rate = _number(raw.get("request_rate"))
    finite = rate is not None and 0 < rate < float("inf")
    return MeasuredPoint(
        concurrency=concurrency,
        rate_per_s=rate if concurrency is None and finite else None,
        repeat=0,
        launch_id="",
        at_s=at_s,
        metrics=metrics,
        acceptance=acceptance,
        client=ClientFigures(),
        marks=("imported",),
    )


def _again(point: MeasuredPoint, repeat: int) -> MeasuredPoint:
    return MeasuredPoint(
        point.concurrency, point.rate_per_s, repeat, point.launch_id, point.at_s, point.metrics, point.acceptance,
        point.client, marks=point.marks,
    )  # fmt: skip


def _unknown() -> Acceptance:
    return Acceptance(None, None, None, None, why_not="this client tells none")


def _good(value: Any) -> Mapping[str, Any]:
    """guidellm splits each figure by what became of the request."""
    if not isinstance(value, Mapping):
        return {}
    good = value.get("successful")
    return good if isinstance(good, Mapping) else {}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def _scaled(value: Any, scale: float) -> float | None:
    found = _number(value)
    return None if found is None else found * scale


def _whole(value: Any) -> int | None:
    found = _number(value)
    return int(found) if found is not None and found == found and abs(found) < 1e15 and found == int(found) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
