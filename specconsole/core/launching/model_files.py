"""A checkpoint -> what it holds and what is wrong with it: configuration, shards, sizes, headers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from specconsole.core.launching.checkpoint import Checkpoint, FoundFile
from specconsole.core.launching.draft_facts import architecture_of, longest_context, text_config
from specconsole.core.launching.engine_settings import ModelFacts
from specconsole.core.launching.gguf_header import CutHeadError, GgufError, GgufHead, parse_gguf
from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.safetensors_header import (
    CorruptHeaderError,
    Header,
    Tensor,
    header_length,
    parse_header,
)

_SHARD = re.compile(r"^(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.(?P<kind>safetensors|gguf)$")
_NAMED = 4
"""Names of files that one finding lists."""


@dataclass(frozen=True, slots=True)
class Model:
    """A target or a draft as its files describe it."""

    config: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    where: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Tensor -> (file, offset of the file's data)."""
    weights_bytes: int | None = None
    gguf: GgufHead | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def facts(self) -> ModelFacts:
        if self.gguf is not None:
            name = self.gguf.metadata.get("general.architecture")
            return ModelFacts(name if isinstance(name, str) else None, self.gguf.number("context_length"))
        inner = text_config(self.config)
        heads, mtp = inner.get("num_attention_heads"), inner.get("num_nextn_predict_layers")
        return ModelFacts(
            architecture_of(self.config),
            longest_context(self.config) if self.config else None,
            heads if isinstance(heads, int) and heads > 0 else None,
            mtp if isinstance(mtp, int) and mtp > 0 else None,
        )


def read_model(role: str, path: str, found: Checkpoint) -> Model:
    """`role` is `model` or `draft`. A path that is missing is judged elsewhere: here it gives no findings."""
    if found.kind == "missing":
        return Model()
    if found.kind == "unknown":
        return Model(findings=(Finding(role, "warning", f"the files of {role} {path} could not be looked at whole"),))
    says = _Says(role)
    if found.kind == "odd":
        says.stop("kind", f"{path} is neither a file nor a folder")
        return Model(findings=tuple(says.found))
    if found.broken:
        says.stop("links", f"{_names(found.broken)} lead nowhere")
    if found.unreadable:
        says.stop("unreadable", f"{_names(found.unreadable)} can't be read by this account, or are no files")
    if any(name.endswith(".gguf") for name in found.files) and found.kind == "single":
        return _gguf(says, found)
    if found.kind == "single":
        return Model(findings=tuple(says.found))
    return _folder(says, path, found)


class _Says:
    def __init__(self, role: str) -> None:
        self.role = role
        self.found: list[Finding] = []

    def stop(self, name: str, text: str, try_: str = "") -> None:
        self.found.append(Finding(self.role, "stop", f"{self.role}: {text}", try_, name))

    def warn(self, name: str, text: str, try_: str = "") -> None:
        self.found.append(Finding(self.role, "warning", f"{self.role}: {text}", try_, name))


