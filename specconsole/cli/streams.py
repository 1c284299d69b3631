"""The standard streams as a shell really gives them: closed, full, or with a reader that leaves (`| head`)."""

from __future__ import annotations

import errno
import os
import sys
from typing import TextIO

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


def open_missing() -> None:
    """Puts /dev/null where descriptor 0, 1 or 2 is closed (`>&-`).

    Otherwise the next file that is opened gets that number, and a line meant for the terminal lands in it.
    """
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(fd)
        except OSError:
            # The lowest free number is this one: those before it are open by now.
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(fd, mode, encoding="utf-8", closefd=False))


def output_gone(error: BaseException) -> bool:
    """Whether it is about standard output: its reader left, or there is no room where it goes."""
    if isinstance(error, BrokenPipeError):
        return True
    return isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None


def drop(stream: TextIO) -> None:
    """Sends what is still held to /dev/null, so that the interpreter's last flush has nothing to complain about."""
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, stream.fileno())
    finally:
        os.close(null)
