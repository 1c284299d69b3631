"""Flags of servers on this machine's disk: the catalogues that ship with the console, and what hosts' servers said."""

from __future__ import annotations

import gzip
import hashlib
import json
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specconsole.adapters.local import write_atomically
from specconsole.core.launching.engine_flags import EngineFlags
from specconsole.core.launching.help_text import FlagCatalogue, parse_help

_SHIPPED = Path(__file__).resolve().parent.parent / "catalogues"


def built_in_catalogue(engine: EngineFlags) -> FlagCatalogue:
    """The flags of one sampled version, for when the server itself can't be asked."""
    text = gzip.decompress((_SHIPPED / f"{engine.built_in}.txt.gz").read_bytes()).decode("utf-8")
    return FlagCatalogue(parse_help(text), f"the built-in list of {engine.built_in}", engine.abbreviates)


@dataclass(frozen=True, slots=True)
class FlagStore:
    """What servers' `--help` printed, one file for each host, command and build."""

    folder: Path

    def _path(self, key: Sequence[str]) -> Path:
        return self.folder / f"{hashlib.sha256(json.dumps(list(key)).encode()).hexdigest()[:32]}.json.gz"

    def read(self, key: Sequence[str]) -> str | None:
        """The help text kept under this key; None without one (or when the file is damaged)."""
        try:
            kept = json.loads(gzip.decompress(self._path(key).read_bytes()))
        except (OSError, ValueError, EOFError, zlib.error):
            return None
        text = kept.get("text") if isinstance(kept, dict) and kept.get("key") == list(key) else None
        return text if isinstance(text, str) else None

    def keep(self, key: Sequence[str], text: str) -> None:
        """Writes it for the account's eyes only. A disk that is full costs the next question, nothing else."""
        data = json.dumps({"key": list(key), "text": text, "read_at_s": time.time()}).encode()
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(self._path(key), gzip.compress(data), mode=0o600)
        except OSError:
            return
