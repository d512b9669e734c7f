package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sbx/internal/alert"
	"sbx/internal/check"
	"sbx/internal/fleet"
	"sbx/internal/notify"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/triage"
)

// AlertSubject is what a verb has seen of one profile, for the alerts. A figure that it has not
// seen is nil, and its alerts stay as they are.
type AlertSubject struct {
	check.Subject

	Items map[string][]notify.Item // the sandboxes that a rule is about, by the rule's id
}

// NewAlertSubject has the limits of a profile, and no figure.
func (e *Env) NewAlertSubject(profile string) AlertSubject {
	return AlertSubject{
		Subject: check.Subject{Provider: profile, Limits: e.Thresholds(sandbox.Sandbox{Provider: profile})},
		Items:   map[string][]notify.Item{},
	}
}

// RecordedSubject has the figures of the records, which are known also where the provider does
// not answer: cleanup that fails because of that has to be noticed. A listing counts only where it
// was complete.
func (e *Env) RecordedSubject(ctx context.Context, f *fleet.Fleet, profile string) AlertSubject {
	s := e.NewAlertSubject(profile)
	if f != nil {
		s.Figures = f.ProfileSignals(ctx, profile, s.Limits.StuckAge)
	}
	return s
}

// CountStuck takes the count of stuck sandboxes. None is not known to be none while sandboxes were
// not asked, or could not be.
func (s *AlertSubject) CountStuck(stuck []notify.Item, open int) {
	if len(stuck) > 0 || open == 0 {
		s.Stuck = new(int64(len(stuck)))
	}
	s.Items["sandbox_stuck"] = stuck
}

// LeaveOpen reports whether a verdict leaves it open that the sandbox is stuck, so that another
// look may tell. What no source can ever show is not open.
func LeaveOpen(v triage.Verdict) bool {
	return v.NeedsLook() || v.Stuck == sandbox.Unknown && slices.Contains(v.Reasons, triage.ReasonSourceFailed)
}

// lostAlert says that alerts could not be evaluated or sent.
func lostAlert(err error) error {
	return fmt.Errorf("an alert could not be stored or sent; the next run tries again: %w", err)
}

// EvaluateAlerts evaluates the alerts by what a verb has seen; SendNotifications notifies people of
// changes. A store that cannot be used is a warning, and then there are no alerts.
func (e *Env) EvaluateAlerts(ctx context.Context, watch Reporter, verb, runID string, subjects []AlertSubject) []alert.Alert {
	if ctx.Err() != nil || len(subjects) == 0 {
		return nil
	}
	e.warnUnreachable(watch)
	var all []alert.Alert
	err := e.withStore(func(st store.Store) (err error) {
		all, err = alert.Evaluate(ctx, st, PlainSubjects(subjects))
		return err
	})
	if err != nil {
		e.WarnNew(watch, lostAlert(err))
	}
	var changed []alert.Alert
	messages := map[string]notify.Message{}
	for _, a := range all {
		if a.Changed != alert.EventNone {
			i := slices.IndexFunc(subjects, func(s AlertSubject) bool { return s.Provider == a.Provider })
			changed, messages[a.Key()] = append(changed, a), e.alertMessage(a, verb, runID, subjects[i].Items[a.Rule.ID])
		}
	}
	if len(changed) > 0 {
		e.SendLater(watch, e.storingState(func(ctx context.Context, docs store.DocStore, n *notify.Notifier) error {
			return alert.Deliver(ctx, docs, changed, func(ctx context.Context, a alert.Alert) ([]string, error) {
				return e.Send(ctx, n, messages[a.Key()], a.State.Left)
			})
		}))
	}
	return all
}

// withStore opens the store to change states.
func (e *Env) withStore(do func(st store.Store) error) error {
	st, err := e.Store(true)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // what had to be kept was kept by its own call
	return do(st)
}

// storingState is a notification whose state is in the store.
func (e *Env) storingState(send func(ctx context.Context, docs store.DocStore, n *notify.Notifier) error) func(context.Context, *notify.Notifier) error {
	return func(ctx context.Context, n *notify.Notifier) error {
		err := e.withStore(func(st store.Store) error { return send(ctx, st, n) })
		if err != nil {
			return lostAlert(err)
		}
		return nil
	}
}

