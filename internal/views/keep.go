package views

import (
	"strings"
	"time"

	"sbx/internal/ops/end"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// KeepItem is what a keep has reached for one sandbox.
type KeepItem struct {
	Ref    string     `json:"ref" table:""`    // PROFILE/ID.
	Kept   *bool      `json:"kept" table:""`   // True: its label protects it, as another read has shown; null: it failed.
	Label  *string    `json:"label" table:""`  // The value of its label sbx/keep; null where it has none, or it failed.
	Until  *time.Time `json:"until" table:""`  // When the protection ends; null where it has no end, or there is none.
	Was    *string    `json:"was" table:""`    // The value before; null where it had none.
	Others []string   `json:"others"`          // Other labels that another client changed at the same time: check them.
	Reason *string    `json:"reason" table:""` // Why it failed, or what else protects it after --off, or what protects it in a list.
}

// KeepColumns are the columns of a KeepItem.
func KeepColumns() []output.Column[end.KeepResult] { return output.Columns(keepItem) }

func keepItem(r end.KeepResult) KeepItem {
	item := KeepItem{
		Ref: r.Ref.String(), Label: orNil(r.Label), Until: orNil(r.Until), Was: orNil(r.Was), Others: append([]string{}, r.Others...),
		Reason: orNil(r.Still),
	}
	if r.Err != nil {
		item.Reason = new(r.Err.Error())
	} else {
		item.Kept = new(!r.Off)
	}
	return item
}

// KeepLine is the result of one sandbox for people; the error of a failed one is beside it.
func KeepLine(r end.KeepResult) string {
	ref := r.Ref.String()
	var text string
	switch {
	case r.Err != nil:
		return ref + ": not changed, or not seen to be changed"
	case r.Off && r.Was == "":
		text = "it had no label " + sandbox.LabelKeep
	case r.Off:
		text = "no longer kept (it was " + sandbox.LabelKeep + "=" + r.Was + ")"
	case r.Until.IsZero():
		text = "kept until `sbx keep " + ref + " --off` (" + sandbox.LabelKeep + "=" + r.Label + ")"
	default:
		text = "kept until " + r.Label + " (" + sandbox.LabelKeep + "=" + r.Label + ")"
	}
	switch {
	case r.Off && r.Still != "":
		text += "; still " + r.Still
	case r.Off:
		text += "; cleanup, reconcile --fix and terminate may end it"
	case r.Was != "" && r.Was != r.Label:
		text += ", before that " + r.Was
	}
	if len(r.Others) > 0 {
		text += "; other labels changed meanwhile: " + strings.Join(r.Others, ", ")
	}
	return ref + ": " + text
}

// KeptLine is one sandbox of the list of what is kept.
func KeptLine(r end.KeepResult) string { return r.Ref.String() + ": " + r.Still }
