package end

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/ops"
	"sbx/internal/providers"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// KeepRequest says which sandboxes are kept from being ended, and how long.
type KeepRequest struct {
	Words []string
	Typed []string      // those of Words that a person typed
	For   time.Duration // 0 = until it is taken back
	Off   bool          // take it back

	Unattended bool // nobody can be asked
}

// KeepResult is what a keep has reached for one sandbox.
type KeepResult struct {
	Ref    sandbox.Ref
	Label  string    // the value of sandbox.LabelKeep that a read has shown; "" = it has none
	Until  time.Time // it protects until then; zero = until it is taken back, or not at all
	Was    string    // the value before; "" = it had none
	Off    bool      // it was to be taken back
	Still  string    // what keeps it from being ended, beside the label where one was removed; "" = nothing
	Others []string  // other labels that another client changed at the same time
	Err    error     // then Label is not known
}

// PlanKeep plans to set or remove the label that keeps sandboxes from being ended. Do reads each again; its items are
// of types error (a word that named nothing) and KeepResult. An error is why nothing can be planned.
func PlanKeep(ctx context.Context, env *ops.Env, req KeepRequest) (*ops.Act, error) {
	if err := env.MayChange(); err != nil {
		return nil, err
	}
	k := &keeping{env: env, off: req.Off, held: env.Leases(ctx)}
	var err error
	if k.config, err = env.Config(); err != nil {
		return nil, err
	}
	if k.fleet, err = env.Fleet(ctx); err != nil {
		return nil, err
	}
	found, err := k.fleet.FindEach(ctx, req.Words, fleet.FindOptions{Typed: append([]string{}, req.Typed...), Full: req.Unattended})
	if cause := ops.EndCause(ctx, err); cause != nil || len(found) == 0 {
		return nil, ops.CauseOr(ctx, err)
	}
	a := &ops.Act{Verb: "keep", At: env.Now()}
	begun := false
	for _, f := range found {
		a.Targets = append(a.Targets, ops.PlannedEnd{Ref: f.Ref(), Reason: "named by hand", Sandbox: f.Sandbox})
		begun = begun || f.Begun
	}
	if begun {
		a.Asks = []ops.Question{ops.NewQuestion(string(safety.AskYes), "change them")}
	}
	a.Execute = func(ctx context.Context, watch ops.Observer, allowed ops.Allowed) ops.ActResult {
		found := ops.Narrow(allowed, found, fleet.Found.Ref)
		if err != nil {
			for _, lost := range ops.Mistakes(err) {
				watch.Item(lost)
			}
		}
		if !req.Off {
			k.value = keepValue(env.Now(), req.For)
		}
		progress := watch.Progress("writing labels")
		defer progress.Done()
		results := make([]KeepResult, len(found))
		var wg sync.WaitGroup
		for i, one := range found {
			wg.Go(func() { results[i] = k.keepOne(ctx, one.Sandbox) })
		}
		wg.Wait()
		for _, r := range results {
			watch.Item(r)
		}
		return ops.ActResult{}
	}
	return a, nil
}

// Kept are the sandboxes that bulk verbs would not end, in the order of their references, each with why. Missing are
// the errors of what could not be listed.
func Kept(ctx context.Context, env *ops.Env) (kept []KeepResult, missing []error, err error) {
	c, err := env.Config()
	if err != nil {
		return nil, nil, err
	}
	f, err := env.Fleet(ctx)
	if err != nil {
		return nil, nil, err
	}
	protection := env.Protection(c, env.Leases(ctx))
	l := f.Collect(ctx, providers.Query{})
	if cause := ops.EndCause(ctx, l.Err()); cause != nil {
		return nil, nil, cause
	}
	for _, s := range l.Items {
		why := protection.ByRule(s)
		if why == "" || s.State.Ended() {
			continue
		}
		r := KeepResult{Ref: s.Ref(), Label: sandbox.SetKeep(maps.Clone(s.Labels), ""), Still: why}
		r.Until, _ = time.Parse(time.RFC3339, r.Label) // zero for "true"
		kept = append(kept, r)
	}
	slices.SortFunc(kept, func(a, b KeepResult) int { return cmp.Compare(a.Ref.String(), b.Ref.String()) })
	return kept, l.Errors, nil
}

// keepValue is the value of the label: a time in whole seconds, not before the duration has passed.
func keepValue(now time.Time, d time.Duration) string {
	if d == 0 {
		return "true"
	}
	return now.Add(d + time.Second - 1).UTC().Truncate(time.Second).Format(time.RFC3339)
}

// keeping is one run of PlanKeep.
type keeping struct {
	env    *ops.Env
	config *config.Config
	fleet  *fleet.Fleet
	held   *ops.Leases
	value  string // of the label; "" = it is removed
	off    bool
}

func (k *keeping) keepOne(ctx context.Context, s sandbox.Sandbox) KeepResult {
	r := KeepResult{Ref: s.Ref(), Off: k.off}
	r.Err = k.writeLabel(ctx, s, &r)
	if r.Err != nil {
		r.Err = fault.Placed(k.withHint(ctx, r), "", "keep "+r.Ref.String())
		return r
	}
	k.env.KeepConclusion(history.Event{
		Verb: "keep", Providers: []string{r.Ref.Provider}, Text: "set the label " + sandbox.LabelKeep + "=" + r.Label + " of " + r.Ref.String(),
	})
	return r
}

// writeLabel writes the label, unless the sandbox has ended, and fills in what another read shows.
func (k *keeping) writeLabel(ctx context.Context, s sandbox.Sandbox, r *KeepResult) error {
	if s.State.Ended() {
		return fault.New(fault.KindGone, "it has ended: it is %s", s.State)
	}
	edit, err := k.fleet.EditLabels(ctx, r.Ref, func(labels map[string]string) { r.Was = sandbox.SetKeep(labels, k.value) })
	now := edit.Sandbox
	protects := sandbox.Kept(now.Labels, k.env.Now()) != ""
	switch {
	case err != nil:
		return err
	case now.State.Ended():
		return fault.New(fault.KindGone, "it has ended meanwhile: it is %s", now.State)
	case k.off && protects, !k.off && now.Labels[sandbox.LabelKeep] != k.value:
		return fault.New(fault.KindUnverified, "the write was accepted, and another read does not show the label %s as it was written", sandbox.LabelKeep)
	}
	r.Label, r.Others = k.value, slices.DeleteFunc(edit.Differ, func(key string) bool { return key == sandbox.LabelKeep })
	r.Until, _ = time.Parse(time.RFC3339, k.value) // zero for "true"
	if k.off {
		r.Still = k.env.Protection(k.config, k.held).Keeps(now, safety.ByRule)
	}
	return nil
}

// withHint names what keeps a sandbox whose labels cannot be changed: the configuration.
func (k *keeping) withHint(ctx context.Context, r KeepResult) error {
	err := ops.CauseOr(ctx, r.Err)
	if fault.KindOf(err) != fault.KindUnsupported {
		return err
	}
	hint := "write into the configuration: `protect: {ids: [" + r.Ref.String() + "]}`"
	if k.off {
		hint = "what keeps it is in the configuration, if anything: `sbx config explain` shows protect.ids"
	}
	return &fault.Error{Kind: fault.KindUnsupported, Err: err, Hint: hint}
}
