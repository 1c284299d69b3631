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

_SLOW_FOR_S = 3600.0
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
        text = self._kept(key).get("text")
        return text if isinstance(text, str) else None

    def _kept(self, key: Sequence[str]) -> dict[str, object]:
        try:
            kept = json.loads(gzip.decompress(self._path(key).read_bytes()))
        except (OSError, ValueError, EOFError, zlib.error):
            return {}
        return kept if isinstance(kept, dict) and kept.get("key") == list(key) else {}

    def keep(self, key: Sequence[str], text: str) -> None:
        """Writes it for the account's eyes only. A disk that is full costs the next question, nothing else."""
        self._write(key, {"text": text})

    def slow(self, key: Sequence[str], limit_s: float) -> str | None:
        """Why asking it in `limit_s` was in vain within the last hour; None where it may be asked."""
        kept = self._kept(key)
        why, waited_s, at_s = (kept.get(name) for name in ("slow", "limit_s", "read_at_s"))
        if not isinstance(why, str) or not isinstance(waited_s, int | float) or not isinstance(at_s, int | float):
            return None
        return why if waited_s >= limit_s and 0 <= time.time() - at_s < _SLOW_FOR_S else None

    def keep_slow(self, key: Sequence[str], why: str, limit_s: float) -> None:
        """That it took `limit_s`, or as long to fail: nobody waits for it again soon."""
        self._write(key, {"slow": why, "limit_s": limit_s})

    def _write(self, key: Sequence[str], content: dict[str, object]) -> None:
        data = json.dumps({"key": list(key), **content, "read_at_s": time.time()}).encode()
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(self._path(key), gzip.compress(data), mode=0o600)
        except OSError:
            return
