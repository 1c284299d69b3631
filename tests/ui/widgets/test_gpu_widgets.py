"""The GPU pane: lines by width, hostile names, old figures, one GPU in full, and the screen with its keys."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.app import App
from textual.content import Content

from specconsole.core.views.host import GpuProcessView, GpuView, HostView, ThrottleSpan
from specconsole.ui.theme_files import VARIABLE_DEFAULTS
from specconsole.ui.widgets.gpu_detail import gpu_detail
from specconsole.ui.widgets.gpu_graphs import plot, resample, spark
from specconsole.ui.widgets.gpu_lines import GpuLevels, gpu_line, gpu_lines, gpu_summary
from specconsole.ui.widgets.gpu_screen import GpuScreen

GIB = 1 << 30


def gpu(index: int = 0, **changed: object) -> GpuView:
    view = GpuView(
        index,
        "NVIDIA H200",
        uuid=f"GPU-{index}",
        util_pct=97.0,
        memory_util_pct=41.0,
        memory_used_bytes=91 * GIB,
        memory_total_bytes=141 * GIB,
        temperature_c=71.0,
        power_w=512.0,
        power_limit_w=700.0,
        sm_clock_mhz=1980.0,
        pstate="P0",
        processes=(GpuProcessView(71, 68 * GIB, "bob", "x", 600.0, "L1", f"eagle3-topk1, TP{index}"),),
        util_history_pct=tuple(float(place * 100 // 119) for place in range(120)),
    )
    return replace(view, **changed)  # type: ignore[arg-type]  # fields by name


def host(*gpus: GpuView, **changed: object) -> HostView:
    view = HostView("gpu-a", "up", as_of_s=100.0, gpu_as_of_s=99.5, gpus=gpus, gpu_tool="nvidia-smi", cpu_pct=12.0)
    return replace(view, **changed)  # type: ignore[arg-type]  # fields by name


EIGHT = host(*(gpu(index) for index in range(8)))


@pytest.mark.parametrize("width", [20, 29, 40, 60, 80, 120, 200])
def test_eight_gpus_are_eight_lines_of_exactly_the_width(width: int) -> None:
    lines = gpu_lines(EIGHT, width, 8)
    assert [line.cell_length for line in lines] == [width] * 8


def test_figures_come_with_room() -> None:
    assert " 97%  91/141G 71°" in gpu_line(gpu(), 29).plain
    assert "512/700W" not in gpu_line(gpu(), 29).plain
    assert "512/700W" in gpu_line(gpu(), 60).plain
    wide = gpu_line(gpu(), 120).plain
    assert "⣿" in wide
    assert "eagle3-topk1, TP0" in wide


def test_what_is_wrong_is_said_without_colour() -> None:
    bad = gpu(
        3, temperature_c=89.0, throttle=("thermal", "hw-thermal", "power-cap"), ecc_uncorrected=2, faults=("Xid 48",)
    )
    assert "89°!  512/700W TPEX" in gpu_line(bad, 60).plain
    assert "gone" in gpu_line(gpu(4, lost=True), 40).plain


def test_unknown_is_never_zero() -> None:
    blank = gpu_line(GpuView(0, "NVIDIA H200"), 60).plain
    assert "0%" not in blank
    assert "–" in blank


def test_all_gpus_in_one_line_of_eighty() -> None:
    line = gpu_summary(EIGHT, 80)
    assert line.cell_length == 80
    assert "gpu-a 8× ▇▇▇▇▇▇▇▇ 97%  91/141G 71°" in line.plain
    assert "4.1kW" in line.plain
    assert "cpu 12%" in line.plain
    mixed = host(gpu(0), gpu(1, util_pct=0.0), gpu(2, lost=True), gpu(3, util_pct=None))
    assert "▇▁✗· 0-97%" in gpu_summary(mixed, 80).plain
    assert "no GPU on this host" in gpu_summary(host(gpu_note="no GPU on this host"), 80).plain


def test_more_gpus_than_lines_are_counted() -> None:
    lines = gpu_lines(EIGHT, 40, 3)
    assert len(lines) == 3
    assert "6 more, 97% on average" in lines[2].plain


def test_old_figures_are_shown_with_their_age() -> None:
    silent = replace(EIGHT, as_of_s=145.0)
    assert "as of 46 s ago: nvidia-smi is silent" in gpu_lines(silent, 60, 9)[0].plain
    assert "old" in gpu_summary(silent, 80).plain
    broken = replace(EIGHT, gpu_note="the driver is not loaded")
    assert "the driver is not loaded" in gpu_lines(broken, 60, 9)[0].plain


def test_names_from_a_host_are_neither_markup_nor_escape_codes() -> None:
    label = "[TP1] \x1b]52;c;eA==\x07 [bold red]x[/]"
    evil = gpu(0, processes=(GpuProcessView(1, GIB, None, None, None, None, label),), name="[b]H200[/b]")
    for content in (*gpu_lines(host(evil), 200, 8), *gpu_detail(host(evil), 0, 200, 40)):
        assert "\x1b" not in content.plain
    assert any(
        "[TP1]" in content.plain and "[bold red]x[/]" in content.plain for content in gpu_lines(host(evil), 200, 8)
    )


def test_levels_come_from_the_theme() -> None:
    levels = GpuLevels.of_theme({"gpu-warm-c": "60", "gpu-hot-c": "warm"})
    assert (levels.warm_c, levels.hot_c) == (60, 88)
    assert "71°!" in gpu_line(gpu(), 60, levels=levels).plain


def test_histories_have_a_fixed_scale_and_keep_gaps() -> None:
    assert spark([0.0] * 8, 4) == "⣀⣀⣀⣀"
    assert spark([50.0] * 8, 4) == "⣤⣤⣤⣤"
    assert spark([100.0] * 8, 4) == "⣿⣿⣿⣿"
    assert spark([None] * 4 + [100.0] * 4, 4) == "  ⣿⣿"
    assert plot([100.0, 0.0], 1, 2) == ["⡇", "⣇"]
    assert resample([1.0, 3.0, None, None], 2) == [2.0, None]
    assert resample([], 3) == [None] * 3
    assert spark([5000.0, -5.0], 1) == "⣇"


def test_one_gpu_in_full() -> None:
    full = gpu(
        2,
        bus_id="00000000:06:00.0",
        nvlink="18 NVLinks up, 26.6 GB/s each",
        numa_node="1",
        throttle_history=(ThrottleSpan(("power-cap",), 40.0, 60.0), ThrottleSpan(("thermal",), 90.0, None)),
        faults=("Xid 31: MMU fault, 3 min ago",),
        hidden="12 GiB held in another container",
        mig=True,
        mig_devices=("0: 3g.71gb 14.0/69.5 GiB",),
    )
    links = (("X", "NV18", "SYS"), ("NV18", "X", "NV18"), ("SYS", "NV18", "X"))
    view = host(
        gpu(0), gpu(1), full, gpu_links=links, gpu_driver="580.159.04", disk_read_bytes_s=2.1e9, disk_name="nvme0n1"
    )
    text = "\n".join(line.plain for line in gpu_detail(view, 2, 100, 40))
    for said in (
        "GPU 2", "driver 580.159.04", "utilisation 97 % · memory traffic 41 %", "91.0 of 141.0 GiB", "512 of 700 W",
        "68.0 GiB  eagle3-topk1, TP2", "pid 71 · bob · 10:00", "thermal, 10 s ago since then",
        "power-cap, 1:00 ago for 20 s",
        "links to 0:SYS  1:NV18", "18 NVLinks up", "NUMA node 1", "Xid 31", "12 GiB held in another container",
        "MIG 0: 3g.71gb", "nvme0n1 reads 2.1 GB/s", "10 min ago",
    ):  # fmt: skip
        assert said in text
    assert all(line.cell_length <= 100 for line in gpu_detail(view, 2, 100, 40))
    assert "no GPU 9" in gpu_detail(view, 9, 60, 20)[0].plain
    assert "does not answer" in "\n".join(line.plain for line in gpu_detail(host(gpu(0, lost=True)), 0, 80, 30))


class _Bare(App[None]):
    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(VARIABLE_DEFAULTS)


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_the_screen_steps_through_the_gpus_and_follows_the_board(size: tuple[int, int]) -> None:
    board = {"gpu-a": EIGHT}
    app = _Bare()
    async with app.run_test(size=size) as pilot:
        screen = GpuScreen(lambda: board.get("gpu-a"), 0)
        await app.push_screen(screen)
        await pilot.pause()

        def shown() -> str:
            return "\n".join(line.plain for line in screen._detail._lines)

        assert "GPU 0" in shown()
        await pilot.press("k")
        await pilot.pause()
        assert "TP7" in shown()
        board["gpu-a"] = host(*(gpu(index, util_pct=3.0) for index in range(8)))
        screen._detail.update()
        assert "utilisation 3 %" in shown()
        del board["gpu-a"]
        screen._detail.update()
        assert "not watched" in shown()
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is not screen


def test_lines_are_content_with_theme_colours_only() -> None:
    for line in gpu_lines(EIGHT, 120, 8):
        assert isinstance(line, Content)
        for span in line.spans:
            assert str(span.style).replace("bold ", "").startswith("$")
