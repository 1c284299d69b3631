"""The POSIX sh scripts that look at launches and end their processes, as text; `folder` and `hardware.processes` parse
what they print.

Each is one brace group (see `script`). Arguments arrive as $1, $2, ...
"""

from __future__ import annotations

from specconsole.core.launching.script import IDENTITY, LAUNCH_VARIABLE, MACHINE, STATE_FOLDER

# $@: launch ids; none for all. What is cut or binary only costs that one field.
OBSERVE = f"""\
{{
{IDENTITY}{MACHINE}
m=$(machine); root={STATE_FOLDER}/launches/$m; locks={STATE_FOLDER}/locks/$m; here=$(boot)
up=$(cut -d. -f1 /proc/uptime)
printf 'root=%s\\nboot=%s\\nuptime=%s\\nnow=%s\\n' "$root" "$here" "$(cut -d' ' -f1 /proc/uptime)" "$(date +%s)"
printf 'user=%s\\nhertz=%s\\n' "$(id -un 2>/dev/null || id -u)" "$(getconf CLK_TCK 2>/dev/null || echo 100)"
[ $# -gt 0 ] || {{ cd "$root" 2>/dev/null && set -- *; }}
for id in "$@"; do
  dir=$root/$id
  [ -d "$dir" ] || continue
  printf 'launch=%s\\n' "$id"
  [ -f "$dir/process" ] || stat -c 'made_at=%Y' "$dir" 2>/dev/null
  for name in requested.json process wrapper exit stop ended answered waiter waiting; do
    if [ -f "$dir/$name" ]; then
      line=; IFS= read -r line 2>/dev/null <"$dir/$name"; printf '%s=%s\\n' "$name" "$line"
    fi
  done
  who=$dir/process; [ -f "$who" ] || who=$dir/waiter
  if [ -f "$who" ]; then
    IFS=' =' read -r _ pid _ 2>/dev/null <"$who"
    case $pid in
      ''|*[!0-9]*) ;;
      *) stat=; if read -r stat 2>/dev/null <"/proc/$pid/stat"; then printf 'stat=%s\\n' "$stat"; fi ;;
    esac
  fi
  holder=$locks/stop-$id/holder
  if [ -f "$holder" ]; then
    until_=0; {{ read -r _; read -r boot_; read -r until_; }} 2>/dev/null <"$holder"
    [ "$boot_" = "$here" ] && [ "$until_" -ge "$up" ] 2>/dev/null && printf 'stopping=1\\n'
  fi
  if [ -f "$dir/server.log" ]; then stat -L -c 'log=%s %Y' "$dir/server.log" 2>/dev/null; fi
  if [ -f "$dir/exit" ]; then stat -c 'exit_at=%Y' "$dir/exit" 2>/dev/null; fi
done
printf 'end=1\\n'
}}
"""

# $1: a launch id. Three plain program calls whatever the number of processes; `grep -l` names the environments that
# carry the mark (an id is random and of fixed length: no other text contains it).
PROCESS_TABLE = f"""\
{{
{IDENTITY}
printf 'boot=%s\\nuptime=%s\\n' "$(boot)" "$(cut -d' ' -f1 /proc/uptime)"
printf 'hertz=%s\\nself=%s\\n' "$(getconf CLK_TCK 2>/dev/null || echo 100)" $$
printf '#stat\\n'; cat /proc/[0-9]*/stat 2>/dev/null
printf '#environ\\n'; grep -lsF -- "{LAUNCH_VARIABLE}=$1" /proc/[0-9]*/environ 2>/dev/null
printf '#end\\n'
}}
"""

# $@: process ids. Who they belong to and what they run.
PROCESS_DETAIL = """\
{
for pid in "$@"; do
  [ -d "/proc/$pid" ] || continue
  printf '#pid=%s\\n' "$pid"
  stat -c 'user=%U' "/proc/$pid" 2>/dev/null
  printf 'command='; tr '\\0\\n' '  ' <"/proc/$pid/cmdline" 2>/dev/null | head -c 4096; printf '\\n'
done
printf '#end\\n'
}
"""

# $1: TERM or KILL; $2: boot; then `pid:start_ticks:pgid` each. A group is signalled through a member that is proven at
# that moment: while it is in the group, the group's number can't belong to anybody else. pgid 0: only the process.
SIGNAL = f"""\
{{
{IDENTITY}
signal=$1; [ "$2" = "$(boot)" ] || {{ printf 'other-boot\\n'; exit 0; }}
shift 2
for one in "$@"; do
  pid=${{one%%:*}}; rest=${{one#*:}}; want=${{rest%%:*}}; group=${{rest#*:}}
  ticks "$pid"
  if [ "$ticks" != "$want" ]; then printf 'gone %s\\n' "$pid"; continue; fi
  now=${{stat##*) }}; now=${{now#* * }}; now=${{now%% *}}
  if [ "$group" != 0 ] && [ "$now" = "$group" ]; then
    kill -s "$signal" -- "-$group" 2>/dev/null && printf 'group %s\\n' "$group" || printf 'failed %s\\n' "$pid"
  else
    kill -s "$signal" "$pid" 2>/dev/null && printf 'sent %s\\n' "$pid" || printf 'failed %s\\n' "$pid"
  fi
done
}}
"""

