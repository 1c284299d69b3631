"""The hosts pane with more hosts than rows: one line each, the selected one in full and in sight."""

from __future__ import annotations

from dataclasses import replace

from specconsole.core.views.host import GpuView, HostView
from specconsole.services.board import Board
from tests.ui.conftest import make_app, until

GIB = 1 << 30


def fleet(count: int) -> Board:
    board = Board()
    gpus = tuple(
        GpuView(index, "NVIDIA H200", f"GPU-{index}", 97.0, 40.0, 91 * GIB, 141 * GIB, 71.0, 512.0, 700.0)
        for index in range(8)
    )
    for number in range(count):
        board.publish_host(HostView(f"gpu-{number:02}", "up", as_of_s=1.0, gpu_as_of_s=1.0, gpus=gpus, cpu_pct=5.0))
    return board


async def test_sixty_four_hosts_of_eight_gpus() -> None:
    board = fleet(64)
    app = make_app(board=board)
    async with app.run_test(size=(160, 48)) as pilot:
        pane = app.screen.hosts  # type: ignore[attr-defined]  # the console screen's

        def shown() -> list[str]:
            return [line.plain for line in pane._lines[: pane.size.height]]

        await pilot.press("4")
        await until(lambda: "gpu-00" in "".join(shown()))
        assert sum("97%" in line and " 7 " in line for line in shown()) >= 1  # the selected host has all its GPUs
        assert sum(line.startswith("● gpu-") for line in shown()) > 12  # the others are a line each
        for _ in range(40):
            await pilot.press("j")
        await until(lambda: any(line.startswith("● gpu-40") for line in shown()))
        place = next(number for number, line in enumerate(shown()) if line.startswith("● gpu-40"))
        assert "  7 " in shown()[place + 8]
        # A host in trouble says so in its line.
        board.publish_host(replace(board.hosts["gpu-39"], state="unreachable", detail="no answer in 10 s"))
        await until(lambda: any("gpu-39 no answer in 10 s" in line for line in shown()))
        assert len(pane._lines) >= pane.size.height  # no empty rows while hosts are left out


async def test_unchanged_hosts_are_not_built_again() -> None:
    board = fleet(30)
    app = make_app(board=board)
    async with app.run_test(size=(160, 48)) as pilot:
        pane = app.screen.hosts  # type: ignore[attr-defined]  # the console screen's
        await until(lambda: pane._lines)
        await pilot.pause()
        built: list[str] = []
        real = pane._block

        def block(host: HostView, *args: object, **more: object) -> object:
            built.append(host.name)
            return real(host, *args, **more)

        pane._block = block
        board.publish_host(replace(board.hosts["gpu-07"], cpu_pct=9.0))
        await until(lambda: built)
        assert set(built) == {"gpu-07"}
