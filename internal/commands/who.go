package commands

import (
	"cmp"
	"fmt"

	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// by says who asks, for records that outlive this process.
func (d *Deps) by(verb string) string {
	user := cmp.Or(d.Process.Getenv("SUDO_USER"), d.Process.Getenv("USER"), d.Process.Getenv("LOGNAME"), fmt.Sprintf("uid %d", d.Process.UID))
	return fmt.Sprintf("sbx %s (%s, pid %d)", verb, user, d.Process.PID)
}

// evidence is the JSON form of what backs a claim.
func evidence(list []sandbox.Evidence) []any {
	out := make([]any, 0, len(list))
	for _, e := range list {
		out = append(out, output.Fields{
			{Key: "what", Value: e.What}, {Key: "value", Value: e.Value}, {Key: "source", Value: e.Source}, {Key: "at", Value: output.Time(e.At)},
		})
	}
	return out
}
