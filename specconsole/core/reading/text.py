"""Bytes of a log to physical lines, and a line's bytes to clean text.

From here on no byte can drive a terminal: escapes, control characters and direction overrides are gone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

LINE_CAP_BYTES = 64 * 1024
"""What is kept of one line; SGLang's `server_args=` line has 15 kB, vLLM's config line 8 kB."""

# Escape sequences: CSI (colours, cursor), OSC (titles, links, clipboard; ended by BEL or ST), two-character ones.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?|\x9b[0-?]*[ -/]*[@-~]"
)
# Colours whose ESC was made visible or eaten on the way: `^[[36m`, `\x1b[0m`, `\u001b[0m`, `#033[1;33m`, and plain
# `[1;33m...[0m` (journald, web consoles). A bare `[7m` is never text of a log.
_BARE_COLOURS = re.compile(r"(?:\^\[|\\x1[bB]|\\u001[bB]|\\033|#033|\\e|␛)?\[(?:\d{1,3}(?:;\d{1,3}){0,5}m|m(?!\w))")
# What has no business in a line: C0, DEL, C1, line and paragraph separators, direction overrides, soft markers.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]+")
_MAY_COLOUR = re.compile(r"\[(?:\d[\d;]{0,22}m|m(?!\w))")


def clean(raw: bytes) -> str:
    """Text of one line (no separator inside): UTF-8 with U+FFFD for what is not, escapes and controls off.

    Tabs become four blanks. Trailing white space goes, leading stays.
    """
    text = raw.decode("utf-8", "replace")
    return clean_text(text)


def clean_text(text: str) -> str:
    """The same for text that is decoded already (a message taken out of JSON)."""
    if text.isascii() and text.isprintable():
        return strip_bare_colours(text).rstrip() if "m" in text and "[" in text else text.rstrip()
    if "\t" in text:
        text = text.replace("\t", "    ")
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    text = _CONTROLS.sub("", text)
    return strip_bare_colours(text).rstrip()


def strip_bare_colours(text: str) -> str:
    """Takes off colour codes that lost their ESC."""
    return _BARE_COLOURS.sub("", text) if _MAY_COLOUR.search(text) else text


@dataclass(slots=True)
class Encoding:
    """Bytes as they arrive to UTF-8 without NULs, whatever the pieces.

    UTF-16 where the file begins with its byte order mark (PowerShell's `>` writes it). NULs are no part of any log:
    they stand where a file was truncated under a writer that kept its place.
    """

    order: str = "?"
    """`utf-16-le`, `utf-16-be`, "" for anything else, "?" before the first two bytes."""
    held: bytearray = field(default_factory=bytearray)
    """Half a character."""

    def feed(self, data: bytes) -> bytes:
        """What can be told so far."""
        if self.order:
            data = self._utf16(data)
        return data.replace(b"\0", b"") if b"\0" in data else data

    def begin_again(self) -> None:
        """Behind bytes that were lost."""
        self.order, self.held = self.order or "?", bytearray()

    def _utf16(self, data: bytes) -> bytes:
        data = bytes(self.held) + data
        self.held = bytearray()
        if self.order == "?":
            if data in (b"", b"\xff", b"\xfe"):
                self.held = bytearray(data)
                return b""
            self.order = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(data[:2], "")
            if not self.order:
                return data
        end = len(data) & ~1
        high = end - (1 if self.order == "utf-16-le" else 2)
        if end and 0xD8 <= data[high] <= 0xDB:
            end -= 2  # the first half of a pair
        self.held = bytearray(data[end:])
        return data[:end].decode(self.order, "replace").encode("utf-8", "replace").removeprefix(b"\xef\xbb\xbf")


@dataclass(slots=True)
class Splitter:
    """Cuts arriving bytes behind LF, CR or CR LF; what stands behind the last one waits, capped.

    A CR at the end of a piece is held back until the next byte shows whether it belongs to a CR LF, so the result
    does not depend on how the bytes were chunked.
    """

    pending: bytearray = field(default_factory=bytearray)
    cr_held: bool = False

    def feed(self, data: bytes) -> bytes:
        """Whole pieces up to the last separator (with separators), b"" when there is none yet."""
        if not data:
            return b""
        if self.cr_held:
            data = b"\r" + data
        self.cr_held = data.endswith(b"\r")
        if self.cr_held:
            data = data[:-1]
        cut = data.rfind(b"\n") + 1
        cut = (data.rfind(b"\r", cut) + 1) or cut
        if not cut:
            room = LINE_CAP_BYTES - len(self.pending)
            if room > 0:
                self.pending += data[:room]
            return b""
        whole = cut == len(data)
        if self.pending:
            block = b"".join((self.pending, data if whole else memoryview(data)[:cut]))
        else:
            block = data if whole else data[:cut]
        self.pending = bytearray(data[cut : cut + LINE_CAP_BYTES])
        return block
