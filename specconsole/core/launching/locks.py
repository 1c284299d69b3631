"""Locks on a host, with owner and age, as text of sh scripts.

The lock is the file `holder`, made by `ln` from a file that is already whole: link(2) fails when the name exists, so
there is one winner, and nobody ever sees a lock without its owner. A lock says until when (by the host's own uptime
and boot id) it is meant; its holder renews it. An expired one, or one of an earlier boot, is broken by whoever comes
next. All that removes or replaces a holder happens under a `mkdir` of a few milliseconds, and looks again there.
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
  token=; boot_=; until_=0; since=0; owner=; there=
  [ -r "$lock/holder" ] && there=1
  {{ read -r token; read -r boot_; read -r until_; read -r since; IFS= read -r owner; }} 2>/dev/null <"$lock/holder"
}}
# A breaker that was killed in the middle left `break` behind; it is old then.
alone() {{ find "$lock/break" -prune -mmin +1 -exec rmdir {{}} + 2>/dev/null; mkdir "$lock/break" 2>/dev/null; }}
waited() {{
  i=0
  until alone; do
    [ -d "$lock" ] && [ $i -lt 50 ] || return 1
    i=$((i+1)); sleep 0.1 2>/dev/null || sleep 1
  done
}}
"""

# $1: name, $2: token, $3: owner (one line), $4: seconds that it is meant for.
TAKE = f"""\
{{
{_COMMON}
why=$(mkdir -p "$lock" 2>&1) || {{ printf 'error=%s\n' "$why"; exit 0; }}
take() {{
  why=$({{ mkdir -p "$lock" && record "$1" "$((uptime+$3))" "$uptime" "$2" >"$lock/new.$1"; }} 2>&1) || {{
    rm -f "$lock/new.$1"; return 2
  }}
  ln "$lock/new.$1" "$lock/holder" 2>/dev/null; got=$?; rm -f "$lock/new.$1"; return $got
}}
take "$2" "$3" "$4"; got=$?
if [ $got = 0 ]; then printf 'taken\n'; exit 0; fi
dead() {{ [ -z "$owner" ] || [ "$boot_" != "$here" ] || [ "$until_" -lt "$uptime" ]; }} 2>/dev/null
holder
if [ -z "$there" ] || dead; then
  old=$token
  if alone; then
    holder; [ -n "$there" ] && [ "$token" = "$old" ] && dead && rm -f "$lock/holder"
    take "$2" "$3" "$4"; got=$?; rmdir "$lock/break"
    if [ $got = 0 ]; then printf 'taken\n'; exit 0; fi
  fi
  holder
fi
# Nobody has it, and we can't write it down (a full disk): that is no other console.
if [ -z "$there" ] && [ $got = 2 ]; then printf 'error=%s\n' "$why"; exit 0; fi
printf 'held\n%s\n%s\n' "$((uptime-since))" "$owner"
}}
"""

# $1: name, $2: token, $3: seconds from now.
RENEW = f"""\
{{
{_COMMON}
waited || {{ printf 'lost\n'; exit 0; }}
holder
if [ "$token" != "$2" ]; then printf 'lost\n'
elif record "$2" "$((uptime+$3))" "$since" "$owner" >"$lock/holder.tmp" && mv "$lock/holder.tmp" "$lock/holder"; then
  printf 'renewed\n'
fi
rmdir "$lock/break"
}}
"""

# $1: name, $2: token.
RELEASE = f"""\
{{
{_COMMON}
waited || {{ printf 'not-ours\n'; exit 0; }}
holder
if [ "$token" = "$2" ]; then rm -f "$lock/holder"; printf 'released\n'; else printf 'not-ours\n'; fi
rmdir "$lock/break"; rmdir "$lock" 2>/dev/null
exit 0
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
