"""Text Generation Inference (launcher, router and shards), 1.x to 3.x."""

from __future__ import annotations

import re
from collections.abc import Sequence

from specconsole.core.reading.events import (
    Busy,
    Count,
    Enter,
    Event,
    Facts,
    Heartbeat,
    Leave,
    Ready,
    Started,
    StopAsked,
)
from specconsole.core.reading.generic_table import Row, TableDialect, number, row


def _args(match: re.Match[str]) -> Sequence[Event]:
    text = match.string
    model = re.search(r'model_id: "([^"]+)"', text)
    port = re.search(r"\bport: (\d{1,5})\b", text)
    return (
        Started(),
        Enter("starting"),
        Facts(model=model[1] if model else None, port=int(port[1]) if port else None),
    )


def _downloaded(match: re.Match[str]) -> Sequence[Event]:
    return (Count(int(match[1]), int(match[2]), "file", "download"),)


_ROWS: tuple[Row, ...] = (
    # `INFO text_generation_launcher: Args { model_id: "acme/M-7B", revision: None, ..., port: 80, ... }`
    row("Args {", r"Args \{ ?$|Args \{ *model_id", make=_args),
    # `Starting check and download process for acme/M-7B` (2.x) / `Starting download process.` (1.x)
    row(
        "download process",
        r"Starting (?:check and )?download process(?: for (\S+))?",
        make=lambda m: (Enter("download"), Facts(model=m[1])),
    ),
    # `Download file: model-00001-of-00002.safetensors`
    row("Download file:", r"Download file: ", Enter("download", stay=True)),
    # `Download: [3/30] -- ETA: 0:12:00` (hub.py)
    row("Download: [", r"Download: \[(\d{1,6})/(\d{1,6})\]", make=_downloaded),
    # `Files are already present on the host. Skipping download.`; `Successfully downloaded weights for acme/M-7B`
    row("downloaded weights", r"Successfully downloaded weights", Leave("download")),
    # `Starting shard rank=0` (launcher)
    row("Starting shard", r"Starting shard", Enter("weights", "target")),
    # `Waiting for shard to be ready... rank=0` (every 10 s)
    row("Waiting for shard", r"Waiting for shard to be ready", Heartbeat()),
    # `Shard ready in 12.311s rank=0`
    row("Shard ready in", r"Shard ready in ([\d.]+)s", make=lambda m: (Leave("weights", seconds=number(m[1])),)),
    # `Starting Webserver` (launcher); `Warming up model` (router)
    row("Starting Webserver", r"Starting Webserver", Enter("warm-up", stay=True)),
    row("Warming up model", r"Warming up model", Enter("warm-up")),
    # `Cuda Graphs are enabled for sizes [32, 16, 8, 4, 2, 1]` (flash_causal_lm.py, during warm-up)
    row("uda Graphs are enabled", r"uda Graphs are enabled for sizes", Enter("graph-capture", "target")),
    # `KV-cache blocks: 58523, size: 1` / `Setting max batch total tokens to 58523`
    row("KV-cache blocks", r"KV-cache blocks: \d+", Enter("kv-cache")),
    row("max batch total tokens", r"Setting max batch total tokens to", Enter("warm-up")),
    # `INFO text_generation_router::server: router/src/server.rs:2402: Connected` (the router's last start-up word)
    row("Connected", r"(?:^|: )Connected$", Ready()),
    # `INFO compat_generate{...}:generate{...}: text_generation_router::server: Success`
    row(": Success", r"generate.*: Success$", Busy()),
    # `Terminating webserver` / `Shutting down shards` (launcher, on SIGTERM)
    row("Terminating ", r"Terminating (?:webserver|shard)", StopAsked()),
    row("Shutting down shards", r"Shutting down shards", StopAsked()),
)

DIALECT = TableDialect(
    engine="tgi",
    rows=_ROWS,
    sure=("text_generation_launcher", "text_generation_router", "text-generation-launcher", "text_generation_server"),
    hints=("Waiting for shard to be ready", "Starting shard", "ShardCannotStart"),
)
