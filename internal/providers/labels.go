package providers

import (
	"context"
	"maps"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// LabelEditor changes the labels of a sandbox after its creation.
type LabelEditor interface {
	// EditLabels reads the labels, gives a copy of them to edit, and writes the result, which it returns.
	// Nil means accepted: only another read shows the effect, and an API that replaces all labels at once
	// may have lost what another client wrote in between. edit is called at most once. Without a change
	// nothing is written. fault.KindNotFound or KindGone where there is no sandbox whose labels count;
	// fault.KindUnsupported where the result has more labels than the provider stores.
	EditLabels(ctx context.Context, id string, edit func(labels map[string]string)) (map[string]string, error)
}

// EditedLabels is the edited copy of labels that were read, for a write that replaces all of them; false without
// a change. Labels that cannot be read are fault.KindUnavailable: a write would drop them.
func EditedLabels(labels map[string]string, edit func(map[string]string)) (edited map[string]string, changed bool, err error) {
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
