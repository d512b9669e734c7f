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
// is fault.KindUnverified: the write was accepted. After a write whose answer does not say what it did (a 502), the
// read decides.
func (f *Fleet) EditLabels(ctx context.Context, ref sandbox.Ref, edit func(labels map[string]string)) (LabelEdit, error) {
	var before, asked map[string]string // nil = nothing was written
	written, failed := callAbility(ctx, f, ref, "labels", func(e providers.LabelEditor, ctx context.Context, id string) (map[string]string, error) {
		f.recordEvent(ref, "labels", "")
		return e.EditLabels(ctx, id, func(labels map[string]string) {
			before = maps.Clone(labels)
			edit(labels)
			asked = maps.Clone(labels)
		})
	})
	if failed != nil && (asked == nil || ctx.Err() != nil || !effectUnknown(failed)) {
		return LabelEdit{}, failed
	}
	now, err := f.Get(ctx, ref)
	switch {
	case err != nil && failed != nil:
		return LabelEdit{}, fault.New(fault.KindOf(failed), "%w; whether its labels were written is not known, since the read after that failed too: %w", failed, err)
	case err != nil:
		return LabelEdit{}, fault.New(fault.KindUnverified, "its labels were written, and the read after that failed: %w", err)
	case failed == nil:
		return LabelEdit{now, differingKeys(written, now.Labels)}, nil
	}
	for _, key := range differingKeys(before, asked) {
		if value, has := asked[key]; now.Labels[key] != value || has != hasKey(now.Labels, key) {
			return LabelEdit{}, fault.New(fault.KindOf(failed), "%w; another read shows that its labels were not written", failed)
		}
	}
	return LabelEdit{now, differingKeys(asked, now.Labels)}, nil
}

func hasKey(labels map[string]string, key string) bool {
	_, has := labels[key]
	return has
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
