"""The log view's machinery without a screen: places, wrapping, searching, filtering, selecting, growth."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from specconsole.services.spool import Spool
from specconsole.ui.log.line_style import wrap_text
from specconsole.ui.log.session import LogSession
from tests.ui.conftest import until
from tests.ui.fakes import BytesLines


def numbered(count: int, text: str = "line") -> bytes:
    return b"".join(b"%s %d\n" % (text.encode(), number) for number in range(count))


def session_of(data: bytes, *, height: int = 5, width: int = 20) -> tuple[LogSession, BytesLines]:
    source = BytesLines(data)
    session = LogSession(source, lambda: None)
    session.port.height, session.port.width = height, width
    session.grown()
    return session, source


def shown(session: LogSession) -> list[str]:
    return [piece for _, _, piece in session.port.shown()]


async def test_it_follows_the_end_and_stands_still_when_scrolled_up() -> None:
    session, source = session_of(numbered(100))
    assert shown(session) == [f"line {n}" for n in range(95, 100)]
    source.append(b"line 100\n")
    session.grown()
    assert shown(session)[-1] == "line 100"
    session.port.move(-3)
    before = shown(session)
    source.append(numbered(50, "more"))
    session.grown()
    assert shown(session) == before == [f"line {n}" for n in range(93, 98)]
    session.port.move(1000)
    assert session.port.follow
    assert shown(session)[-1] == "more 49"


async def test_an_unfinished_line_grows_in_place() -> None:
    session, source = session_of(b"one\ntw")
    assert shown(session) == ["one", "tw"]
    source.append(b"o\nthree")
    session.grown()
    assert shown(session) == ["one", "two", "three"]


async def test_ten_million_lines_cost_a_screen_of_them() -> None:
    class Endless(BytesLines):
        asked = 0

        @property
        def line_count(self) -> int:
            return 10_000_000

        @property
        def size_bytes(self) -> int:
            return 1 << 30

        def lines(self, start: int, stop: int) -> list[str]:
            self.asked += stop - start
            return [f"line {number}" for number in range(start, stop)]

    source = Endless()
    session = LogSession(source, lambda: None)
    session.port.height = 40
    session.grown()
    assert shown(session)[-1] == "line 9999999"
    session.reveal(5_000_000, above=10)
    assert shown(session)[10] == "line 5000000"
    for _ in range(200):
        session.port.move(-1)
        session.port.shown()
    assert source.asked <= 2000


async def test_wrapped_lines_scroll_piece_by_piece_and_end_at_the_end() -> None:
    session, _ = session_of(b"a" * 45 + b"\n" + b"b" * 25 + b"\nc\n", height=4)
    session.port.wrap = True
    session.port.changed()
    assert shown(session) == ["a" * 5, "b" * 20, "b" * 5, "c"]
    session.port.move(-1)
    assert shown(session) == ["a" * 20, "a" * 5, "b" * 20, "b" * 5]
    session.port.move(-50)
    assert shown(session) == ["a" * 20, "a" * 20, "a" * 5, "b" * 20]
    session.port.move(1)
    assert shown(session)[0] == "a" * 20
    session.port.move(50)
    assert shown(session)[-1] == "c"


@pytest.mark.parametrize("text", ["", "abc", "ab" * 30, "広い" * 20 + "x", "e\u0301" * 30, "\U0001f600" * 9])
def test_wrapping_loses_nothing_and_fits(text: str) -> None:
    from rich.cells import cell_len

    pieces = wrap_text(text, 10)
    assert "".join(piece for _, piece in pieces) == text
    assert all(cell_len(piece) <= 10 for _, piece in pieces)
    assert [offset for offset, _ in pieces] == [text.index(piece, offset) for offset, piece in pieces]


async def test_searching_goes_from_where_one_looks_and_knows_places() -> None:
    session, source = session_of(numbered(5000) + b"needle\n" + numbered(10), height=10)
    session.find("line 4", regex=False, from_line=200)
    search = session.search
    assert search is not None
    await until(lambda: search.done)
    expected = [number for number, line in enumerate(source.data.split(b"\n")) if b"line 4" in line]
    assert search.count == len(expected)
    assert search.next_after(200) == next(line for line in expected if line > 200)
    assert search.previous_before(200) == [line for line in expected if line < 200][-1]
    assert search.next_after(expected[-1]) == expected[0]
    assert search.previous_before(expected[0]) == expected[-1]
    assert [search.ordinal(line) for line in expected] == list(range(1, len(expected) + 1))
    assert search.ordinal(5) is None
    source.append(b"line 4 again\n")
    session.grown()
    await until(lambda: search.done and search.count == len(expected) + 1)


async def test_a_faulty_expression_is_said_and_a_search_can_be_called_off() -> None:
    session, _ = session_of(numbered(200_000))
    with pytest.raises(re.error):
        session.find("(", regex=True, from_line=0)
    session.find("line", regex=False, from_line=0)
    search = session.search
    session.end_search()
    assert session.search is None
    assert search is not None
    seen = search.count
    await asyncio.sleep(0.05)
    assert search.count == seen


async def test_a_filter_keeps_the_place_and_grows_with_the_log() -> None:
    lines = b"".join(b"[2026-11-29 14:02:%02d TP%d] step %d\n" % (n % 60, n % 4, n) for n in range(400))
    session, source = session_of(lines)
    session.reveal(201, above=0)
    session.choose(ranks=frozenset({"TP1"}), least="debug", fold=False)
    await until(lambda: not session.rows.scanning)
    assert len(session.rows) == 100
    session.reveal(201, above=0)
    assert shown(session)[0].endswith("step 201")
    source.append(b"[2026-11-29 14:09:00 TP1] new\n[2026-11-29 14:09:00 TP2] other\n")
    session.grown()
    await until(lambda: len(session.rows) == 101)
    session.choose(ranks=frozenset(), least="debug", fold=False)
    assert len(session.rows) == source.line_count


async def test_another_generation_begins_anew() -> None:
    session, source = session_of(numbered(50))
    session.choose(ranks=frozenset(), least="error", fold=False)
    await until(lambda: not session.rows.scanning)
    assert len(session.rows) == 0
    source.replace(b"ERROR 11-29 14:12:42 [x.py:1] after the restart\n")
    session.grown()
    await until(lambda: len(session.rows) == 1)
    assert shown(session) == ["ERROR 11-29 14:12:42 [x.py:1] after the restart"]


async def test_selecting_by_keys_takes_whole_lines_both_ways() -> None:
    session, _ = session_of(numbered(20))
    session.port.go(4)
    session.range.start(None)
    session.range.extend(2)
    assert session.selected_text() == "line 4\nline 5\nline 6"
    session.range.extend(-4)
    assert session.selected_text() == "line 2\nline 3\nline 4"
    assert shown(session)[0] == "line 2"
    session.range.extend(12)
    assert session.selected_text().endswith("line 14")
    assert shown(session)[-1] == "line 14"


async def test_selecting_by_mouse_takes_characters() -> None:
    session, _ = session_of("first line\nzweite 広い Zeile\nlast\n".encode())
    session.range.press(6, 0)
    assert session.range.drag(9, 1)
    session.range.release()
    assert session.selected_text() == "line\nzweite 広"
    session.range.press(3, 2)
    session.range.release()
    assert session.range.ends is None


def test_what_was_lost_stands_between_the_lines(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append(b"".join(b"line %d\n" % n for n in range(10)))
    spool.mark("lost", 512, "512 bytes are lost here")
    spool.append(b"half")
    spool.mark("truncated", None, "the file was truncated")
    spool.append(b"line\n" + b"".join(b"line %d\n" % n for n in range(20, 40)))
    assert spool.mark_lines() == ((10, "512 bytes are lost here"), (11, "the file was truncated"))
    session = LogSession(spool, lambda: None)
    port = session.port
    port.width, port.height = 40, 8
    port.go(8)
    texts = [piece for _, _, piece in port.shown()]
    assert texts == ["line 8", "line 9", "512 bytes are lost here", "halfline", "the file was truncated", "line 20",
                     "line 21", "line 22"]  # fmt: skip
    port.forward(3)
    assert port.shown()[0][2] == "halfline"
    port.back(2)
    assert port.shown()[0][2] == "line 9"
    port.forward(1000)
    assert port.follow
    assert port.shown()[-1][2] == "line 39"
    assert len(port.shown()) == 8
    session.range.press(3, 0)
    port.go(9)
    session.range.press(2, 1)
    session.range.drag(4, 2)
    assert session.selected_text() == "half"
    spool.close()
