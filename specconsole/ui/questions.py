"""Questions that a host puts to the person (a passphrase, an unknown key): each is shown once, as a form."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specconsole.core.views.question import Question
    from specconsole.ui.app import ConsoleApp


class Questions:
    """Looks at the board's open questions; called with every change of the board."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app
        self._asked: set[str] = set()

    def look(self) -> None:
        """Shows what is not shown yet, the oldest first; closes what was settled elsewhere."""
        open_ones = self._app.desk.board.questions
        self._asked &= set(open_ones)
        shown: Question | None = getattr(self._app.screen, "question", None)
        if shown is not None and shown.question_id not in open_ones:
            self._app.screen.dismiss(None)
        for question in open_ones.values():
            if question.question_id not in self._asked:
                self._asked.add(question.question_id)
                self._show(question)

    def _show(self, question: Question) -> None:
        from specconsole.ui.forms.host_forms import Answer

        desk = self._app.desk

        def answered(text: str | None) -> None:
            if question.question_id in desk.board.questions:
                self._app.errands.start(
                    f"answer {question.host}", lambda _: desk.commands.answer(question.question_id, text)
                )

        self._app.push_screen(Answer(question), answered)
