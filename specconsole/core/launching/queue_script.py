"""`queue.sh`: waits on the host until a launch's turn has come, then becomes the wrapper `run.sh`. Text only.

It is started as the wrapper is, detached, so it outlives the console and the console's machine. Who waits has a ticket
in the queue folder: a whole file, put there by link(2), whose name begins with the host's uptime, so that names sort by
arrival. A waiter lets those go first that came before it and want something of the same. What runs and was started by
the same account counts as holder of what it was promised, until it has taken it. A turn has come when two looks in a
row find everything free.

It writes what it waits for into `waiting` (one line, fields apart by tabs, for `waiting.parse_waiting`).
"""

from __future__ import annotations

from specconsole.core.launching.needs import IDLE_MIB
from specconsole.core.launching.script import IDENTITY, LAUNCH_VARIABLE, MACHINE, STATE_FOLDER, export, quote
from specconsole.core.launching.spec import LaunchSpec

QUEUE_FOLDER = f"{STATE_FOLDER}/queue"

SETTLED_S = 120
"""A server that listens for so long has taken its memory; one that does not is believed to load for `STARTING_S`."""
STARTING_S = 1800
CONFIRM_S = 5.0
"""Between the two looks that must agree; never longer than the pause between any two."""
LOCK_S = 2
"""Seconds that the start's lock on a port is held: until the new server is recorded."""
TOOL_S = 20
"""A GPU tool that takes longer is stopped, and that is said."""

