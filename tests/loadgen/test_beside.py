"""A GPU tool beside the load: what it says stands with each point, whether or not a console follows the run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from specconsole.core.measuring.fairness import differences
from specconsole.core.measuring.gpu_clocks import FIELDS, clock_mhz, gpu_text, point_gpus
from tests.cli.console import Verbs
from tests.core.measuring.build import point, result
from tests.loadgen.test_client import run, server_port
from tests.support.fixtures_gpus import FakeGpus
from tests.support.waiting import wait_until

__all__ = ["server_port"]
THROTTLED = "0x0000000000000004"
ROW = "2, {index}, GPU-{index}, NVIDIA Fake, {mhz}, 1980, {heat}, {watt}, {mask}\n"


def rows(mhz: int, mask: str, *, heat: int = 70, watt: float = 600.0) -> str:
    return "".join(ROW.format(index=n, mhz=mhz, mask=mask, heat=heat + n, watt=watt) for n in (0, 1))


def test_a_command_runs_beside_the_load_and_is_not_waited_for(tmp_path: Path, server_port: int) -> None:
    """The witness is what the command itself wrote down: as often as it ran, so often it is in the records."""
    script = tmp_path / "tool.py"
    script.write_text(
        "import time\nopen('ran', 'a').write('x')\ntime.sleep(0.05)\nprint('said', flush=True)\n", encoding="utf-8"
    )
    lines = run(
        tmp_path, server_port, [{"events": 30, "gap_s": 0.02}], [{"concurrency": 2, "requests": 4}] * 2,
        beside={"argv": [sys.executable, "-S", "tool.py"], "every_s": 0.3},
    )  # fmt: skip
    said = [line for line in lines if line["kind"] == "beside"]
    assert len(said) == len((tmp_path / "ran").read_text())
    assert {line["point"] for line in said} == {0, 1}
    assert {(line["status"], line["output"]) for line in said} == {(0, "said\n")}
    assert all(line["error"] is None for line in lines if line["kind"] == "request")


def test_a_tool_that_is_not_there_is_said_once(tmp_path: Path, server_port: int) -> None:
    points = [{"concurrency": 1, "requests": 3}] * 2
    lines = run(tmp_path, server_port, [{"events": 5}], points, beside={"argv": ["no-such-tool"], "every_s": 0.1})
    (said,) = [line for line in lines if line["kind"] == "beside"]
    assert said["status"] is None
    assert "no-such-tool" in said["output"]


def test_samples_become_figures_of_a_point() -> None:
    lines = [{"status": 0, "output": rows(1700, THROTTLED)}, {"status": 0, "output": rows(1900, "0x0", heat=74)}]
    found = point_gpus([*lines, {"status": 9, "output": "No devices were found"}, {"status": None, "output": "gone"}])
    assert [(g.index, g.samples, g.sm_clock_mhz, g.sm_clock_low_mhz, g.temperature_c) for g in found] == [
        (0, 2, 1800.0, 1700.0, 74.0), (1, 2, 1800.0, 1700.0, 75.0)
    ]  # fmt: skip
    assert found[0].throttle == ("power-cap",)
    assert gpu_text(found) == "GPUs at 1,800 MHz of 1,980 (lowest 1,700), 600 W each, 75 °C; held down: power-cap"
    assert (point_gpus([]), clock_mhz(()), gpu_text(())) == ((), None, "")
    assert len(ROW.split(",")) == len(FIELDS)


@pytest.mark.parametrize(("mhz", "warned"), [(1880, False), (1500, True)])
def test_other_clocks_are_a_difference(mhz: int, warned: bool) -> None:
    from dataclasses import replace

    a, b = (
        result("x", [replace(point(4, 100.0), gpus=point_gpus([{"status": 0, "output": rows(m, "0x0")}]))])
        for m in (1950, mhz)
    )
    assert ("GPU clocks" in [d.what for d in differences(a, b)]) is warned


def test_a_run_that_nobody_follows_knows_that_a_gpu_was_held_down(
    tmp_path: Path, server_port: int, fake_gpus: FakeGpus, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_gpus.set(gpus=[{"index": n, "clocks.sm": 1410, "clocks_throttle_reasons.active": THROTTLED} for n in range(2)])
    small = tmp_path / "small.toml"
    small.write_text('kind = "chat"\noutput_tokens = 10\nleast_requests = 3\nrequests_per_concurrency = 3\n')
    verbs = Verbs(capsys)
    url = f"http://127.0.0.1:{server_port}"
    left = verbs("bench", url, "--workload", str(small), "--concurrency", "1", "--repeats", "1", "--detach")
    assert left.status == 0, left.err
    bench_id = left.out.split()[0]

    def ended() -> bool:
        found = [path for path in Path.home().rglob("out.jsonl") if path.parent.name == bench_id]
        return bool(found) and b'"kind":"end"' in found[0].read_bytes()

    wait_until(ended, what="the run has ended by itself")
    fake_gpus.set(gpus=[{"index": n, "clocks.sm": 1980} for n in range(2)])
    (kept,) = verbs("results", "list", "--json").json
    (measured,) = kept["points"]
    assert [gpu["sm_clock_mhz"] for gpu in measured["gpus"]] == [1410.0, 1410.0]
    assert "throttled" in measured["marks"]
    assert kept["conditions"]["gpu_names"] == ["NVIDIA Fake", "NVIDIA Fake"]
    assert "1,410 MHz of 1,980" in verbs("results", "show", kept["result_id"]).out
    assert json.dumps(measured["gpus"]).count("power-cap") == 2
