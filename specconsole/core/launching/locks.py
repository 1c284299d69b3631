"""Locks on a host: an atomic `mkdir` with owner and age, as text of sh scripts.

A lock says until when (by the host's own uptime and boot id) it is meant; its holder renews it. An expired one, or one
of an earlier boot, is broken by whoever comes next, one at a time: the breaker holds a second `mkdir` for those
milliseconds and looks again before it removes.
"""

from __future__ import annotations

from dataclasses import dataclass

from specconsole.core.launching.script import IDENTITY, MACHINE, STATE_FOLDER

_COMMON = f"""\
{IDENTITY}{MACHINE}
locks={STATE_FOLDER}/locks/$(machine); umask 077; lock=$locks/$1
uptime=$(cut -d. -f1 /proc/uptime); here=$(boot)
record() {{ printf '%s\\n%s\\n%s\\n%s\\n%s\\n' "$1" "$here" "$2" "$3" "$4"; }}
holder() {{
  token=; boot_=; until_=0; since=0; owner=
  {{ read -r token; read -r boot_; read -r until_; read -r since; IFS= read -r owner; }} 2>/dev/null <"$lock/holder"
}}
"""

# $1: name, $2: token, $3: owner (one line), $4: seconds that it is meant for.
TAKE = f"""\
{{
{_COMMON}
why=$(mkdir -p "$locks" 2>&1) || {{ printf 'error=%s\\n' "$why"; exit 0; }}
take() {{ mkdir "$lock" 2>/dev/null && record "$1" "$((uptime+$3))" "$uptime" "$2" >"$lock/holder"; }}
if take "$2" "$3" "$4"; then printf 'taken\\n'; exit 0; fi
# A breaker that was killed in the middle left `.break` behind; it is old then.
find "$lock.break" -prune -mmin +1 -exec rmdir {{}} + 2>/dev/null
holder
# No holder yet: its maker is between mkdir and write, or died there; a young one gets its moment.
if [ -z "$owner" ]; then sleep 1; holder; fi
if [ -z "$owner" ] || [ "$boot_" != "$here" ] || [ "$until_" -lt "$uptime" ] 2>/dev/null; then
  old=$token
  if mkdir "$lock.break" 2>/dev/null; then
    holder; [ "$token" = "$old" ] && rm -rf "$lock"
    rmdir "$lock.break"
    if take "$2" "$3" "$4"; then printf 'taken\\n'; exit 0; fi
    holder
  fi
fi
printf 'held\\n%s\\n%s\\n' "$((uptime-since))" "$owner"
}}
"""

# $1: name, $2: token, $3: seconds from now.
RENEW = f"""\
{{
{_COMMON}
holder
[ "$token" = "$2" ] || {{ printf 'lost\\n'; exit 0; }}
record "$2" "$((uptime+$3))" "$since" "$owner" >"$lock/holder.tmp" || exit 0
mv "$lock/holder.tmp" "$lock/holder" && printf 'renewed\\n'
}}
"""

# $1: name, $2: token.
RELEASE = f"""\
{{
{_COMMON}
holder
if [ "$token" = "$2" ]; then rm -rf "$lock"; printf 'released\\n'; else printf 'not-ours\\n'; fi
}}
"""


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Who holds a lock, and for how long already."""

    owner: str
    age_s: float | None


def parse_take(output: bytes) -> LockHolder | None:
    """None when the lock was taken; the other holder when it was not."""
    lines = output.decode("utf-8", "replace").splitlines()
    if lines[:1] == ["taken"]:
        return None
    age = lines[1] if len(lines) > 1 else ""
    return LockHolder(lines[2] if len(lines) > 2 else "", float(age) if age.lstrip("-").isdigit() else None)
