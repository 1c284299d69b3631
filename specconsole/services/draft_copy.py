"""What a person may ask beside the looks: a copy of a draft that knows more positions, and how two drafts overlap."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from specconsole.core.launching.config_copy import COPY, longer_config
from specconsole.core.launching.draft_facts import longest_context
from specconsole.core.launching.draft_maps import overlap
from specconsole.core.launching.findings import of_draft
from specconsole.core.launching.model_check import target_path
from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.profile import Profile
from specconsole.errors import BadInputError, RefusedError
from specconsole.ports import Transport
from specconsole.services.model_look import look_at_model, read_maps

_WHY = {
    "exists": "there is something of that name",
    "no-folder": "the draft is no folder on the host",
    "folder": "its folder can't be made",
    "link": "a link could not be made",
    "move": "it could not be put in its place",
}


async def write_config_copy(transport: Transport, draft: str, folder: str, context: int) -> str:
    """Makes `folder` on the host: links to the draft's files, and a config.json with `context` positions.

    Returns its path as the host has it; whatever goes wrong, nothing of it stays. Raises RefusedError where it is
    there already or can't be made, BadInputError for a config.json that is none or knows enough, TransportError.
    """
    text = json.dumps(longer_config(await _config(transport, draft), context), indent=2, ensure_ascii=False) + "\n"
    new = await _step(transport, folder, ["begin", draft, folder])
    try:
        await transport.write_file(f"{new}/config.json", text.encode(), mode=0o644)
        return await _step(transport, folder, ["end", new, folder])
    except BaseException:
        # A cancelled one too.
        await asyncio.shield(transport.run_sh(COPY, ["undo", new, ""], timeout_s=30))
        raise


async def target_context(transport: Transport, profile: Profile) -> int | None:
    """The longest context of a profile's target, which a server takes where none is set; None where it is not known."""
    path = target_path(profile)
    if path is None:
        return None
    _, model = await look_at_model(transport, "model", path)
    return longest_context(model.config) if model.config else None


async def _config(transport: Transport, draft: str) -> dict[str, Any]:
    found, _ = await look_at_model(transport, "draft", draft)
    where = f"{transport.host}:{draft}"
    if found.kind != "folder" or "config.json" not in found.files:
        raise BadInputError("the draft has no config.json", where=where, try_="the folder that holds it")
    try:
        config = json.loads(found.files["config.json"].head.decode("utf-8"))
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        raise BadInputError("config.json is no JSON table", where=where, try_="download it again")
    return config


async def _step(transport: Transport, folder: str, words: list[str]) -> str:
    done = await transport.run_sh(COPY, words, timeout_s=60)
    key, _, value = done.stdout.decode("utf-8", "surrogateescape").strip().partition("=")
    if key == "made" and value:
        return value
    raise RefusedError(f"no copy was made: {_WHY.get(value, 'the host did not say why')}",
                       where=f"{transport.host}:{folder}", try_="another folder")  # fmt: skip


async def compare_drafts(transport: Transport, draft: str, other: str) -> Finding:
    """How far the maps of two drafts draft the same tokens. Raises TransportError, TimeoutError."""
    maps: list[Any] = []
    for path in (draft, other):
        found, model = await look_at_model(transport, "draft", path)
        maps.append((await read_maps(transport, found, model)).d2t)
    if maps[0] is None or maps[1] is None:
        which = draft if maps[0] is None else other
        return Finding("draft", "note", f"{which} has no d2t that can be read: nothing to compare", name="overlap")
    return of_draft(overlap(maps[0], maps[1]))
