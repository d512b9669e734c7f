package guest

import (
	"fmt"

	"al.essio.dev/pkg/shellescape"
)

// KillScript is a script that sends a signal, by number, to the process group of a run and to
// its processes outside the group, and prints "signalled N". It records for ReadExitScript that
// sbx sent it. A process that has left the session and has cleared its environment is not
// found. Without such a run the script exits with ExitMissing; without a process to signal
// it does nothing.
func KillScript(tag string, signal int) string {
	return enterRunDir(tag) + fmt.Sprintf("signal=%d\n", signal) + sharedFunctions + killText + strayFunction + killStraysText
}

// KillMarkedScript is a script that kills every process whose environment has this KEY=VALUE,
// except the shell that runs it, and prints "signalled N".
func KillMarkedScript(mark string) string {
	return "signal=9 group= told= n=0 mark=" + shellescape.Quote(mark) + "\n" + sharedFunctions + strayFunction + killStraysText
}

// killText checks that the process id still belongs to the program before it signals.
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

// strayFunction is a shell function that says whether a process belongs to the session of $group
// or has $mark in its environment, which children inherit. $told and the processes of the
// group have received the signal already: some programs take a second TERM as a request to
// stop at once.
const strayFunction = `stray() {
  [ "$1" != "$$" ] && [ "$1" != "$told" ] && [ -n "$(birth "$1")" ] || return 1
  { IFS= read -r stat < "/proc/$1/stat"; } 2>/dev/null || return 1
  set -- "$1" ${stat##*) }
  [ -n "$group" ] && [ "$4" = "$group" ] && return 1
  [ -n "$group" ] && [ "$5" = "$group" ] && return 0
  { tr '\000' '\n' < "/proc/$1/environ"; } 2>/dev/null | grep -qxF -e "$mark"
}
`

// killStraysText repeats after a SIGKILL: a process that was being forked appears later.
const killStraysText = `round=0 found=1
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
