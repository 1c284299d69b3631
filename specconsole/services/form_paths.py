"""Paths on a host, completed while they are typed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from specconsole.errors import SpecconsoleError, TransportError
from specconsole.ports import Clock, Transport

_KEPT_S = 30.0
_ASKED_AT_MOST = 24
"""So many candidates are asked whether they are folders."""
_LIMIT_S = 10.0


class HostPaths:
    """Completes paths; folders are read once in half a minute. One for each form."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._names: dict[tuple[str, str], tuple[float, list[str]]] = {}
        self._folders: dict[tuple[str, str], bool] = {}
        self._homes: dict[str, str] = {}

    async def complete(self, transport: Transport, text: str) -> Sequence[str]:
        """Paths that begin with what was typed, a folder with `/` at its end; () for what is no path.

        Raises TransportError, TimeoutError when the host does not answer in 10 s.
        """
        if not text.startswith(("/", "~/")):
            return ()
        async with asyncio.timeout(_LIMIT_S):
            folder, _, start = text.rpartition("/")
            names = await self._list(transport, folder or "/")
            wanted = [name for name in names if name.lower().startswith(start.lower())]
            wanted = [name for name in wanted if start.startswith(".") or not name.startswith(".")][:_ASKED_AT_MOST]
            paths = [f"{folder}/{name}" for name in wanted]
            are = await asyncio.gather(*(self._is_folder(transport, path) for path in paths))
        return tuple(f"{path}/" if is_folder else path for path, is_folder in zip(paths, are, strict=True))

    async def _list(self, transport: Transport, folder: str) -> list[str]:
        key, now_s = (transport.host, folder), self._clock.monotonic_s()
        kept = self._names.get(key)
        if kept is not None and now_s - kept[0] < _KEPT_S:
            return kept[1]
        names = await self._listed(transport, await self._full(transport, folder))
        self._names[key] = (now_s, names)
        return names

    @staticmethod
    async def _listed(transport: Transport, folder: str) -> list[str]:
        try:
            return await transport.list_dir(folder)
        except TransportError:
            raise
        except SpecconsoleError:
            return []  # no such folder, or not ours to read: nothing to offer

    async def _is_folder(self, transport: Transport, path: str) -> bool:
        key = (transport.host, path)
        if key not in self._folders:
            try:
                found = await transport.stat(await self._full(transport, path))
            except TransportError:
                raise
            except SpecconsoleError:
                found = None
            self._folders[key] = found is not None and found.is_dir
        return self._folders[key]

    async def _full(self, transport: Transport, path: str) -> str:
        if path != "~" and not path.startswith("~/"):
            return path
        if transport.host not in self._homes:
            done = await transport.run_sh('printf %s "$HOME"')
            self._homes[transport.host] = done.stdout.decode("utf-8", "surrogateescape")
        return self._homes[transport.host] + path[1:]
