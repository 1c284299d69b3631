"""The POSIX sh scripts that are a server on a host, as text; `start_script` sets them going.

`run.sh` is the wrapper, in a session of its own, that waits and records the exit status; `server.sh` records its
process id and becomes the server, in a second session, so that one group holds the server and what it forks, and never
the wrapper.

Every script is one brace group: a shell that reads it from a pipe which breaks in the middle runs nothing of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from specconsole.core.launching.profile import SECRET_USE
from specconsole.core.launching.spec import LaunchSpec
from specconsole.errors import BadInputError

LAUNCH_VARIABLE = "SPECCONSOLE_LAUNCH"
STATE_FOLDER = "$HOME/.local/state/specconsole"
"""Fixed, not XDG's: a session over SSH and one at the desk may differ in XDG_STATE_HOME, and must find the same."""

Family = Literal["launches", "benches"]
"""What a folder under the state folder is about: a server, or a benchmark run. Both are started, found again and ended
by the same scripts."""

_SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quote(word: str) -> str:
    """One word for a POSIX shell, byte for byte. Raises BadInputError for a NUL, which no argument can hold."""
    if "\0" in word:
        raise BadInputError("a NUL byte can't be part of an argument")
    if _SAFE.fullmatch(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def quote_path(word: str) -> str:
    """As `quote`, but a leading `~/` is the home folder on the host, as a shell would have it."""
    return f'"$HOME"/{quote(word[2:])}' if word.startswith("~/") and len(word) > 2 else quote(word)


def export(name: str, value: str) -> str:
    """One assignment that children inherit. Raises BadInputError when `name` is no variable's name."""
    if not _NAME.fullmatch(name):
        raise BadInputError(f"`{name}` can't be an environment variable", try_="letters, digits and _ only")
    return f"export {name}={quote(value)}"


# What a process is: pid + start ticks (field 22 of /proc/PID/stat, proc(5)) + boot id with the pid namespace, since two
# containers of one kernel share the boot id. The command name may hold blanks and brackets: cut at the last `)`.
IDENTITY = """\
boot() {
  printf '%s/%s' "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)" "$(readlink /proc/self/ns/pid 2>/dev/null)"
}
ticks() { ticks=; if read -r stat 2>/dev/null <"/proc/$1/stat"; then set -- ${stat##*) }; ticks=${20}; fi; }
"""

# Which machine: home folders are shared on clusters, and images of containers share an empty or equal machine id.
MACHINE = """\
machine() {
  m=; [ -r /etc/machine-id ] && read -r m </etc/machine-id
  case $m in *[!0-9a-f]*|'') m=host ;; esac
  printf '%s-%s' "$m" "$(uname -n | tr -c 'A-Za-z0-9.\\n' '_')"
}
"""


def server_script(spec: LaunchSpec, umask: str = "022") -> str:
    """`server.sh`: records itself in `process`, takes the secrets, becomes the server."""
    lines = [
        "#!/bin/sh",
        f"# The server of launch {spec.launch_id}.",
        "{",
        'dir=$1; umask "$2"',
        IDENTITY.rstrip(),
        "ticks $$",
        "up=$(cut -d' ' -f1 /proc/uptime)",
        '(umask 077; printf "pid=%s start_ticks=%s boot=%s uptime=%s\\n" $$ "$ticks" "$(boot)" "$up" '
        '>"$dir/process.tmp" && mv "$dir/process.tmp" "$dir/process") || exit 71',
        export(LAUNCH_VARIABLE, spec.launch_id),
    ]
    lines += [export(name, value) for name, value in sorted(spec.env.items()) if name != "PATH"]
    if "PATH" in spec.env:
        lines.append(f"export PATH={quote(spec.env['PATH'])}")
    if spec.environment:
        path = quote_path(spec.environment)
        lines.append(f"VIRTUAL_ENV={path}; PATH=$VIRTUAL_ENV/bin:$PATH; export VIRTUAL_ENV PATH")
    if spec.secret_names:
        lines.append('. "$dir/secrets.sh" || exit 73; rm -f "$dir/secrets.sh" || exit 73')
    if spec.working_dir:
        lines.append(f"cd {quote_path(spec.working_dir)} || exit 72")
    lines.append("unset dir stat ticks up; exec " + " ".join(_argument(word, spec) for word in spec.argv))
    return "\n".join([*lines, "}", ""])


def _argument(word: str, spec: LaunchSpec) -> str:
    """One word of the server's command; a key, where a person has agreed to that, from its variable on the host."""
    secret = SECRET_USE.fullmatch(word)
    if secret is not None and spec.key_argument_allowed and secret[1] in spec.secret_names:
        return f'"${secret[1]}"'
    return quote_path(word)


def wrapper_script(spec: LaunchSpec) -> str:
    """`run.sh`: starts `server.sh` in the foreground, so that no signal is ignored in it, and dies last.

    A handler that does nothing (not an ignored signal, which children inherit) keeps it alive through a TERM to all.
    The status goes into a file whose block was taken at the start: it can be recorded on a full disk.
    """
    return f"""\
#!/bin/sh
# The wrapper of launch {spec.launch_id}: records the server's exit status.
{{
dir=$1; umask 077; trap : HUP INT TERM QUIT
{IDENTITY}{export(LAUNCH_VARIABLE, spec.launch_id)}
ticks $$
printf 'pid=%s start_ticks=%s\\n' $$ "$ticks" >"$dir/wrapper.tmp" && mv "$dir/wrapper.tmp" "$dir/wrapper"
# In a subshell: dash writes `Killed` to wherever it has redirected itself, and that line is none of the server's.
(exec setsid sh "$dir/server.sh" "$dir" "$2" </dev/null >>"$dir/server.log" 2>&1)
status=$?
rm -f "$dir/secrets.sh"
printf '%-5s %-40s\\n' "$status" "$(cut -d' ' -f1 /proc/uptime)" 1<>"$dir/exit.tmp" && mv "$dir/exit.tmp" "$dir/exit"
exit 0
}}
"""


def in_family(script: str, family: Family) -> str:
    """A script about launches -> the same about another family's folders."""
    return script.replace(f"{STATE_FOLDER}/launches/", f"{STATE_FOLDER}/{family}/")


def sh_words(words: Sequence[str]) -> str:
    """Several words for a POSIX shell."""
    return " ".join(quote(word) for word in words)
