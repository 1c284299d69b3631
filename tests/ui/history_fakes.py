"""A scripted history for the window's tests."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

from specconsole.core.launching.annotations import Annotations, Note
from specconsole.core.launching.difference import Difference, DifferenceRow, difference
from specconsole.core.launching.difference_side import LaunchSide
from specconsole.core.views.history import HistoryPage, HistoryQuery, HistoryRow
from specconsole.errors import SpecconsoleError
from tests.ui.fakes import NOW_WALL_S


def rows(count: int = 40) -> tuple[HistoryRow, ...]:
    base = HistoryRow(
        "20261129-140211-3f9a2c", "gpu-a", "eagle3-topk1", "sglang", "stopped", NOW_WALL_S - 3600, "ada@desk", "/l/1",
        started_at_s=NOW_WALL_S - 3600, ended_at_s=NOW_WALL_S - 60, answered_after_s=512.0, accept_length=2.86,
        best_tok_s=1234.0, best_at="C=32", exit_status=0, port=30000, description="chain of three steps",
        command="python -m sglang.launch_server --model-path Qwen3-32B --tp-size 8 --speculative-num-steps 3",
        profile_tags=("chain",),
        annotations=Annotations((Note("1-a", NOW_WALL_S, "ada@desk", "the draft of Tuesday"),), ("best",)),
    )  # fmt: skip
    failed = replace(
        base, launch_id="L3", profile="tree-16", outcome="failed", cause="gpu-oom", exit_status=1, at_s=base.at_s - 60,
        cause_line="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.38 GiB.", best_tok_s=None,
        best_at="", answered_after_s=None, accept_length=None, annotations=Annotations(),
    )  # fmt: skip
    more = [
        replace(base, launch_id=f"M{n}", profile=f"probe-{n}", outcome="", at_s=base.at_s - 1000 * n - 120,
                best_tok_s=None, best_at="", annotations=Annotations(), profile_tags=())
        for n in range(count - 2)
    ]  # fmt: skip
    return (base, failed, *more)


def found() -> Difference:
    left = LaunchSide("20261129-140211-3f9a2c", "eagle3-topk1", "gpu-a", "sglang", "stopped", owner="ada@desk",
                      flags={"command": "python -m sglang.launch_server", "--tp-size": "8", "--ep-size": "1"},
                      settings={"mem_fraction_static": 0.88, "speculation": "EAGLE3, 3 steps"},
                      versions={"version": "0.5.17"}, environment={"NCCL_ALGO": "Tree"},
                      phases_s={"weights (target)": 200.0, "graph-capture": 31.0}, answered_after_s=512.0,
                      memory_bytes={"GPU 0 taken": 90 << 30})  # fmt: skip
    right = replace(left, launch_id="L3", profile="tree-16", outcome="failed", cause="gpu-oom",
                    flags={"command": "python -m sglang.launch_server", "--tp-size": "8",
                           "--speculative-eagle-topk": "4"},
                    settings=None, phases_s={"weights (target)": 212.0}, answered_after_s=None,
                    unknown=("gpu-a was not asked: of L3 only what is kept here is known",))  # fmt: skip
    results = (
        DifferenceRow("results", "quick C=1 output", 93.0, 167.4, differs=True, unit="tok/s",
                      remark="1.80 times, better"),
    )  # fmt: skip
    return difference(left, right, results)


@dataclass
class FakeHistory:
    """Answers with `all_rows` that hold every word; records what was asked."""

    all_rows: tuple[HistoryRow, ...] = field(default_factory=rows)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    why_not: str = ""
    slow: asyncio.Event | None = None
    """Set: answers wait for it."""
    error: SpecconsoleError | None = None

    async def page(self, query: HistoryQuery) -> HistoryPage:
        if self.slow is not None:
            await self.slow.wait()
        if self.error is not None:
            raise self.error
        fits = [
            one for one in self.all_rows
            if all(word in f"{one.profile} {one.cause} {one.annotations.note_text}" for word in query.words)
        ]  # fmt: skip
        return HistoryPage(tuple(fits[: query.limit]), len(fits) > query.limit)

    async def open(self, launch_id: str) -> str:
        self.calls.append(("open", launch_id))
        return self.why_not

    async def difference(self, left_id: str, right_id: str) -> Difference:
        self.calls.append(("difference", (left_id, right_id)))
        return found()

    async def note(self, launch_id: str, text: str) -> str:
        self.calls.append(("note", (launch_id, text)))
        return self.why_not

    async def tag_line(self, launch_id: str, line: str) -> str:
        self.calls.append(("tags", (launch_id, line)))
        return self.why_not

    async def undo(self, launch_id: str) -> str:
        self.calls.append(("undo", launch_id))
        return self.why_not
