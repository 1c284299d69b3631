"""A run over a link that is gone for all of its measuring, and one through the tunnel.

Witnesses: /proc, the server's own counters, the bytes of the run's file on the host.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specconsole.core.measuring.run_plan import BenchOrder
from specconsole.services.bench_start import NoPythonError
from specconsole.wiring import open_supervisor
from tests.loadgen.test_tls import tls_server
from tests.real.test_bench_llama import rise, runs_of, workload
from tests.support.certificates import make_certificates
from tests.support.fault_proxy import FaultProxy
from tests.support.llama import LlamaServer
from tests.support.sshd_lab import SshdLab
from tests.support.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


async def test_a_link_that_is_gone_for_the_whole_measuring_loses_nothing(
    sshd: SshdLab, ssh_account: str, ssh_proxy: FaultProxy, llama: LlamaServer, tmp_path: Path
) -> None:
    before = llama.counters()
    async with open_supervisor((), window=True) as console:
        await console.supervisor.add_host("proxied")
        await until(lambda: console.board.hosts["proxied"].state == "up", what="the host is up")
        order = BenchOrder(workload(tmp_path, output_tokens=120), repeats=2)
        prepared = await console.benches.prepare_url(llama.base_url, "proxied", order)
        bench_id = await console.benches.start(prepared, "proxied")
        await ssh_proxy.refuse()
        assert ssh_proxy.cut() >= 1
        assert runs_of(bench_id), "it goes on without a link"
        await until(lambda: not runs_of(bench_id), timeout_s=90, what="the run ends by its plan, with nobody listening")
        assert console.benches.views[0].requests_done < prepared.plan.requests, "nobody could have read it"
        await until(lambda: "the run goes on" in console.benches.views[0].problem, what="the lost link is said")
        await ssh_proxy.listen_again()
        result = await console.benches.wait(bench_id)
    assert result.ended == "done"
    assert len(result.points) == 4
    assert sum(p.metrics.failed for p in result.points) == 0
    accepted = sum(p.acceptance.accepted_drafts or 0 for p in result.points)
    assert accepted == rise(llama.counters(), before, "spec_decode_num_accepted_tokens_total")
    (out,) = (sshd.homes[ssh_account] / ".local/state/specconsole/benches").glob(f"*/{bench_id}/out.jsonl")
    lines = [json.loads(line) for line in out.read_bytes().splitlines()]
    async with open_supervisor(()) as console:
        assert console.benches.store is not None
        kept = await console.benches.store.requests(result)
    stored = [line for index in sorted(kept) for line in kept[index]]
    assert stored == [line for line in lines if line["kind"] == "request"]
    assert not result.conditions.through_tunnel


async def test_without_python_on_the_host_the_tunnel_serves_and_is_marked(
    ssh_proxy: FaultProxy, llama: LlamaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = llama.counters()
    async with open_supervisor(()) as console:
        await console.supervisor.add_host("proxied")
        prepared = await console.benches.prepare_url(llama.base_url, "proxied", BenchOrder(workload(tmp_path)))
        with monkeypatch.context() as patched:
            # The lab's host has a python3; what is asked there answers as one without.
            patched.setattr("specconsole.services.bench_start.FIND_PYTHON", "printf 'none\\n'\n")
            with pytest.raises(NoPythonError) as caught:
                await console.benches.start(prepared, "proxied")
        assert "--from-here" in caught.value.try_
        passed = ssh_proxy.bytes_forwarded
        bench_id = await console.benches.start(prepared, "proxied", from_here=True)
        result = await console.benches.wait(bench_id)
    assert ssh_proxy.bytes_forwarded > passed + 10_000, "it went through the link"
    assert result.ended == "done"
    assert result.conditions.through_tunnel
    assert all("tunnel" in p.all_marks for p in result.points)
    assert [p.metrics.failed for p in result.points] == [0, 0]
    accepted = sum(p.acceptance.accepted_drafts or 0 for p in result.points)
    assert accepted == rise(llama.counters(), before, "spec_decode_num_accepted_tokens_total")


@pytest.mark.parametrize("from_here", [False, pytest.param(True, marks=pytest.mark.faults)])
async def test_https_is_checked_by_name_on_the_host_and_through_the_tunnel(
    ssh_proxy: FaultProxy, tmp_path: Path, from_here: bool
) -> None:
    """Asked over an SSH channel, measured from there or through a local port: the name stays the server's own."""
    pems = make_certificates(tmp_path)
    with tls_server(pems.server) as port:
        async with open_supervisor(()) as console:
            await console.supervisor.add_host("proxied")
            order = BenchOrder(workload(tmp_path, concurrency=[2], output_tokens=10))
            prepared = await console.benches.prepare_url(
                f"https://localhost:{port}", "proxied", order, ca_pem=pems.authority.read_text()
            )
            bench_id = await console.benches.start(prepared, "proxied", from_here=from_here)
            result = await console.benches.wait(bench_id)
    (point,) = result.points
    assert (point.metrics.failed, point.metrics.succeeded) == (0, 4)
    assert ("tunnel" in point.all_marks) is from_here
