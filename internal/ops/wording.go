package ops

import (
	"fmt"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
)

// CountsText names the outcomes that there are: "18 verified, 2 changed".
func CountsText(c fleet.Counts) string {
	text := ""
	for _, o := range sandbox.Outcomes() {
		if n := c.Of(o); n > 0 {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%d %s", n, o)
		}
	}
	if text == "" {
		return "-"
	}
	return text
}

// WithDetail writes "what (more)".
func WithDetail(what, more string) string {
	if more == "" {
		return what
	}
	return what + " (" + more + ")"
}
