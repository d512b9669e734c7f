package guest

import (
	"slices"
	"strings"

	"sbx/internal/fault"
)

// Refused reads an exit code together with the end of stderr: was the program not
// run at all? Nil where it ran, or where nobody says. Both codes may be a program's
// own, so that the shell must name the program itself: what `sh -c 'x'` says of x
// is the affair of sh.
func Refused(code int, program, stderr string) error {
	said := strings.ToLower(stderr)
	name := strings.ToLower(program)
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool {
			return slices.ContainsFunc([]string{"", `"`, "'", "’"}, func(quote string) bool { return strings.Contains(said, name+quote+": "+w) })
		})
	}
	switch {
	case code == 127 && says("not found", "command not found", "no such file", "executable file not found"):
		return fault.New(fault.KindCommandNotFound, "there is no program %q in it", program)
	case code == 126 && says("permission denied", "cannot execute", "is a directory", "exec format error"):
		return fault.New(fault.KindNotExecutable, "%q may not be run", program)
	}
	return nil
}
