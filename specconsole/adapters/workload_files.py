"""Workloads and their prompts from files: TOML read strictly, prompt files in the forms that people have.

Prompt files, told apart by their content: plain text (one prompt a line), JSON lines with `prompt` or `messages`, a
JSON list of either, ShareGPT (`conversations` with `from` and `value`: the first human turn). An unreadable line is
named with file and line.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from specconsole.adapters.toml_files import named_files, read_toml
from specconsole.core.launching.toml_place import line_of, nearest
from specconsole.core.measuring.workload import Prompt, Sampling, Workload
from specconsole.errors import BadInputError, NotFoundError

KINDS_WITHOUT_SET = ("file", "random-tokens")
_RANGES = ("prompt_tokens", "output_tokens")
_FIELDS = {field.name for field in dataclasses.fields(Workload)}
_SAMPLING = {field.name for field in dataclasses.fields(Sampling)}
PROMPT_FILE_LIMIT_BYTES = 512 * 1024 * 1024


class WorkloadFiles:
    """Workloads by name, from several folders: a user's own hides a shipped one of the same name."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)

    def paths(self) -> dict[str, Path]:
        return {name: found[0] for name, found in named_files(self._folders).items()}

    def read(self, name_or_path: str) -> tuple[Workload, list[Prompt]]:
        """A workload and its prompts. Raises NotFoundError, BadInputError with file, line and key."""
        if "/" in name_or_path or name_or_path.endswith(".toml"):
            path = Path(name_or_path).expanduser()
        else:
            known = self.paths()
            if name_or_path not in known:
                close = nearest(name_or_path, known)
                hint = f"did you mean {close}?" if close else f"workloads: {', '.join(sorted(known)) or 'none'}"
                raise NotFoundError(f"no workload named {name_or_path}", try_=hint)
            path = known[name_or_path]
        data, text = read_toml(path)
        workload = decode_workload(data, text, str(path), name=path.stem)
        return workload, self._prompts(workload, path.parent)

    def _prompts(self, workload: Workload, folder: Path) -> list[Prompt]:
        if workload.kind == "random-tokens":
            return []
        if workload.kind == "file":
            if not workload.prompt_file:
                raise BadInputError("`prompt_file` is missing", where=workload.name, try_='kind = "chat"')
            return read_prompts((folder / Path(workload.prompt_file).expanduser()).resolve())
        for place in (folder, *self._folders):
            path = place / "prompts" / f"{workload.kind}.txt"
            if path.is_file():
                return read_prompts(path)
        sets = sorted({p.stem for place in self._folders for p in (place / "prompts").glob("*.txt")})
        have = ", ".join((*sets, *KINDS_WITHOUT_SET))
        raise BadInputError(f'`kind` is "{workload.kind}"', where=workload.name, try_=f"one of {have}")


def decode_workload(data: Mapping[str, Any], text: str, source: str, *, name: str) -> Workload:
    """A workload from a parsed TOML file. Raises BadInputError with file, line, key and the nearest known key."""

    def place(*path: str) -> str:
        line = line_of(text, path)
        return f"{source}:{line}" if line is not None else source

    for key in data:
        if key not in _FIELDS:
            close = nearest(key, _FIELDS)
            hint = f"did you mean `{close}`?" if close else f"known keys: {', '.join(sorted(_FIELDS))}"
            raise BadInputError(f"`{key}` is not a known key", where=place(key), try_=hint)
    for key in data.get("sampling", {}) if isinstance(data.get("sampling"), Mapping) else ():
        if key not in _SAMPLING:
            close = nearest(key, _SAMPLING)
            hint = f"did you mean `{close}`?" if close else f"known keys: {', '.join(sorted(_SAMPLING))}"
            raise BadInputError(f"`sampling.{key}` is not a known key", where=place("sampling", key), try_=hint)
    shape = {"name": name, **data}
    for key in _RANGES:
        if isinstance(shape.get(key), int) and not isinstance(shape.get(key), bool):
            shape[key] = [shape[key], shape[key]]
    try:
        workload = msgspec.convert(shape, Workload)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        key = re.sub(r"\[.*", "", where.rstrip("`")) or "?"
        raise BadInputError(f"`{key}`: {what}", where=place(*key.split("."))) from None
    for key, bad in _bad_values(workload):
        raise BadInputError(f"`{key}` {bad}", where=place(key))
    return workload