_LOOK = f"""\
# Lines of text that may have come from anybody: one line, no tabs, not long.
plain() {{ tr -c '[:print:]' ' ' | cut -c1-160; }}
add() {{ [ "$told" -lt 24 ] && reasons="$reasons$tab$1"; told=$((told+1)); busy=1; }}
runs() {{
  [ "$3" = "$here" ] || return 1
  ticks "$1"
  [ -n "$ticks" ] && [ "$ticks" = "$2" ] && case ${{stat##*) }} in [ZX]*) false ;; esac
}}
shares() {{ for key in $keys; do case " $1 " in *" $key "*) return 0 ;; esac; done; return 1; }}
who() {{
  mark=$(tr '\\0' '\\n' <"/proc/$1/environ" 2>/dev/null | sed -n 's/^{LAUNCH_VARIABLE}=//p' | head -n 1)
  mark=$(printf %s "$mark" | tr -cd 'A-Za-z0-9._-')
  user=$(stat -c %U "/proc/$1" 2>/dev/null)
  printf '%s %s %s %s' "$1" "${{user:--}}" "${{mark:--}}" "$(tr '\\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | plain)"
}}
listens() {{
  rows=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    grep -E "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F]+:0000 0A ")
  [ -n "$rows" ]
}}
before() {{
  for other in "$queue"/*; do
    [ "$other" = "$ticket" ] && break
    [ -f "$other" ] || continue
    pid=; {{ read -r pid start at id; IFS= read -r name; read -r theirs; }} 2>/dev/null <"$other"
    # Gone, or started: then its launch folder speaks for it.
    if [ -z "$pid" ] || ! runs "$pid" "$start" "$at" || [ -f "$root/$id/process" ]; then rm -f "$other"
    elif shares "$theirs"; then add "ahead=$id $name"; fi
  done
}}
promised() {{
  for dir_ in "$root"/*/; do
    [ -f "$dir_/needs" ] && [ -f "$dir_/process" ] && [ ! -f "$dir_/exit" ] || continue
    {{ IFS= read -r name; read -r words; }} 2>/dev/null <"$dir_/needs"
    theirs=; port_=
    for word in $words; do
      theirs="$theirs ${{word%%/*}}"
      case $word in port=*) port_=${{port_:-${{word#port=}}}} ;; esac
    done
    shares "$theirs" || continue
    {{ IFS=' =' read -r _ pid _ start _ at _ born; }} 2>/dev/null <"$dir_/process"
    runs "$pid" "$start" "$at" || continue
    id=${{dir_%/}}; id=${{id##*/}}; age=$((now-${{born%.*}}))
    for word in $theirs; do
      case " $keys " in *" $word "*) ;; *) continue ;; esac
      case $word in
        port=*) listens "${{word#port=}}" || add "promised=$word $id $age $name" ;;
        *)
          [ -f "$dir_/answered" ] || [ "$age" -gt {STARTING_S} ] && continue
          if [ "$age" -gt {SETTLED_S} ] && [ -n "$port_" ] && listens "$port_"; then continue; fi
          add "promised=$word $id $age $name" ;;
      esac
    done
  done
}}
ports() {{
  for word in $needs; do
    case $word in port=*) port=${{word#port=}} ;; *) continue ;; esac
    listens "$port" || continue
    inodes=$(printf '%s\\n' "$rows" |
      while read -r _ _ _ _ _ _ _ _ _ inode _; do printf '%s' "${{inode:+$inode|}}"; done)
    # Looking through all descriptors is dear: only when the socket is another one than at the last look.
    if [ "$port $inodes" != "$port_seen" ]; then
      port_seen="$port $inodes"; holder=
      for pid in $(ls -ln /proc/[0-9]*/fd 2>/dev/null | grep -E "^/proc/|socket:\\[(${{inodes%|}})\\]" |
          grep -B1 socket: | sed -n 's|^/proc/\\([0-9]*\\)/fd:.*|\\1|p' | head -n 3); do
        holder="$holder$tab""port=$port $(who "$pid")"
      done
      [ -n "$holder" ] || holder="$tab""port=$port - - - "
    fi
    add "${{holder#"$tab"}}"
  done
}}
gpus() {{
  case " $keys" in *' gpu='*) ;; *) return ;; esac
  csv=--format=csv,noheader,nounits
  rows=$($limit nvidia-smi --query-gpu=index,uuid,memory.used,memory.total $csv 2>&1) || {{
    add "tool=nvidia-smi: $(printf '%s' "$rows" | plain)"; return
  }}
  apps=
  for word in $needs; do
    case $word in gpu=*) ;; *) continue ;; esac
    want=${{word##*/}}; name=${{word%%/*}}; name=${{name#gpu=}}; found=
    while IFS=', ' read -r index uuid used total _; do
      case $name in "$index"|"$uuid") ;; *) continue ;; esac
      found=1
      case $used$total in ''|*[!0-9]*) add "tool=GPU $name: nvidia-smi says no memory"; continue ;; esac
      if [ "$want" = - ]; then [ "$used" -le {IDLE_MIB} ] && continue
      elif [ $((total-used)) -ge "$want" ]; then continue; fi
      add "gpu=$name $((total-used)) $want"
      [ -n "$apps" ] || apps=$($limit nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory $csv 2>/dev/null)
      while IFS=', ' read -r on pid mib _; do
        [ "$on" = "$uuid" ] && case $pid in ''|*[!0-9]*) ;; *) add "on=$name ${{mib:--}} $(who "$pid")" ;; esac
      done <<APPS
$apps
APPS
    done <<ROWS
$rows
ROWS
    [ -n "$found" ] || add "tool=GPU $name is not among those that nvidia-smi lists"
  done
}}
memory() {{
  case " $needs" in *' memory/'*) want=${{needs##*memory/}}; want=${{want%% *}} ;; *) return ;; esac
  free=$(sed -n 's/^MemAvailable: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo 2>/dev/null); free=$((${{free:-0}}/1024))
  most=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null)
  used=$(cat /sys/fs/cgroup/memory.current 2>/dev/null || cat /sys/fs/cgroup/memory/memory.usage_in_bytes 2>/dev/null)
  case $most in
    ''|*[!0-9]*|????????????????*) ;;
    *) left=$(((most-${{used:-0}})/1048576)); [ "$left" -lt "$free" ] && free=$left ;;
  esac
  [ "$free" -ge "$want" ] || add "memory=$free $want"
}}
look() {{
  reasons=; busy=; told=0; now=$(cut -d. -f1 /proc/uptime)
  before; promised; ports; gpus; memory
}}
"""


