"""Until the services stand and a host was looked on, nothing is called empty that may not be."""

from __future__ import annotations

from specconsole.core.views.host import HostView
from specconsole.services.board import Board
from specconsole.services.looking_only import LookingOnly
from specconsole.ui.app import ConsoleApp
from specconsole.ui.widgets.text_pane import TextPane
from tests.ui.conftest import make_app
from tests.ui.fakes import FakeCommands


def text(pane: TextPane) -> str:
    return "\n".join(line.plain.strip() for line in pane.build(60, 6)).strip()


def panes(app: ConsoleApp) -> list[str]:
    screen = app.screen_of_all
    return [text(screen.hosts), text(screen.launches), text(screen.results)]


async def test_each_pane_says_what_it_waits_for() -> None:
    board = Board()
    app = make_app(LookingOnly("the services are starting"), board=board, starting=True)  # type: ignore[arg-type]  # none yet
    async with app.run_test(size=(120, 40)):
        assert panes(app) == ["◌ starting"] * 3
        assert text(app.screen_of_all.small_top).count("starting") == 1
        app.connect(board, FakeCommands(), ["local", "gpu-a"])
        assert panes(app)[:2] == ["◌ looking on gpu-a, local"] * 2
        app.looked_on("local")
        board.publish_host(HostView("local", "up"))
        assert panes(app)[1] == "◌ looking on gpu-a"
        board.publish_host(HostView("gpu-a", "unreachable", "no route to host"))
        assert panes(app)[1].startswith("not known: gpu-a can't be reached")
        app.looked_on("gpu-a")
        app.tick()
        assert panes(app)[1].startswith("nothing launched yet")
        assert "starts a server" in app.screen_of_all.log_pane.view.empty_text
