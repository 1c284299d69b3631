"""Words that mean a launch of the history: looked up in the store, then on the host that is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specconsole.errors import NotFoundError

if TYPE_CHECKING:
    from specconsole.core.views.history import HistoryRow
    from specconsole.wiring import Console


async def meant_launch(console: Console, word: str, host: str) -> HistoryRow:
    """An id, a beginning of one, `last`, or a profile's name. `host` is searched for launches that this console never
    saw. Raises NotFoundError, which names the candidates where several are meant."""
    try:
        return await console.history.find(word)
    except NotFoundError as error:
        if "begin with" in error.what:
            raise
    await console.supervisor.add_host(host)
    await console.supervisor.discovered(host)
    return await console.history.find(word)
