"""HTTPS: the same schedule through TLS, names and certificates checked, from the plan alone and from the verb."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.console import Verbs
from tests.loadgen.test_client import measured, run
from tests.support.certificates import make_certificates


@contextmanager
def tls_server(pem: Path) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("schedule_server.py")), str(pem)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("split", [True, False])
def test_the_schedule_is_measured_through_tls(tmp_path: Path, split: bool) -> None:
    pems = make_certificates(tmp_path)
    test = {"first_s": 0.08, "gap_s": 0.03, "events": 10, "tokens": 3, "split": split}
    with tls_server(pems.server) as port:
        lines = run(
            tmp_path, port, [test], [{"concurrency": 4, "requests": 12, "warmup": 4}],
            tls={"server_name": "localhost", "ca_file": "authority.pem"}, sample={"path": "/counts", "every_s": 0.1},
        )  # fmt: skip
    found = measured(lines)
    assert (found.succeeded, found.failed) == (12, 0)
    assert found.tpot_s.p50 == pytest.approx(0.01, rel=0.15)
    assert found.decode_tokens == 12 * 27
    (end,) = [line for line in lines if line["kind"] == "point-end"]
    assert end["stamped_by"] == "client"
    counts = [json.loads(line["body"]) for line in lines if line["kind"] == "sample"]
    assert max(one["most_at_once"] for one in counts) == 4
    # Four kept ones; a sample takes one of its own.
    assert counts[-1]["connections"] <= 4 + len(counts)


@pytest.mark.parametrize(
    ("name", "authority", "says"),
    [("localhost", False, "certificate"), ("elsewhere.example", True, "Hostname mismatch")],
)
def test_a_certificate_that_does_not_hold_fails_every_request(
    tmp_path: Path, name: str, authority: bool, says: str
) -> None:
    pems = make_certificates(tmp_path, name=name)
    tls = {"server_name": "localhost", "ca_file": "authority.pem" if authority else None}
    with tls_server(pems.server) as port:
        lines = run(tmp_path, port, [{}], [{"concurrency": 2, "requests": 2}], tls=tls)
    assert measured(lines).failures == {"tls": 2}
    assert says in next(line["detail"] for line in lines if line["kind"] == "request")


def test_bench_of_an_https_url(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pems = make_certificates(tmp_path)
    small = tmp_path / "small.toml"
    small.write_text('kind = "chat"\noutput_tokens = 10\nleast_requests = 2\nrequests_per_concurrency = 2\n')
    verbs = Verbs(capsys)
    with tls_server(pems.server) as port:
        url = f"https://127.0.0.1:{port}"
        refused = verbs("bench", url, "--workload", str(small), "--concurrency", "1")
        assert refused.status == 3
        assert "certificate" in refused.err
        order = ("--workload", str(small), "--concurrency", "1,2", "--repeats", "1", "--ca-file", str(pems.authority))
        done = verbs("bench", url, *order, "--json")
        assert done.status == 0, done.err
        assert [point["metrics"]["succeeded"] for point in done.json["points"]] == [2, 4]
        assert all(point["metrics"]["failed"] == 0 for point in done.json["points"])
        wrong = verbs("bench", url, *order, "--model", "gpt-9")
        assert (wrong.status, "no model named gpt-9" in wrong.err, "try: m" in wrong.err) == (2, True, True)
        (tmp_path / "no.pem").write_text("no certificate")
        assert verbs("bench", url, *order[:-1], str(tmp_path / "no.pem")).status == 2
