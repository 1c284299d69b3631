"""A pasted shell command taken apart as `sh` would, as far as a launch command goes.

Quotes, backslashes, line continuations, `$'...'`, comments, `NAME=value` prefixes, plain `$NAME`, bash's arrays and
here-documents are understood; what would need a running shell (`$(...)`, backticks, globs, arithmetic) is kept as
written and reported, never guessed.
Commands are split at `;`, `&&`, `||`, `|`, `&`, brackets and line ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ANSI_C = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "e": "\x1b"}


@dataclass(frozen=True, slots=True)
class ShellWord:
    text: str
    quoted: bool = False
    """Any part of it stood in quotes or behind a backslash (a quoted `NAME=x` is no assignment)."""
    operator: bool = False
    """`;`, `&&`, `||`, `|`, `&`, or a redirection such as `2>&1`, `>`."""
    array: tuple[str, ...] | None = None
    """`NAME=(a b)`: the array's words; `text` is `NAME=` or `NAME+=`."""
    body: str | None = None
    """The text of a here-document whose end this word names."""


class ShellSyntaxError(ValueError):
    """The text is no complete shell command (an open quote)."""


def split_words(
    text: str, variables: Mapping[str, str], arrays: Mapping[str, Sequence[str]] | None = None
) -> tuple[list[ShellWord], list[str]]:
    """Words and operators in order, and the expressions that were left as they stand.

    `variables` and `arrays` are the ones known so far (assignments of earlier commands); others stay as `$NAME` and
    are reported. Raises ShellSyntaxError for an open quote.
    """
    scanner = _Scanner(text, variables, arrays or {})
    scanner.run()
    return scanner.words, scanner.unresolved


