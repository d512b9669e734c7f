package guest

import "al.essio.dev/pkg/shellescape"

// findProgram is a shell text that goes on only where a program can be run at all, as
// exec would find it: by its path from the workdir, or in PATH. It exits with
// ExitNoWorkdir, ExitNoProgram or ExitNotExecutable. A shell that knows programs
// without a file is believed.
func findProgram(p Program) string {
	if len(p.Args) == 0 {
		return ""
	}
	return findText + "find_program " + shellescape.QuoteCommand([]string{p.Workdir, p.Args[0]}) + " || exit $?\n"
}

const findText = `find_program() (
  [ -z "$1" ] || { CDPATH= cd -- "$1" 2>/dev/null || exit 46; }
  case $2 in */*)
    [ -e "$2" ] || exit 47
    [ -f "$2" ] && [ -x "$2" ] || exit 48
    exit 0;;
  esac
  found=47 IFS=:
  set -f
  for dir in $PATH; do
    [ -f "${dir:-.}/$2" ] || continue
    [ -x "${dir:-.}/$2" ] && exit 0
    found=48
  done
  command -v "$2" >/dev/null 2>&1 && exit 0
  exit $found
)
`
