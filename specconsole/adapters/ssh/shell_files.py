"""Files of a host without SFTP, through the command shell: `tail`, `head`, `stat`, `ls`.

A handle is the file's device and inode: after a rename in its folder the file is found again there and can still
be drained; moved further away, or deleted, it is gone for us.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from specconsole.core.hosts.plain_text import one_line
from specconsole.errors import BadInputError, FileMissingError, RefusedError, SpecconsoleError, TransportError
from specconsole.ports import Completed, FileStat

Run = Callable[[Sequence[str], bytes, float, int], Awaitable[Completed]]
"""argv, standard input, time limit in seconds, output limit in bytes."""

_MISSING = 44
_DENIED = 45
_CALL_S = 30.0
_READ_S = 120.0

# %s %Y %f %d:%i are the same in GNU stat and busybox (size, mtime, mode in hex, device and inode).
_STAT = 'stat -L -c "%s %Y %f %d:%i" -- "$1"'
_GUARD = f'[ -e "$1" ] || exit {_MISSING}; [ -r "$1" ] || exit {_DENIED}; '

# $1 path, $2 device:inode. Sets f to where that file is now.
_FIND = (
    'f=$1; d=${1%/*}; [ "$d" = "$1" ] && d=.; [ -n "$d" ] || d=/; '
    'if [ "$(stat -L -c %d:%i -- "$1" 2>/dev/null)" != "$2" ]; then '
    'f=; for c in "$d"/* "$d"/.[!.]*; do [ -f "$c" ] || continue; '
    '[ "$(stat -L -c %d:%i -- "$c" 2>/dev/null)" = "$2" ] && { f=$c; break; }; done; '
    f'[ -n "$f" ] || exit {_MISSING}; fi; '
)


class ShellFile:
    """A file known by device and inode."""

    def __init__(self, files: ShellFiles, path: str, identity: str) -> None:
        self._files = files
        self._path = path
        self._identity = identity

    async def read_at(self, offset: int, max_bytes: int) -> bytes:
        script = _FIND + 'tail -c "+$3" -- "$f" | head -c "$4"'
        args = [self._path, self._identity, str(offset + 1), str(max_bytes)]
        return await self._files.call(self._path, script, args, limit=max_bytes, timeout_s=_READ_S)

    async def stat(self) -> FileStat:
        stat, _ = _parse(
            await self._files.call(self._path, _FIND + _STAT.replace("$1", "$f"), [self._path, self._identity])
        )
        return stat

    async def aclose(self) -> None:
        """Nothing is held on the host."""


class ShellFiles:
    """The file half of `Transport`, by commands."""

    def __init__(self, host: str, run: Run) -> None:
        self._host = host
        self._run = run

    async def call(
        self, path: str, script: str, args: Sequence[str], *, stdin: bytes = b"", limit: int = 1 << 20,
        timeout_s: float = _CALL_S,
    ) -> bytes:  # fmt: skip
        """Output of a script; its statuses 44 and 45 become the errors they stand for."""
        where = f"{self._host}:{path}"
        try:
            done = await self._run(["sh", "-c", script, "sh", *args], stdin, timeout_s, limit)
        except TimeoutError:
            raise TransportError(f"no answer within {timeout_s:g} s", where=where) from None
        if done.exit_status == _MISSING:
            raise FileMissingError("no such file", where=where)
        if done.exit_status == _DENIED:
            raise RefusedError("permission denied", where=where)
        if not done.ok:
            raise SpecconsoleError(one_line(done.stderr) or f"ended with {done.exit_status}", where=where)
        return done.stdout

    async def stat(self, path: str) -> FileStat | None:
        try:
            return _parse(await self.call(path, f'[ -e "$1" ] || exit {_MISSING}; {_STAT}', [path]))[0]
        except FileMissingError:
            return None

    async def open_file(self, path: str) -> ShellFile:
        _, identity = _parse(await self.call(path, _GUARD + _STAT, [path]))
        return ShellFile(self, path, identity)

    async def read_file(self, path: str, max_bytes: int) -> bytes:
        data = await self.call(path, _GUARD + 'head -c "$2" -- "$1"', [path, str(max_bytes + 1)],
                               limit=max_bytes + 1, timeout_s=_READ_S)  # fmt: skip
        if len(data) > max_bytes:
            raise BadInputError(f"larger than {max_bytes} bytes", where=f"{self._host}:{path}")
        return data

    async def write_file(self, path: str, data: bytes, mode: int) -> None:
        script = (
            'd=${1%/*}; [ "$d" = "$1" ] && d=.; [ -n "$d" ] || d=/; '
            f'[ -d "$d" ] || exit {_MISSING}; [ -w "$d" ] || exit {_DENIED}; '
            '[ ! -d "$1" ] || { echo "is a folder" >&2; exit 1; }; umask 077; '
            't=$(mktemp "$d/.specconsole.XXXXXX") || exit 1; '
            'cat >"$t" && chmod "$2" "$t" && mv -f -- "$t" "$1" || { rm -f -- "$t"; exit 1; }'
        )
        await self.call(path, script, [path, f"{mode:04o}"], stdin=data, timeout_s=_READ_S)

    async def list_dir(self, path: str) -> list[str]:
        script = f'[ -d "$1" ] || exit {_MISSING}; [ -r "$1" ] || exit {_DENIED}; ' + (
            'cd -- "$1" && for n in * .[!.]* ..?*; do { [ -e "$n" ] || [ -L "$n" ]; } && printf "%s\\0" "$n"; done; :'
        )
        raw = await self.call(path, script, [path], limit=16 << 20)
        return sorted(name.decode("utf-8", "surrogateescape") for name in raw.split(b"\0") if name)


def _parse(line: bytes) -> tuple[FileStat, str]:
    size, mtime, mode, identity = line.split()
    return FileStat(int(size), float(mtime), int(mode, 16), int(identity.partition(b":")[2])), identity.decode()
