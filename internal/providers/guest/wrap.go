package guest

import (
	"bytes"
	"strconv"
)

// Wrap is one shell line that runs a program as the exec of an API whose exec is
// a shell line: in a shell of its own, so that `exit` ends that one, with stdin
// from a file ("" = nothing) and in a folder ("" = where the call runs; the file
// is named from where the call runs). The shell becomes the program, so what the
// API kills is the program. The line's exit code is the program's; 125 where
// file or folder is not there, 127 and 126 for a program that is not or may not
// be run.
func Wrap(args []string, workdir, stdin string) string {
	return "sh -c " + Quote(enterWith(workdir, stdin)+"exec "+Quote(args...))
}

// enterWith opens stdin, then goes to the folder.
func enterWith(workdir, stdin string) string {
	script := "exec < /dev/null; "
	if stdin != "" {
		script = "[ -r " + Quote(stdin) + " ] || exit 125; exec < " + Quote(stdin) + "; "
	}
	if workdir != "" {
		script += "CDPATH= cd -- " + Quote(workdir) + " || exit 125; "
	}
	return script
}

// WrapExec is Wrap with the program in a session of its own, or without setsid(1)
// in a process group where the shell can make one. A TERM, INT or HUP that
// reaches the shell goes on to the whole group, and 2 s later a KILL: for an API
// that ends a command by a polite signal to its own group. A KILL reaches only
// the shell, so where the API kills, use Wrap.
func WrapExec(args []string, workdir, stdin string) string {
	return "sh -c " + Quote(enterWith(workdir, stdin)+"set -- "+Quote(args...)+"\n"+parts+execText)
}

// execText waits again when a signal has ended the wait: only the program's own
// end gives the code. What runs beside a shell has nothing on stdin, so it is
// handed over under another number.
const execText = `stop() {
  stopped=1
  kill -TERM "-$p" 2>/dev/null || kill -TERM "$p" 2>/dev/null
  i=0
  while [ -n "$(birth $p)" ] && [ $i -lt 20 ]; do sleep 0.1 2>/dev/null || { sleep 1; i=$((i+9)); }; i=$((i+1)); done
  kill -KILL "-$p" 2>/dev/null
}
stopped=
exec 3<&0
if command -v setsid >/dev/null 2>&1
then setsid sh -c 'exec "$@"' sbx "$@" <&3 3<&- & p=$!
else set -m 2>/dev/null; sh -c 'exec "$@"' sbx "$@" <&3 3<&- & p=$!; set +m 2>/dev/null
fi
trap stop TERM INT HUP
wait $p; c=$?
if [ -n "$stopped" ]; then wait $p; again=$?; [ $again = 127 ] || c=$again; fi
exit $c
`

// Trailed is a shell line that runs another and prints, on a line of its own, a
// mark and that line's exit code: for an API that gives no code. The mark must be
// a word that the program cannot guess.
func Trailed(line, mark string) string {
	return line + "; printf '\\n%s %d\\n' " + Quote(mark) + " $?"
}

// CutTrailer takes off what Trailed has added to an output. false where it is not
// there: the end was not seen.
func CutTrailer(output []byte, mark string) (rest []byte, code int, seen bool) {
	i := bytes.LastIndex(output, []byte("\n"+mark+" "))
	if i < 0 {
		return output, 0, false
	}
	tail, found := bytes.CutSuffix(output[i+len(mark)+2:], []byte("\n"))
	code, err := strconv.Atoi(string(tail))
	if !found || err != nil || code < 0 || code > 255 {
		return output, 0, false
	}
	return output[:i], code, true
}