def _bad_values(workload: Workload) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key in _RANGES:
        limits = getattr(workload, key)
        if limits is not None and not 1 <= limits[0] <= limits[1]:
            found.append((key, f"must be a range from at least 1, not {list(limits)}"))
    if not workload.concurrency and not workload.rate_per_s:
        found.append(("concurrency", "is empty"))
    if any(not 1 <= c <= 8192 for c in workload.concurrency):
        found.append(("concurrency", "must be from 1 to 8192"))
    if any(not 0 < r <= 100_000 for r in workload.rate_per_s):
        found.append(("rate_per_s", "must be over 0"))
    if not 0 <= workload.shared_prefix_ratio <= 1:
        found.append(("shared_prefix_ratio", "must be from 0 to 1"))
    if workload.requests_per_concurrency < 1 or workload.least_requests < 1:
        found.append(("requests_per_concurrency", "must be at least 1"))
    if workload.duration_s is not None and not 0 < workload.duration_s <= 86400:
        found.append(("duration_s", "must be over 0 and at most a day"))
    if not 0 <= workload.sampling.temperature <= 10:
        found.append(("sampling", "temperature must be from 0 to 10"))
    return found


def read_prompts(path: Path) -> list[Prompt]:
    """Prompts of a file. Raises BadInputError naming file and line."""
    try:
        if path.stat().st_size > PROMPT_FILE_LIMIT_BYTES:
            raise BadInputError("is over 512 MiB", where=str(path), try_="a part of it")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInputError(error.strerror or "can't be read", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise BadInputError(f"is not UTF-8 text (byte {error.start})", where=str(path)) from None
    start = text.lstrip()[:1]
    if start == "[":
        try:
            entries = json.loads(text)
        except ValueError as error:
            line = getattr(error, "lineno", 1)
            raise BadInputError(f"is no JSON: {error}", where=f"{path}:{line}") from None
        found = [_prompt(entry, f"{path}: entry {number}") for number, entry in enumerate(entries, 1)]
    elif start == "{":
        found = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                try:
                    entry = json.loads(line)
                except ValueError as error:
                    raise BadInputError(f"is no JSON: {error}", where=f"{path}:{number}") from None
                found.append(_prompt(entry, f"{path}:{number}"))
    else:
        found = [Prompt(line.strip()) for line in text.splitlines() if line.strip()]
    kept = [prompt for prompt in found if prompt is not None]
    if not kept:
        raise BadInputError("holds no prompt", where=str(path))
    return kept


def _prompt(entry: Any, where: str) -> Prompt | None:
    """One entry; None for a ShareGPT conversation without a human turn."""
    if isinstance(entry, str):
        return Prompt(entry)
    if isinstance(entry, Mapping):
        if isinstance(entry.get("prompt"), str):
            return Prompt(entry["prompt"])
        messages = entry.get("messages")
        if isinstance(messages, list) and all(isinstance(m, Mapping) for m in messages) and messages:
            return Prompt(messages=tuple({k: str(v) for k, v in m.items()} for m in messages))
        turns = entry.get("conversations")
        if isinstance(turns, list):
            humans = (t for t in turns if isinstance(t, Mapping) and t.get("from") in ("human", "user"))
            first = next(humans, None)
            return Prompt(str(first.get("value", ""))) if first else None
    raise BadInputError("has neither `prompt` nor `messages` nor `conversations`", where=where)
