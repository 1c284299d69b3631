"""Questions of a host (a passphrase, a second factor) put on the board for the window to show."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from specconsole.core.views.question import Question
from specconsole.errors import NotFoundError
from specconsole.services.board import Board


class BoardAsker:
    """`ports.Asker` for consoles with a window: an open question waits on the board until somebody answers."""

    def __init__(self, board: Board, wall_s: Callable[[], float]) -> None:
        self._board = board
        self._wall_s = wall_s
        self._numbers = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[str | None]] = {}
        self._hosts: dict[str, str] = {}

    async def ask(self, host: str, prompt: str, *, secret: bool = True) -> str | None:
        question_id = f"{host}#{next(self._numbers)}"
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._waiting[question_id] = future
        self._hosts[question_id] = host
        self._board.ask(Question(question_id, host, prompt, secret=secret))
        self._board.tell("asks", host, prompt, self._wall_s())
        try:
            return await future
        finally:
            del self._waiting[question_id], self._hosts[question_id]
            self._board.answered(question_id)

    def tell(self, host: str, text: str) -> None:
        self._board.tell("note", host, text, self._wall_s())

    def answer(self, question_id: str, text: str | None) -> None:
        """Hands an answer over; None declines. Raises NotFoundError when nobody waits for it any more."""
        future = self._waiting.get(question_id)
        if future is None or future.done():
            raise NotFoundError("this question is no longer open", where=question_id)
        future.set_result(text)

    def asks(self, host: str) -> str:
        """What a host is waiting for right now; "" when nothing."""
        waiting = next((qid for qid, asker in self._hosts.items() if asker == host), None)
        return self._board.questions[waiting].text if waiting in self._board.questions else ""
