package alert

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/check"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/triage"
)

// Alert is one rule at one provider after an evaluation.
type Alert struct {
	Rule     check.Check
	Provider string
	Verdict  sandbox.Verdict // of the condition, this time; "" = it was not evaluated
	Evidence []string        // the comparisons of the condition
	State    State
	At       time.Time // by the store's clock
	HoldFor  time.Duration
	Changed  Event // what this process has to send, see Deliver; none = nothing
}

// Key names the alert in the store and in notifications; it is the same on every host.
func (a Alert) Key() string { return a.Rule.ID + "/" + a.Provider }

// Open reports whether the alert is pending or firing.
func (a Alert) Open() bool { return a.State.Phase == Pending || a.State.Phase == Firing }

// Describe says where the alert stands: "active_escalated at prod: pending for 18m of 30m, data
// gap 12m".
func (a Alert) Describe() string {
	return a.Rule.ID + " at " + a.Provider + ": " + a.State.Describe(a.At, a.HoldFor)
}

// Send notifies people of a change, as SendEvent does.
type Send func(ctx context.Context, a Alert) (stillLeft []string, err error)

// StoreLimit bounds what a slow store may cost an evaluation, and again the sending.
const StoreLimit = 3 * time.Second

// Evaluate evaluates every rule on each subject and stores the states. The changes that this
// process has to send are claimed for a minute, and wait for Deliver: if it ends before, or fails,
// another process sends them. Evaluate ends at the first error of the store; the alerts beside it
// are those that could be evaluated.
func Evaluate(ctx context.Context, docs store.DocStore, subjects []check.Subject) (all []Alert, err error) {
	ctx, stop := context.WithTimeout(ctx, StoreLimit)
	defer stop()
	kept, err := docs.Docs(ctx, string(kindRule))
	if err != nil {
		return nil, err
	}
	for _, rule := range check.Alerts() {
		for i := range subjects {
			a := newAlert(rule, &subjects[i])
			read := docOf(kept, a.Key())
			if stateOf(read).Phase == Firing && rule.DefaultNote(&subjects[i]) != "" {
				a.Verdict = sandbox.True // nothing has recovered: it stays until the count falls, or a limit is configured
			}
			if read.Version == 0 && a.Verdict != sandbox.True {
				all = append(all, a)
				continue // it never held
			}
			stored := storedAlert{
				kind: kindRule, key: a.Key(), verdict: a.Verdict, evidence: a.Evidence, holdFor: a.HoldFor,
				every: subjects[i].Limits.CleanupEvery, known: read,
			}
			claimed, err := stored.advance(ctx, docs, 2*swapTries)
			if err != nil {
				return all, err
			}
			if a.State, a.At = stored.state, stored.at; claimed {
				a.Changed = a.State.Send
			}
			all = append(all, a)
		}
	}
	return all, nil
}

// Deliver sends, all at once, the changes that Evaluate has claimed for this process. The errors
// are of sending and of the store.
func Deliver(ctx context.Context, docs store.DocStore, all []Alert, send Send) error {
	errs := make([]error, len(all))
	var sending sync.WaitGroup
	for i, a := range all {
		if a.Changed == EventNone {
			continue
		}
		sending.Go(func() {
			stored := storedAlert{kind: kindRule, key: a.Key(), state: a.State}
			errs[i] = stored.deliver(ctx, docs, func(ctx context.Context, _ Event, _ []string) ([]string, error) { return send(ctx, a) })
		})
	}
	sending.Wait()
	return errors.Join(errs...)
}

func newAlert(rule check.Check, subject *check.Subject) Alert {
	explained := rule.Explain(subject)
	a := Alert{Rule: rule, Provider: subject.Provider, Verdict: explained.Verdict, HoldFor: rule.Duration(subject.Limits)}
	for _, leaf := range explained.Leaves {
		a.Evidence = append(a.Evidence, leaf.Words)
	}
	return a
}

func docOf(kept []store.Doc, key string) store.Doc {
	if i := slices.IndexFunc(kept, func(d store.Doc) bool { return d.Key == key }); i >= 0 {
		return kept[i]
	}
	return store.Doc{}
}

// Read returns the alerts that are pending or firing, in the order of check.Alerts, without evaluating
// any. Limits are those of a provider; false = it is not asked about.
func Read(ctx context.Context, docs store.DocStore, limits func(provider string) (triage.Thresholds, bool)) ([]Alert, error) {
	ctx, stop := context.WithTimeout(ctx, StoreLimit)
	defer stop()
	kept, err := docs.Docs(ctx, string(kindRule))
	if err != nil {
		return nil, err
	}
	var all []Alert
	for _, rule := range check.Alerts() {
		for _, doc := range kept {
			provider, mine := strings.CutPrefix(doc.Key, rule.ID+"/")
			if !mine {
				continue
			}
			if t, asked := limits(provider); asked {
				s := stateOf(doc)
				if a := (Alert{Rule: rule, Provider: provider, Evidence: s.Evidence, State: s, At: doc.ReadAt, HoldFor: rule.Duration(t)}); a.Open() {
					all = append(all, a)
				}
			}
		}
	}
	return all, nil
}

// Follow is Evaluate for trouble that no rule describes, such as a run that fails: key names it,
// and verdict says whether it goes on. Send is called once when it begins and once when it is
// over.
func Follow(ctx context.Context, docs store.DocStore, key string, verdict sandbox.Verdict, send SendEvent) error {
	stored := storedAlert{kind: kindRun, key: key, verdict: verdict}
	limited, stop := context.WithTimeout(ctx, StoreLimit)
	defer stop()
	claimed, err := stored.advance(limited, docs, 2*swapTries)
	if err != nil || !claimed {
		return err
	}
	return stored.deliver(ctx, docs, send)
}