# $1: a port, or nothing for all. Listening sockets of both families (state 0A, proc_net_tcp), then the holders that we
# may see.
PORT_HOLDERS = """\
{
hex=.*; [ -n "$1" ] && hex=$(printf '%04X' "$1")
printf '#listen\\n'
rows=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -E "^ *[0-9]+: [0-9A-F]+:$hex [0-9A-F]+:0000 0A ")
printf '%s\\n' "$rows"
inodes=$(printf '%s\\n' "$rows" | while read -r _ _ _ _ _ _ _ _ _ inode _; do printf '%s' "${inode:+$inode|}"; done)
printf '#fd\\n'
if [ -n "$inodes" ]; then
  ls -ln /proc/[0-9]*/fd 2>/dev/null | grep -E "^/proc/|socket:\\[(${inodes%|})\\]" | grep -B1 'socket:'
fi
printf '#end\\n'
}
"""

# $1: a launch id, $2: the line. Only the first who asks is written down.
MARK_STOP = f"""\
{{
{MACHINE}
dir={STATE_FOLDER}/launches/$(machine)/$1; umask 077
[ -d "$dir" ] || {{ printf 'missing\\n'; exit 0; }}
printf '%s\\n' "$2" >"$dir/stop.$$" || exit 0
ln "$dir/stop.$$" "$dir/stop" 2>/dev/null
rm -f "$dir/stop.$$"; printf 'marked\\n'
}}
"""

# $1: a launch id, $2: seconds from its start to its first proven answer. Only the first is written down.
MARK_ANSWERED = f"""\
{{
{MACHINE}
dir={STATE_FOLDER}/launches/$(machine)/$1; umask 077
printf '%s\\n' "$2" >"$dir/answered.$$" || exit 0
ln "$dir/answered.$$" "$dir/answered" 2>/dev/null
rm -f "$dir/answered.$$"
}}
"""

# $1: a launch id. A stop that was given up while the server runs leaves no marker.
UNMARK_STOP = f"""\
{{
{MACHINE}
rm -f "{STATE_FOLDER}/launches/$(machine)/$1/stop"
}}
"""

# $1: a launch id, $2: the line that says how the stop ended. Its place in the queue ends with it.
MARK_ENDED = f"""\
{{
{MACHINE}
dir={STATE_FOLDER}/launches/$(machine)/$1; umask 077
rm -f "$dir/secrets.sh" "{STATE_FOLDER}/queue/$(machine)"/*-"$1"
printf '%s\\n' "$2" >"$dir/ended.tmp" && mv "$dir/ended.tmp" "$dir/ended" && printf 'marked\\n'
}}
"""

# What the kernel and the control group say about memory.
MEMORY = """\
{
grep -E '^(MemTotal|MemAvailable):' /proc/meminfo 2>/dev/null
two=/sys/fs/cgroup; one=$two/memory
printf 'cgroup_max=%s\\n' "$(cat $two/memory.max 2>/dev/null || cat $one/memory.limit_in_bytes 2>/dev/null)"
printf 'cgroup_used=%s\\n' "$(cat $two/memory.current 2>/dev/null || cat $one/memory.usage_in_bytes 2>/dev/null)"
}
"""

# $@: paths (a leading ~/ is the home folder). Prints `index kind size`; the size of a folder is that of its files.
PATHS = """\
{
i=0
for path in "$@"; do
  case $path in '~/'*) path=$HOME/${path#'~/'} ;; esac
  if [ ! -e "$path" ]; then printf '%s missing\\n' "$i"
  elif [ ! -r "$path" ]; then printf '%s unreadable\\n' "$i"
  elif [ -d "$path" ]; then
    sum=$(find -L "$path" -maxdepth 1 -type f -exec stat -Lc %s {} + 2>/dev/null | awk '{s+=$1} END {printf "%d", s}')
    printf '%s folder %s\\n' "$i" "$sum"
  else printf '%s file %s\\n' "$i" "$(stat -Lc %s "$path" 2>/dev/null)"; fi
  i=$((i+1))
done
}
"""

# $1: the program, then each or "": $2 an environment's folder, $3 a folder to start in, $4 PATH.
BINARY = """\
{
name=$1; venv=$2; dir=$3
case $venv in '~/'*) venv=$HOME/${venv#'~/'} ;; esac
case $dir in '~/'*) dir=$HOME/${dir#'~/'} ;; esac
case $name in '~/'*) name=$HOME/${name#'~/'} ;; esac
if [ -n "$dir" ] && ! cd "$dir" 2>/dev/null; then printf 'no-dir\\n'; exit 0; fi
if [ -n "$venv" ] && [ ! -d "$venv/bin" ]; then printf 'no-venv\\n'; exit 0; fi
[ -n "$4" ] && PATH=$4
[ -n "$venv" ] && PATH=$venv/bin:$PATH
case $name in
  */*)
    if [ ! -e "$name" ]; then printf 'none\\n'
    elif [ -d "$name" ] || [ ! -x "$name" ]; then printf 'not-executable\\n'
    else printf 'found %s\\n' "$name"; fi ;;
  *) found=$(command -v -- "$name" 2>/dev/null) && printf 'found %s\\n' "$found" || printf 'none\\n' ;;
esac
}
"""
