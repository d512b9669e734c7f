package fleet

import (
	"context"
	"maps"
	"slices"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// LabelEdit is what a read after an edit of labels has shown.
type LabelEdit struct {
	Sandbox sandbox.Sandbox // as the read shows it
	// Differ are the keys that do not have the value that was written: the write had no effect, or another
	// client wrote at the same time.
	Differ []string
}

// EditLabels changes the labels of a sandbox (providers.LabelEditor) and reads it again. An error of that read
// is fault.KindUnverified: the write was accepted.
func (f *Fleet) EditLabels(ctx context.Context, ref sandbox.Ref, edit func(labels map[string]string)) (LabelEdit, error) {
	written, err := callAbility(ctx, f, ref, "labels", func(e providers.LabelEditor, ctx context.Context, id string) (map[string]string, error) {
		f.recordEvent(ref, "labels", "")
		return e.EditLabels(ctx, id, edit)
	})
	if err != nil {
		return LabelEdit{}, err
	}
	now, err := f.Get(ctx, ref)
	if err != nil {
		return LabelEdit{}, fault.New(fault.KindUnverified, "its labels were written, and the read after that failed: %w", err)
	}
	return LabelEdit{now, differingKeys(written, now.Labels)}, nil
}

func differingKeys(a, b map[string]string) []string {
	keys := map[string]bool{}
	for _, pair := range [][2]map[string]string{{a, b}, {b, a}} {
		for key, value := range pair[0] {
			if other, there := pair[1][key]; !there || other != value {
				keys[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}