// alertMessage is the message of an alert that fires, or is over.
func (e *Env) alertMessage(a alert.Alert, verb, runID string, items []notify.Item) notify.Message {
	program := e.Process.Name()
	m := notify.Message{
		Verb: verb, RunID: runID, Host: e.Process.Host, Kind: notify.KindAlert, Key: "alert/" + a.Key(), At: e.Now(),
		Alert: a.Rule.ID, Severity: string(a.Rule.Severity), Level: string(a.Rule.Level), Providers: []string{a.Provider},
	}
	evidence := strings.Join(a.Evidence, "; ")
	if a.Changed == alert.EventRecovered {
		m.Kind = notify.KindRecovered
		m.Title = fmt.Sprintf("sbx: %s at %s is over: %s", a.Rule.ID, a.Provider, a.Rule.Title)
		if m.Text = "it is over"; a.Verdict == sandbox.False { // it may hold again by the time that this is sent
			m.Text = evidence
		}
		return m
	}
	m.Title = fmt.Sprintf("sbx: %s at %s: %s", a.Rule.ID, a.Provider, a.Rule.Title)
	m.Text = fmt.Sprintf("%s; %s\nfirst to act: %s", evidence, a.State.Describe(a.At, a.HoldFor), a.Rule.Level.Says())
	m.Items, m.Next = items, []string{program + " " + a.Rule.Next + " --provider " + a.Provider}
	return m
}

// FollowRun has `recovered` sent once the trouble is over that messages of this key were about. The
// messages themselves are sent by the run.
func (e *Env) FollowRun(ctx context.Context, watch Reporter, m notify.Message, verdict sandbox.Verdict) {
	if ctx.Err() != nil {
		return
	}
	over := notify.Message{Verb: m.Verb, RunID: m.RunID, Host: m.Host, Kind: notify.KindRecovered, Key: m.Key, At: e.Now(), Providers: m.Providers}
	e.SendLater(watch, e.storingState(func(ctx context.Context, docs store.DocStore, n *notify.Notifier) error {
		return alert.Follow(ctx, docs, m.Host+"/"+m.Key, verdict, func(ctx context.Context, event alert.Event, left []string) ([]string, error) {
			if event != alert.EventRecovered {
				return nil, nil // the message itself says it
			}
			return e.Send(ctx, n, over, left)
		})
	}))
}

// OpenAlerts are the alerts that are pending or firing, as the store has them; none without a
// store that can be read. Names are the profiles that are asked about.
func (e *Env) OpenAlerts(ctx context.Context, names []string) []alert.Alert {
	if e.RequireState() != nil {
		return nil
	}
	st, err := e.Store(false)
	if err != nil {
		return nil
	}
	defer func() { _ = st.Close() }() // nothing was written
	all, _ := alert.Read(ctx, st, func(profile string) (triage.Thresholds, bool) {
		return e.Thresholds(sandbox.Sandbox{Provider: profile}), slices.Contains(names, profile)
	})
	return all
}

// CauseGroup are sandboxes of one provider with one cause.
type CauseGroup struct {
	Provider string
	Cause    sandbox.Cause
	Refs     []sandbox.Ref
	Short    []string // the beginnings of their ids that no other sandbox has
	Reasons  []string // why each of them is, in one sentence
}

// CauseWord is the cause of a verdict; "" where there is none, or none is known.
func CauseWord(v triage.Verdict) string {
	if v.Cause == sandbox.CauseUnknown {
		return ""
	}
	return string(v.Cause)
}

// StuckItem is a stuck sandbox as a message names it.
func StuckItem(s sandbox.Sandbox, v triage.Verdict) notify.Item {
	return notify.Item{Ref: s.Ref().String(), Task: s.TaskID, Cause: CauseWord(v), Reason: v.Reason}
}

// PlainSubjects are the figures without what only a message needs.
func PlainSubjects(subjects []AlertSubject) []check.Subject {
	all := make([]check.Subject, len(subjects))
	for i, s := range subjects {
		all[i] = s.Subject
	}
	return all
}

// RecordedSubjects are the figures that are on record of the selected providers, which are not
// asked: cleanups, creates, and the attempts and stops of tasks.
func RecordedSubjects(ctx context.Context, env *Env) ([]check.Subject, error) {
	f, err := env.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	var all []check.Subject
	for _, name := range f.Names() {
		all = append(all, env.RecordedSubject(ctx, f, name).Subject)
	}
	return all, nil
}
