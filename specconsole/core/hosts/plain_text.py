"""Remote text (banners, prompts, server replies) as one harmless line for a person."""

from __future__ import annotations


def one_line(text: str | bytes, limit: int = 300) -> str:
    """Control and format characters become blanks, runs of blanks one, the rest is cut at `limit`.

    Nothing that comes out can move a cursor or turn text around (C0, C1, bidirectional overrides are all
    "not printable" to Python).
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    text = " ".join("".join(c if c.isprintable() else " " for c in text[: limit * 8]).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