class _Scanner:
    def __init__(self, text: str, variables: Mapping[str, str], arrays: Mapping[str, Sequence[str]]) -> None:
        self.text = text.replace("\r\n", "\n")
        self.variables = variables
        self.arrays = arrays
        self.documents: list[int] = []
        """Words that name the end of a here-document whose text has not come yet."""
        self.words: list[ShellWord] = []
        self.unresolved: list[str] = []
        self.at = 0
        self.part: list[str] = []
        self.open = False
        self.quoted = False

    def run(self, until: str = "") -> None:
        text = self.text
        while self.at < len(text):
            c = text[self.at]
            if until and c == until:
                self.at += 1
                break
            if c == "\\":
                if text[self.at + 1 : self.at + 2] == "\n":
                    self.at += 2
                elif self.at + 1 < len(text):
                    self.take(text[self.at + 1], quoted=True)
                    self.at += 2
                else:
                    self.at += 1
            elif c in " \t":
                self.end_word()
                self.at += 1
            elif c == "\n":
                self.operator(";", 1)
                self.take_documents()
            elif c == "(" and self.open and not self.quoted and _ARRAY.fullmatch("".join(self.part)):
                self.array()
            elif c in "()":
                self.operator(";", 1)
            elif c == "#" and not self.open:
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            elif c == "'":
                end = text.find("'", self.at + 1)
                if end < 0:
                    raise ShellSyntaxError("a ' is not closed")
                self.take(text[self.at + 1 : end], quoted=True)
                self.at = end + 1
            elif c == '"':
                self.at += 1
                self.double_quoted()
            elif text.startswith("$'", self.at):
                self.ansi_c_quoted()
            elif c in "$`":
                self.expansion()
            elif c in ";|&<>":
                self.operators()
            else:
                self.take(c)
                self.at += 1
        self.end_word()

    def take(self, text: str, *, quoted: bool = False) -> None:
        self.part.append(text)
        self.open = True
        self.quoted = self.quoted or quoted

    def end_word(self) -> None:
        if self.open:
            text = "".join(self.part)
            if not self.quoted and any(c in text for c in "*?[") and not text.startswith("-"):
                self.unresolved.append(text)
            if not self.quoted and (text == "~" or text.startswith("~/")):
                home = self.variables.get("HOME")
                text = home + text[1:] if home else text
            if self.words and self.words[-1].operator and self.words[-1].text.endswith(("<<", "<<-")):
                self.documents.append(len(self.words))
            self.words.append(ShellWord(text, self.quoted))
        self.part, self.open, self.quoted = [], False, False

    def take_documents(self) -> None:
        """The texts of here-documents, which begin behind the line that names them."""
        for index in self.documents:
            word, lines = self.words[index], []
            tabs = self.words[index - 1].text.endswith("-")
            while self.at < len(self.text):
                line, end, _ = self.text[self.at :].partition("\n")
                self.at += len(line) + len(end)
                line = line.lstrip("\t") if tabs else line
                if line == word.text:
                    break
                lines.append(line + end)
            self.words[index] = replace(word, body="".join(lines))
        self.documents = []

    def array(self) -> None:
        """`NAME=(words)`: read as words of their own, up to the bracket that closes it."""
        inner = _Scanner(self.text, self.variables, self.arrays)
        inner.at = self.at + 1
        inner.run(until=")")
        self.unresolved += inner.unresolved
        self.at = inner.at
        name = "".join(self.part)
        self.part, self.open, self.quoted = [], False, False
        found = tuple(word.text for word in inner.words if not word.operator)
        self.words.append(ShellWord(name, array=found))

    def operator(self, sign: str, length: int) -> None:
        self.end_word()
        self.words.append(ShellWord(sign, operator=True))
        self.at += length

    def operators(self) -> None:
        # A file descriptor number glued to a redirection belongs to it: `2>&1`.
        match = re.match(r"&>>?|>>|>&[-0-9]*|<&[-0-9]*|<<<|<<-?|[<>]|&&|\|\||\|&|[;|&]", self.text[self.at :])
        assert match is not None
        sign = match.group()
        if sign[0] in "<>" and self.open and not self.quoted and "".join(self.part).isdigit():
            sign = "".join(self.part) + sign
            self.part, self.open = [], False
            self.operator(sign, match.end())
            return
        self.operator(sign, match.end())

    def double_quoted(self) -> None:
        self.take("", quoted=True)
        while self.at < len(self.text):
            c = self.text[self.at]
            if c == '"':
                self.at += 1
                return
            if c == "\\" and self.text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                follower = self.text[self.at + 1]
                self.take("" if follower == "\n" else follower, quoted=True)
                self.at += 2
            elif c in "$`":
                self.expansion(quoted=True)
            else:
                self.take(c, quoted=True)
                self.at += 1
        raise ShellSyntaxError('a " is not closed')

    def ansi_c_quoted(self) -> None:
        self.at += 2
        self.take("", quoted=True)
        while self.at < len(self.text):
            c = self.text[self.at]
            if c == "'":
                self.at += 1
                return
            if c == "\\" and self.at + 1 < len(self.text):
                follower = self.text[self.at + 1]
                self.take(_ANSI_C.get(follower, "\\" + follower), quoted=True)
                self.at += 2
            else:
                self.take(c, quoted=True)
                self.at += 1
        raise ShellSyntaxError("a $' is not closed")

    def spread(self, values: Sequence[str], *, quoted: bool) -> None:
        """An array's words, each a word; what stands around them sticks to the first and the last."""
        values = values if quoted else [part for value in values for part in value.split()]
        for index, value in enumerate(values):
            if index:
                self.end_word()
            self.take(value, quoted=quoted)
        if not values and quoted and not "".join(self.part):
            # "${NONE[@]}" is no word at all.
            self.part, self.open = [], False

    def expansion(self, *, quoted: bool = False) -> None:
        rest = self.text[self.at :]
        whole = re.match(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\[[@*]\]\}", rest)
        if whole and whole.group(1) in self.arrays:
            self.at += whole.end()
            self.spread(self.arrays[whole.group(1)], quoted=quoted)
            return
        plain = re.match(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?::?[-=]([^}]*))?\})", rest)
        if plain:
            name = plain.group(1) or plain.group(2)
            value = self.variables.get(name)
            if value is None and plain.group(3) is not None:
                value = plain.group(3)
            if value is None:
                value = plain.group()
                self.unresolved.append(value)
            elif not quoted and not self.open and len(value.split()) > 1:
                # An unquoted variable falls into words, as it would in the shell.
                *first, last = value.split()
                self.words.extend(ShellWord(word) for word in first)
                value = last
            elif not quoted and value == "" and not self.open:
                self.at += plain.end()
                return
            self.take(value, quoted=quoted)
            self.at += plain.end()
            return
        length = _span(rest)
        if length > 1:
            self.unresolved.append(rest[:length])
        self.take(rest[:length], quoted=quoted or length > 1)
        self.at += length


_ARRAY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")


def _span(text: str) -> int:
    """Length of `$(...)`, `${...}` or a backtick expression at the start; 1 for a lone sign."""
    if text.startswith("`"):
        end = text.find("`", 1)
        return len(text) if end < 0 else end + 1
    for opening, closing in (("$(", ")"), ("${", "}")):
        if text.startswith(opening):
            depth = 0
            for index, c in enumerate(text):
                if c == opening[1]:
                    depth += 1
                elif c == closing:
                    depth -= 1
                    if depth == 0:
                        return index + 1
            return len(text)
    return 1


def assignment(word: ShellWord) -> tuple[str, str] | None:
    """`NAME=value` as (name, value); None for another word. The name itself must not be quoted."""
    name, sign, value = word.text.partition("=")
    return (name, value) if sign and _NAME.fullmatch(name) else None
