"""Where an engine's settings stand in the form, and what kind of value they take where the help does not say.

There is one `LAYOUT` in each `core/engines/NAME/form_layout.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

Section = Literal["model", "speculation", "parallelism", "memory", "server", "environment", "raw flags"]
SECTIONS: tuple[Section, ...] = get_args(Section)

Kind = Literal["switch", "on-off", "choice", "int", "float", "text", "path", "list", "table"]
"""`switch`: a bare flag, there or not. `on-off`: one that can also be said off (`--no-x`)."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One setting with its place."""

    name: str
    """Python name; `table.key` is a key inside a setting that is a table."""
    kind: Kind | None = None
    """None: as the server's help says."""


@dataclass(frozen=True, slots=True)
class FormLayout:
    """The settings that people of one engine change, in the order in which they think of them."""

    sections: Mapping[Section, tuple[Placed, ...]]
    suggestions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values to choose from where the help has no list; others are taken too."""
    help: Mapping[str, str] = field(default_factory=dict)
    """Of keys inside tables, which no `--help` explains."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that people set -> what they do."""


def placed(words: str) -> tuple[Placed, ...]:
    """`"tp_size:int page_size"` as settings with their kinds."""
    found: list[Placed] = []
    for word in words.split():
        name, _, kind = word.partition(":")
        if kind and kind not in get_args(Kind):
            raise ValueError(word)
        found.append(Placed(name, kind or None))  # type: ignore[arg-type]  # one of Kind, looked at above
    return tuple(found)


NCCL_VARIABLES: Mapping[str, str] = {
    "NCCL_DEBUG": "how much NCCL writes to the log: VERSION, WARN, INFO, TRACE",
    "NCCL_ALGO": "the collective algorithm: Ring, Tree, NVLS, CollNet",
    "NCCL_PROTO": "the protocol: LL, LL128, Simple",
    "NCCL_P2P_DISABLE": "1: no direct copies between GPUs",
    "NCCL_IB_DISABLE": "1: no InfiniBand, sockets instead",
    "NCCL_SOCKET_IFNAME": "the network interface of sockets",
    "NCCL_CUMEM_ENABLE": "0: buffers without CUDA's virtual memory calls",
    "NCCL_NVLS_ENABLE": "0: no NVLink SHARP",
    "GLOO_SOCKET_IFNAME": "the network interface of torch's gloo",
    "CUDA_VISIBLE_DEVICES": "which GPUs the server sees, as numbers or UUIDs",
    "OMP_NUM_THREADS": "threads of each process's CPU work",
    "PYTORCH_CUDA_ALLOC_CONF": "torch's allocator, as in expandable_segments:True",
    "HF_HOME": "where the hub's downloads are kept",
    "HF_HUB_OFFLINE": "1: nothing is asked of the hub",
}
