package guest

// Source is how lines and exits that come from these files name themselves.
const Source = "sbx-file"

// The states of a run, as the texts print them.
const (
	stateRunning = "running"
	stateEnded   = "ended"
	stateLost    = "lost"
)

// ReadExit is a shell text that prints how a run stands; ParseExit reads it.
// Without such a run it exits with ExitMissing.
func ReadExit(tag string) string { return enter(tag) + parts + counters + exitText }

// exitText prints the program's own words last and each behind a key, so that
// they cannot pass for a fact. Where nobody wrote what the kernel counted at the
// end, it is what it counts now.
const exitText = `[ -d "$d" ] || exit 44
s=$(state "$d")
echo "state $s"
[ -e "$d/begin" ] && cat "$d/begin"
[ -e "$d/killed" ] && echo "killed $(cat "$d/killed")"
if [ $s = ended ]; then cat "$d/code"; else counters | sed 's/^/after /'; fi
for n in out err; do
  last=-1
  for f in "$d/$n".*; do k=${f##*.}; case $k in *[!0-9]*) ;; *) [ $k -lt $last ] || last=$k;; esac; done
  [ -e "$d/$n.$last" ] && tail -c 4000 "$d/$n.$last" | tail -n 20 | sed 's/^/line /' && echo
done
exit 0
`
