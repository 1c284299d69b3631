"""The script that makes a launch folder whole and sets the server, or what waits for its turn, going."""

from __future__ import annotations

from collections.abc import Mapping

from specconsole.core.launching.queue_script import needs_file, queue_script
from specconsole.core.launching.script import (
    LAUNCH_VARIABLE,
    MACHINE,
    STATE_FOLDER,
    export,
    quote,
    server_script,
    wrapper_script,
)
from specconsole.core.launching.spec import LaunchSpec
from specconsole.errors import BadInputError


def start_script(spec: LaunchSpec, secrets: Mapping[str, str], *, prepared: bool = False) -> str:
    """`start`: makes the folder whole or not at all, starts the wrapper, and waits until the server is recorded.

    `prepared`: the folder is there already, with files that the process needs, and nothing was started in it.
    Secrets come in as text on standard input and go to a file of mode 0600, so `ps` shows them at no time.
    Prints `key=value` lines for `folder.parse_start`.
    """
    if set(secrets) != set(spec.secret_names):
        raise BadInputError("the secrets given are not the secrets named", where=spec.profile)
    wanted = "".join(export(name, value) + "\n" for name, value in sorted(secrets.items()))
    files = [("server.sh", server_script(spec)), ("run.sh", wrapper_script(spec))]
    if secrets:
        files.append(("secrets.sh", wanted))
    first, record, mark = "run.sh", "process", ""
    if spec.needs:
        files.append(("needs", needs_file(spec)))
    give_up = "fail no-process"
    if spec.when_free:
        # Nothing was started, and what waits ends when its folder is gone.
        give_up = 'rm -rf "$dir"; fail no-queue'
        files.append(("queue.sh", queue_script(spec)))
        # In its environment from the start: /proc shows no variable that a shell exports later.
        first, record, mark = "queue.sh", "waiter", f"{LAUNCH_VARIABLE}={quote(spec.launch_id)} "
    # Last: a folder with `requested.json` is a whole one.
    files.append(("requested.json", spec.to_json_line() + "\n"))
    new = '[ -d "$dir" ] && [ ! -e "$dir/requested.json" ]' if prepared else 'mkdir "$dir" 2>&1'
    puts = "\n".join(f"put {name} {quote(text)} || lost" for name, text in files)
    return f"""\
{{
old=$(umask); umask 077
{MACHINE}
fail() {{ printf 'error=%s\\n' "$1"; printf '%s\\n' "${{why:-}}" | head -n 3; exit 1; }}
command -v setsid >/dev/null 2>&1 || fail no-setsid
root={STATE_FOLDER}/launches/$(machine); dir=$root/{spec.launch_id}
why=$(mkdir -p "$root" 2>&1) || fail state-folder
why=$({new}) || fail launch-folder
lost() {{
  # dash says no more than "I/O error".
  why="$why; $(df -Pk "$root" 2>/dev/null | awk 'NR==2 {{print $4}}') KiB free there"
  rm -rf "$dir"; fail write
}}
put() {{ why=$( {{ printf %s "$2" >"$dir/$1.tmp" && mv "$dir/$1.tmp" "$dir/$1"; }} 2>&1 ); }}
why=$( {{ printf '%-46s\\n' none >"$dir/exit.tmp" && : >"$dir/server.log"; }} 2>&1 ) || lost
{puts}
printf 'folder=%s\\n' "$dir"
# The wrapper must outlive this shell and must not be an asynchronous list: POSIX starts those with INT and QUIT
# ignored, and what is ignored stays ignored in every program started from there. A pipeline's first half is a plain
# child; its second half ends the shell that would wait for it.
{mark}sh -c '{{ exec setsid sh "$1/{first}" "$1" "$2" </dev/null >/dev/null 2>"$1/wrapper.log"; }} | kill -KILL $$' \\
  sh "$dir" "$old" >/dev/null 2>&1
i=0
while [ ! -s "$dir/{record}" ] && [ ! -s "$dir/exit" ] && [ $i -lt 100 ]; do
  sleep 0.05 2>/dev/null || sleep 1
  i=$((i+1))
done
if [ -s "$dir/{record}" ] || [ -s "$dir/exit" ]; then printf 'started=1\\n'
else rm -f "$dir/secrets.sh"; why=$(cat "$dir/wrapper.log"); {give_up}; fi
}}
"""
