package views

import (
	"fmt"
	"strings"

	"sbx/internal/fault"
)

// ExitCodesHelp is the help topic, made from the table that decides the codes.
func ExitCodesHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes\n\n")
	for _, row := range fault.Table() {
		kind := string(row.Kind)
		if kind == "" {
			kind = "-"
		}
		fmt.Fprintf(&b, "  %3d  %-18s %s\n", row.Code, kind, row.Meaning)
	}
	b.WriteString(`
Codes and kinds are only ever added; treat an unknown code that is not 0 as a failure.
The kind is also in the "errors" of every JSON document.

exec gives the program's own code: 128+n for a death by signal n, 125 when it
could not be run, 126 when it is not executable, 127 when it was not found.
`)
	return b.String()
}
