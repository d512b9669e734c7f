package views

import (
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// EvidenceList is the JSON form of what backs a claim.
func EvidenceList(list []sandbox.Evidence) []any {
	out := make([]any, 0, len(list))
	for _, e := range list {
		out = append(out, output.Fields{
			{Key: "what", Value: e.What}, {Key: "value", Value: e.Value}, {Key: "source", Value: e.Source}, {Key: "at", Value: output.Time(e.At)},
		})
	}
	return out
}
