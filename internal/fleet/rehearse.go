package fleet

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/policy"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Rehearse asks the providers that can (providers.Rehearser) whether they would accept the ends of these targets
// now, and returns why not. What was not answered is not refused: the end itself shows it.
func (f *Fleet) Rehearse(ctx context.Context, targets []sandbox.Sandbox, o EndOptions) map[sandbox.Ref]string {
	able := slices.DeleteFunc(slices.Clone(targets), func(s sandbox.Sandbox) bool {
		_, _, err := requireAbility[providers.Rehearser](f, s.Provider, "rehearse")
		return err != nil
	})
	refused, mu := map[sandbox.Ref]string{}, sync.Mutex{}
	f.ForEach(able, func(i int) {
		ref := able[i].Ref()
		_, err := callAbility(ctx, f, ref, "terminate", func(r providers.Rehearser, ctx context.Context, id string) (struct{}, error) {
			return struct{}{}, r.Rehearse(ctx, id, providers.TerminateOptions{Delete: o.Delete, Grace: o.Grace, FullGrace: o.FullGrace, By: o.By})
		})
		if fault.KindOf(err) == fault.KindRefused && !errors.Is(err, policy.ErrOpen) {
			mu.Lock()
			defer mu.Unlock()
			refused[ref] = "the provider would refuse it: " + strings.TrimPrefix(err.Error(), ref.Provider+": terminate "+ref.ID+": ")
		}
	})
	return refused
}
