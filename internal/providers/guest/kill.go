package guest

import "fmt"

// Kill is a shell text that sends a signal, by number, to a run's whole group and
// to what of it has left the group. Without such a run it exits with ExitMissing;
// with nothing left to signal it does nothing.
func Kill(tag string, signal int) string {
	if tag == "" {
		tag = Main
	}
	return enter(tag) + fmt.Sprintf(killText, signal, Quote("SBX_RUN="+tag))
}

// killText finds those who left by the variable that a run's processes carry.
const killText = `[ -d "$d" ] || exit 44
p=$(cat "$d/pid" 2>/dev/null)
[ -n "$p" ] && [ ! -e "$d/code" ] && { kill -%[1]d -- "-$p" 2>/dev/null || kill -%[1]d "$p" 2>/dev/null; }
for e in /proc/[0-9]*/environ; do
  q=${e%%/environ}; q=${q#/proc/}
  [ "$q" = "$$" ] || { tr '\000' '\n' < "$e" 2>/dev/null | grep -qxF -e %[2]s && kill -%[1]d "$q" 2>/dev/null; }
done
exit 0
`

// Wrap is one shell line that runs a program as the exec of an API whose exec is
// a shell line: in a shell of its own, so that `exit` ends that one, with stdin
// from a file ("" = nothing) and in a folder ("" = where the call runs). The
// line's exit code is the program's; 125 where the folder is not there.
func Wrap(args []string, workdir, stdin string) string {
	script := ""
	if workdir != "" {
		script = "cd " + Quote(workdir) + " || exit 125; "
	}
	from := "/dev/null"
	if stdin != "" {
		from = stdin
	}
	return "sh -c " + Quote(script+"exec "+Quote(args...)+" < "+Quote(from))
}
