package wirekit

import (
	"maps"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// EditLabels is the edited copy of labels that were read, for an API that replaces all of them at once; false
// without a change. Labels that cannot be read are fault.KindUnavailable: a write would drop them.
func EditLabels(labels map[string]string, edit func(map[string]string)) (edited map[string]string, changed bool, err error) {
	if _, unreadable := labels[sandbox.LabelUnreadable]; unreadable {
		return nil, false, fault.New(fault.KindUnavailable, "its labels cannot be read, and a write would replace them")
	}
	edited = maps.Clone(labels)
	if edited == nil {
		edited = map[string]string{}
	}
	edit(edited)
	return edited, !maps.Equal(labels, edited), nil
}
