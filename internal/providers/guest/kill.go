package guest

import (
	"fmt"

	"al.essio.dev/pkg/shellescape"
)

// Kill is a shell text that sends a signal, by number, to a run's whole group and
// to what of it has left the group, and prints "signalled N". It notes for
// ReadExit that it was sbx. Whoever left the session and threw its environment
// away is not found. Without such a run it exits with ExitMissing; with nothing
// left to signal it does nothing.
func Kill(tag string, signal int) string {
	return enter(tag) + fmt.Sprintf("signal=%d\n", signal) + parts + killText + strays + strayText
}

// KillMarked is a shell text that kills every process whose environment has this
// KEY=VALUE, but for the shell that runs it, and prints "signalled N".
func KillMarked(mark string) string {
	return "signal=9 group= told= n=0 mark=" + shellescape.Quote(mark) + "\n" + parts + strays + strayText
}

// killText looks whether the number still is the program's before it signals.
const killText = `[ -d "$d" ] || exit 44
n=0 group= told=
mark="SBX_RUN=$d/"
p=$(alive "$d/pid")
if [ -n "$p" ]; then
  echo "$signal $(date +%s)" > "$d/killed"
  if kill -$signal "-$p" 2>/dev/null; then group=$p n=1
  elif kill -$signal "$p" 2>/dev/null; then told=$p n=1; fi
fi
`

// strays is a shell function that says whether a process belongs to $group's
// session or carries $mark, which everybody inherits. $told and those who are in
// the group have had the signal: a second TERM means haste to some.
const strays = `stray() {
  [ "$1" != "$$" ] && [ "$1" != "$told" ] && [ -n "$(birth "$1")" ] || return 1
  { IFS= read -r stat < "/proc/$1/stat"; } 2>/dev/null || return 1
  set -- "$1" ${stat##*) }
  [ -n "$group" ] && [ "$4" = "$group" ] && return 1
  [ -n "$group" ] && [ "$5" = "$group" ] && return 0
  { tr '\000' '\n' < "/proc/$1/environ"; } 2>/dev/null | grep -qxF -e "$mark"
}
`

// strayText goes round again after a kill: what was being forked appears later.
const strayText = `round=0 found=1
while [ $found = 1 ] && [ $round -lt 5 ]; do
  found=0
  for e in /proc/[0-9]*; do
    q=${e#/proc/}
    stray "$q" && kill -$signal "$q" 2>/dev/null && { found=1; n=$((n+1)); }
  done
  [ $signal -eq 9 ] || break
  round=$((round+1))
done
echo "signalled $n"
exit 0
`
