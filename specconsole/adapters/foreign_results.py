"""Result files of other benchmark clients: one JSON document, or one a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specconsole.errors import BadInputError, NotFoundError

LIMIT_BYTES = 256 * 1024 * 1024


def read_documents(path: Path) -> tuple[list[Mapping[str, Any]], float]:
    """The objects of a file, and when it was last written. Raises NotFoundError, BadInputError with file and line."""
    path = path.expanduser()
    try:
        facts = path.stat()
        if facts.st_size > LIMIT_BYTES:
            raise BadInputError("is over 256 MiB", where=str(path), try_="write it without per-request details")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NotFoundError("no such file", where=str(path)) from None
    except OSError as error:
        raise BadInputError(error.strerror or "can't be read", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise BadInputError(f"is not UTF-8 text (byte {error.start})", where=str(path)) from None
    try:
        whole = json.loads(text)
        entries = whole if isinstance(whole, list) else [whole]
        if all(isinstance(entry, Mapping) for entry in entries):
            return entries, facts.st_mtime
        raise BadInputError("holds something else than objects", where=str(path))
    except ValueError:
        pass
    found: list[Mapping[str, Any]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise BadInputError(f"is no JSON: {error}", where=f"{path}:{number}") from None
        if not isinstance(entry, Mapping):
            raise BadInputError("is no object", where=f"{path}:{number}")
        found.append(entry)
    return found, facts.st_mtime
