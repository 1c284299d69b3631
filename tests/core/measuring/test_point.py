"""Every metric of a known schedule, computed by hand."""

from dataclasses import replace

import pytest

from specconsole.core.measuring.point import Limits, measure_point
from specconsole.core.measuring.requests import RequestRecord, parse_lines, parse_request


def three_tokens_an_event(start_s: float, *, counted: bool = True) -> RequestRecord:
    """First token 0.5 s after the start, then 4 events of 3 tokens, 0.3 s apart: 13 tokens."""
    return RequestRecord(
        point=0,
        body=0,
        warmup=False,
        start_s=start_s,
        end_s=start_s + 1.7,
        error=None,
        event_s=tuple(start_s + 0.5 + 0.3 * i for i in range(5)),
        event_tokens=(1, 3, 3, 3, 3) if counted else (None,) * 5,
        prompt_tokens=100,
        completion_tokens=13,
        cached_tokens=25,
        tokens_from="usage",
        finish_reason="length",
    )


@pytest.mark.parametrize("counted", [True, False])
def test_latencies_with_several_tokens_an_event(counted: bool) -> None:
    record = three_tokens_an_event(10.0, counted=counted)
    assert record.ttft_s == pytest.approx(0.5)
    assert record.e2e_s == pytest.approx(1.7)
    assert record.decode_tokens == 12
    assert record.tpot_s == pytest.approx(0.1)
    found = measure_point([record], window_start_s=None, window_end_s=None)
    # 0.3 s for three tokens is 0.1 s a token, not 0.3 s an event.
    assert found.itl_s.p50 == pytest.approx(0.1)
    assert found.itl_s.count == 12
    assert found.decode_share_ratio == pytest.approx(1.2 / 1.7)
    assert found.cached_token_share_ratio == pytest.approx(0.25)
    assert "no-steady-window" in found.marks


def test_throughput_counts_tokens_where_they_arrive_in_the_window() -> None:
    records = [three_tokens_an_event(float(i)) for i in range(4)]
    # Window (2.0, 4.0]: request 0 is over (last event 1.7); request 1 brings 3 tokens at 2.1, 2.4 and 2.7 (2.1 = 1+1.1)
    # and its events at 1.5 and 1.8 lie before; requests 2 (2.5 .. 3.7) and 3 (3.5, 3.8) are inside, 3's rest after.
    found = measure_point(records, window_start_s=2.0, window_end_s=4.0)
    assert found.window is not None
    assert found.window.steady
    expected = (3 + 3 + 3) + 13 + (1 + 3)
    assert found.output_tok_s == pytest.approx(expected / 2.0)
    # Prompts of requests whose first token came inside: 2 and 3.
    assert found.total_tok_s == pytest.approx((expected + 200) / 2.0)
    assert found.request_rate_per_s == pytest.approx(2 / 2.0)
    # Request 1 is out until 2.7, request 2 from 2.0 to 3.7, request 3 from 3.0 on.
    assert found.running_mean == pytest.approx((0.7 + 1.7 + 1.0) / 2.0)


def test_failures_are_counted_and_never_averaged_in() -> None:
    bad = replace(three_tokens_an_event(0.0), error="truncated", event_s=(9.0, 99.0), event_tokens=(1, 1))
    found = measure_point([three_tokens_an_event(0.0), bad], window_start_s=None, window_end_s=None)
    assert (found.succeeded, found.failed, found.failures) == (1, 1, {"truncated": 1})
    assert found.e2e_s.mean == pytest.approx(1.7)
    assert "failures" in found.marks


def test_warm_up_is_left_out_of_latencies() -> None:
    slow = replace(three_tokens_an_event(0.0), warmup=True, start_s=-50.0)
    found = measure_point([slow, three_tokens_an_event(0.0)], window_start_s=None, window_end_s=None)
    assert found.succeeded == 1
    assert found.ttft_s.p99 == pytest.approx(0.5)


def test_goodput_needs_limits_and_known_times() -> None:
    records = [three_tokens_an_event(0.0), replace(three_tokens_an_event(0.1), start_s=-2.0)]
    assert measure_point(records, window_start_s=0.0, window_end_s=2.0).goodput_per_s is None
    found = measure_point(records, window_start_s=0.0, window_end_s=2.0, limits=Limits(ttft_s=0.6))
    assert found.goodput_per_s == pytest.approx(0.5)


def test_no_usage_gives_no_throughput() -> None:
    mute = replace(three_tokens_an_event(0.0, counted=False), completion_tokens=None, tokens_from=None)
    found = measure_point([mute], window_start_s=None, window_end_s=None)
    assert found.output_tok_s is None
    assert found.tpot_s.mean is None
    assert "no-usage" in found.marks


def test_a_line_of_the_load_generator_is_read_and_broken_ones_are_left_out() -> None:
    lines = [
        b'{"kind":"request","point":1,"body":7,"warmup":false,"scheduled_s":0.9,"started_s":1.0,"sent_s":1.25,'
        b'"end_s":2.0,"error":null,"events":[250000,1,750000,2],"completion_tokens":3,"tokens_from":"usage"}',
        b'{"kind":"progress"}',
        b'{"kind":"request","po',
    ]
    (record,) = [r for raw in parse_lines(lines) if (r := parse_request(raw))]
    assert record.event_s == pytest.approx((1.5, 2.0))
    # Open loop: waiting in our own queue counts, from the scheduled arrival.
    assert record.ttft_s == pytest.approx(0.6)
