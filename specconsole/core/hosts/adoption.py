"""Adopting a server: a launch folder is made for it on its host, so that every console finds it again there.

Nothing of the server itself is touched. The folder says `adopted`, who owns it, and where its log is; its process is
recorded as for a launch of ours, so it can be watched and, when asked for by typing, stopped.
"""

from __future__ import annotations

import hashlib
import shlex
from typing import Any

from specconsole.core.hosts.discovery import FoundEngine, masked_argv
from specconsole.core.launching.import_command import import_command
from specconsole.core.launching.imported_command import ImportedCommand
from specconsole.core.launching.script import IDENTITY, MACHINE, STATE_FOLDER
from specconsole.core.launching.spec import LaunchSpec
from specconsole.errors import SpecconsoleError

# $1 id, $2 requested.json, $3 pid or "", $4 its start ticks, $5 log path or "". Prints `adopted=1`, or what it was
# that stood in the way. A second console that adopts the same server finds the folder there and is done.
ADOPT_SH = f"""\
{{
{IDENTITY}{MACHINE}
dir={STATE_FOLDER}/launches/$(machine)/$1; umask 077
mkdir -p "${{dir%/*}}" 2>/dev/null || {{ printf 'failed=the state folder can not be written\\n'; exit 0; }}
if mkdir "$dir" 2>/dev/null; then
  if [ -n "$3" ]; then
    stat=; read -r stat 2>/dev/null <"/proc/$3/stat"; rest=${{stat##*) }}; set -f; set -- "$1" "$2" "$3" "$4" "$5" $rest
    eval "ticks=\\${{25}}"
    if [ "$ticks" != "$4" ]; then rmdir "$dir"; printf 'failed=it has ended meanwhile\\n'; exit 0; fi
    printf 'pid=%s start_ticks=%s boot=%s uptime=%s\\n' "$3" "$4" "$(boot)" "$(cut -d' ' -f1 /proc/uptime)" \\
      >"$dir/process"
  fi
  [ -z "$5" ] || ln -s "$5" "$dir/server.log"
  printf '%s\\n' "$2" >"$dir/requested.tmp" && mv "$dir/requested.tmp" "$dir/requested.json" || \\
    {{ printf 'failed=disk full\\n'; exit 0; }}
  printf 'adopted=1\\n'
elif [ -d "$dir" ]; then printf 'adopted=0\\n'
else printf 'failed=the state folder can not be written\\n'; fi
}}
"""


def parse_adopted(output: bytes) -> bool:
    """True when the folder was made, False when it was there. Raises SpecconsoleError with what stood in the way."""
    facts = dict(line.split("=", 1) for line in output.decode("utf-8", "replace").splitlines() if "=" in line)
    if "adopted" in facts:
        return facts["adopted"] == "1"
    raise SpecconsoleError(f"it could not be adopted: {facts.get('failed', 'no answer')}")


def adopted_id(boot: str, pid: int, start_ticks: int) -> str:
    """The same for everybody who adopts the same process: two consoles make one folder."""
    return f"adopted-{hashlib.sha256(f'{boot} {pid} {start_ticks}'.encode()).hexdigest()[:12]}"


def adopted_log_id(source: str) -> str:
    """For a log that no process is known for."""
    return f"adopted-log-{hashlib.sha256(source.encode()).hexdigest()[:12]}"


def profile_draft(argv: tuple[str, ...]) -> ImportedCommand | None:
    """The command line as profile settings, secrets left out; None when it is not understood."""
    try:
        return import_command(shlex.join(argv))
    except SpecconsoleError:
        return None


def adopted_spec(
    launch_id: str,
    *,
    found: FoundEngine | None,
    name: str,
    log_path: str = "",
    log_command: tuple[str, ...] = (),
    port: int | None = None,
    at_s: float = 0.0,
) -> LaunchSpec:
    """What the folder of an adopted server says. Its command line keeps no secrets."""
    draft = profile_draft(found.argv) if found is not None else None
    settings: dict[str, Any] = dict(draft.args) if draft is not None else {}
    return LaunchSpec(
        launch_id=launch_id,
        profile=name or (f"{found.engine}-{found.port or found.pid}" if found is not None else "log"),
        engine=found.engine if found is not None else "other",
        argv=masked_argv(found.argv) if found is not None else (),
        command=draft.command if draft is not None else (),
        working_dir=found.cwd if found is not None else None,
        port=port if port is not None else found.port if found is not None else None,
        bind=(draft.bind if draft is not None else None) or "127.0.0.1",
        model=draft.model if draft is not None else None,
        draft_model=draft.draft_model if draft is not None else None,
        settings=settings,
        owner=(found.user or "unknown") if found is not None else "unknown",
        requested_at_s=at_s,
        adopted=True,
        log_path=log_path,
        log_command=log_command,
    )