def queue_script(spec: LaunchSpec) -> str:
    """`queue.sh` of one launch: $1 its folder, $2 the umask for the server."""
    return f"""\
#!/bin/sh
# The waiter of launch {spec.launch_id}: starts it when what it needs is free.
{{
dir=$1; umask 077; trap : HUP INT TERM QUIT
{IDENTITY}{MACHINE}{export(LAUNCH_VARIABLE, spec.launch_id)}
specconsole_keys=
if [ -f "$dir/secrets.sh" ]; then
  # In this shell's own memory while it waits, not on the disk.
  specconsole_keys=$(cat "$dir/secrets.sh") && rm -f "$dir/secrets.sh" || exit 71
fi
ticks $$; own=$ticks; here=$(boot); root=${{dir%/*}}; queue={QUEUE_FOLDER}/$(machine)
up=$(cut -d' ' -f1 /proc/uptime)
place=00000000000000${{up%.*}}${{up#*.}}; place=${{place#"${{place%??????????????}}"}}
ticket=$queue/$place-{spec.launch_id}
IFS= read -r name <"$dir/needs"; needs=$(sed -n 2p "$dir/needs")
keys=; for word in $needs; do keys="$keys${{keys:+ }}${{word%%/*}}"; done
mkdir -p "$queue" && printf '%s %s %s %s\\n%s\\n%s\\n' $$ "$own" "$here" {spec.launch_id} "$name" "$keys" \\
  >"$queue/.new.$$" && ln "$queue/.new.$$" "$ticket" && rm -f "$queue/.new.$$" || exit 71
printf 'pid=%s start_ticks=%s boot=%s uptime=%s\\n' $$ "$own" "$here" "$up" >"$dir/waiter.tmp" &&
  mv "$dir/waiter.tmp" "$dir/waiter" || exit 71
# In a subshell: none of these names can reach the server's environment.
(
trap 'exit 3' HUP INT TERM QUIT
for={quote(spec.owner or "unknown")}; tab=$(printf '\\t'); port_seen=; holder=; once=; looks=0
limit=; command -v timeout >/dev/null 2>&1 && limit='timeout {TOOL_S}'
{_LOOK}
locked() {{
  # As `locks.TAKE`: a console that starts a server on this port just now has it.
  for word in $needs; do
    case $word in port=*) port=${{word#port=}} ;; *) continue ;; esac
    lock={STATE_FOLDER}/locks/$(machine)/port-$port; mkdir -p "$lock"; until_=0; boot_=; owner=
    {{ read -r _; read -r boot_; read -r until_; read -r _; IFS= read -r owner; }} 2>/dev/null <"$lock/holder"
    if [ "$boot_" = "$here" ] && [ "$until_" -ge "$now" ] 2>/dev/null; then
      add "lock=$port $(printf '%s' "$owner" | plain)"; return 0
    fi
    # What a dead console left is broken by one at a time.
    [ ! -e "$lock/holder" ] || {{ mkdir "$lock/break" 2>/dev/null && rm -f "$lock/holder" && rmdir "$lock/break"; }}
    printf '%s\\n' "queue-$$" "$here" "$((now+{LOCK_S}))" "$now" "$for" >"$lock/new.$$"
    ln "$lock/new.$$" "$lock/holder" 2>/dev/null; got=$?; rm -f "$lock/new.$$"
    # A full disk takes no lock, and is no other console.
    [ $got = 0 ] || [ ! -e "$lock/holder" ] || {{ add "lock=$port another console"; return 0; }}
  done
  return 1
}}
while :; do
  ticks $$; [ "$ticks" = "$own" ] || exit 4
  [ ! -e "$dir/stop" ] && [ -e "$dir/requested.json" ] || exit 3
  look; looks=$((looks+1)); pause={spec.look_every_s:g}
  if [ -z "$busy" ]; then
    if [ -n "$once" ] && ! locked; then exit 0; fi
    # Free once may be between two servers: what is still free a moment later is free.
    [ -n "$busy" ] || {{ once=1; pause={min(CONFIRM_S, spec.look_every_s):g}; }}
  fi
  [ -z "$busy" ] || once=
  line="at=$now${{tab}}looks=$looks${{once:+${{tab}}free=1}}$reasons"
  printf '%s\\n' "$line" >"$dir/waiting.tmp" && mv "$dir/waiting.tmp" "$dir/waiting"
  sleep "$pause" 2>/dev/null || sleep 1
done
)
turn=$?
if [ "$turn" = 0 ] && [ -n "$specconsole_keys" ]; then
  printf '%s\\n' "$specconsole_keys" >"$dir/secrets.sh" || {{ turn=71; rm -f "$dir/secrets.sh"; }}
fi
rm -f "$dir/waiting"
if [ "$turn" != 0 ]; then
  rm -f "$ticket"
  printf '%-5s %-40s\\n' none "$(cut -d' ' -f1 /proc/uptime)" 1<>"$dir/exit.tmp" && mv "$dir/exit.tmp" "$dir/exit"
  exit 0
fi
unset name needs keys word place ticket queue own here root up turn stat ticks
# The same process from here on; its ticket ends when the server is recorded.
exec sh "$dir/run.sh" "$dir" "$2"
}}
"""


def needs_file(spec: LaunchSpec) -> str:
    """The file `needs`: the profile's name for those who wait, then the words of `needs.Needs`."""
    name = " ".join("".join(c if c.isprintable() else " " for c in spec.profile).split())
    return f"{name}\n{' '.join(spec.needs)}\n"