def _folder(says: _Says, path: str, found: Checkpoint) -> Model:
    config = _json(says, found.files.get("config.json"), "config.json")
    if "config.json" not in found.files:
        says.stop("config", f"no config.json in {path}", "the folder that holds config.json and the shards")
    shards = {name: one for name, one in found.files.items() if name.endswith(".safetensors")}
    index_name = next((name for name in sorted(found.files) if name.endswith(".safetensors.index.json")), None)
    index = _json(says, found.files.get(index_name), index_name) if index_name is not None else {}
    weight_map = index.get("weight_map")
    weight_map = weight_map if isinstance(weight_map, Mapping) else {}
    wanted = {str(name) for name in weight_map.values()} | _counted(shards)
    missing = sorted(wanted - set(shards) - set(found.broken))
    if missing:
        says.stop(
            "shards-missing", f"{len(missing)} of {len(wanted)} shards missing: {_names(missing)}", "download again"
        )
    if not shards and not missing and not found.broken:
        if not any(name.endswith((".bin", ".pt", ".gguf", ".pth")) for name in found.files):
            says.stop("weights", f"no weights in {path}")
        return Model(config, findings=tuple(says.found))
    headers = {name: header for name, one in shards.items() if (header := _header(says, name, one)) is not None}
    tensors = {name: tensor for header in headers.values() for name, tensor in header.tensors.items()}
    where = {t: (name, header.data_start) for name, header in headers.items() for t in header.tensors}
    complete = len(headers) == len(shards) and not (missing or found.broken or found.unreadable)
    if complete:
        lacking = sorted(set(map(str, weight_map)) - set(tensors))
        if lacking:
            says.stop("tensors", f"{len(lacking)} tensors of the index are in no shard: {_names(lacking)}")
        total = index.get("metadata", {}).get("total_size") if isinstance(index.get("metadata"), Mapping) else None
        held = sum(tensor.size_bytes for tensor in tensors.values())
        if isinstance(total, int) and total != held:
            says.warn("total-size", f"the index speaks of {total} bytes, the shards hold {held}")
    if not says.found:
        says.found.append(Finding(says.role, "ok", f"{says.role}: {len(shards)} shards are whole", name="shards"))
    weights = sum(one.size_bytes for one in shards.values())
    return Model(config, tensors, where, weights if complete else None, None, tuple(says.found))


def _header(says: _Says, name: str, one: FoundFile) -> Header | None:
    try:
        if len(one.head) >= 8 and len(one.head) < 8 + header_length(one.head, one.size_bytes):
            says.warn("header", f"the header of {name} is too long to be looked at")
            return None
        return parse_header(one.head, one.size_bytes)
    except CorruptHeaderError as error:
        says.stop("shard-damaged", f"{name} is damaged: {error}", "download it again")
        return None


def _gguf(says: _Says, found: Checkpoint) -> Model:
    missing = sorted(_counted(found.files) - set(found.files) - set(found.broken))
    if missing:
        says.stop("shards-missing", f"shards missing: {_names(missing)}", "download again")
    head: GgufHead | None = None
    for name, one in sorted(found.files.items()):
        try:
            read = parse_gguf(one.head)
        except CutHeadError as error:
            if len(one.head) < one.size_bytes:
                says.warn("header", f"the header of {name} is too long to be looked at")
            else:
                says.stop("shard-damaged", f"{name} is damaged: {error}", "download it again")
            continue
        except GgufError as error:
            says.stop("shard-damaged", f"{name}: {error}", "download it again")
            continue
        head = head or read
        if read.needed_bytes is not None and one.size_bytes < read.needed_bytes:
            text = f"{name} is cut: its tensors need {read.needed_bytes} bytes, the file has {one.size_bytes}"
            says.stop("shard-damaged", text, "download it again")
    if not says.found:
        says.found.append(
            Finding(says.role, "ok", f"{says.role}: {len(found.files)} GGUF files are whole", name="shards")
        )
    weights = sum(one.size_bytes for one in found.files.values())
    return Model(weights_bytes=weights, gguf=head, findings=tuple(says.found))


def _counted(files: Iterable[str]) -> set[str]:
    """All names that `x-00001-of-00003.safetensors` speaks of."""
    wanted: set[str] = set()
    for name in files:
        if match := _SHARD.match(name):
            stem, count, kind = match["stem"], match["count"], match["kind"]
            wanted |= {f"{stem}-{number:05d}-of-{count}.{kind}" for number in range(1, int(count) + 1)}
    return wanted


def _json(says: _Says, one: FoundFile | None, name: str | None) -> dict[str, Any]:
    if one is None:
        return {}
    try:
        value = json.loads(one.head.decode("utf-8"))
    except (ValueError, RecursionError):
        says.stop("config", f"{name} is no JSON", "download it again")
        return {}
    if not isinstance(value, dict):
        says.stop("config", f"{name} is no table", "download it again")
        return {}
    return value


def _names(names: Iterable[str]) -> str:
    known = list(names)
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    return ", ".join(name.encode("utf-8", "replace").decode() for name in known[:_NAMED]) + more
