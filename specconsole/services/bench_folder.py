"""The folder of a run on its host: plan, requests, lines. Removed only with its result, and after asking."""

from __future__ import annotations

from dataclasses import dataclass

from specconsole.errors import RefusedError, SpecconsoleError
from specconsole.ports import BenchLauncher, Transport

# $1: the folder, $2: the id that its name must be. The answer is what is left of it.
_REMOVE = """\
{
case $1 in */"$2") ;; *) echo "not the folder of $2"; exit 0 ;; esac
[ -n "$2" ] && [ -d "$1" ] && rm -rf -- "$1"
if [ -e "$1" ]; then echo "$1 is still there"; fi
exit 0
}
"""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where a run's files are."""

    result_id: str
    host: str
    folder: str
    alive: bool
    """Something of the run still works there."""


async def find_folder(transport: Transport, launcher: BenchLauncher, result_id: str) -> RunFolder | None:
    """None where this host has none. Raises SpecconsoleError, TimeoutError."""
    record = await launcher.observe(result_id)
    if record is None or not record.folder:
        return None
    return RunFolder(result_id, transport.host, record.folder, bool(record.alive))


async def remove_folder(transport: Transport, found: RunFolder) -> None:
    """Raises RefusedError while the run goes on, SpecconsoleError when something of it stays."""
    if found.alive:
        raise RefusedError(
            "it is still being measured", where=found.result_id, try_="end it first (Ctrl-C, or X in the window)"
        )
    done = await transport.run_sh(_REMOVE, [found.folder, found.result_id])
    left = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
    if left:
        raise SpecconsoleError(left.splitlines()[0], where=found.host)
