package incidents

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sbx/internal/alert"
	"sbx/internal/check"
	"sbx/internal/history"
	"sbx/internal/incident"
	"sbx/internal/ops"
	"sbx/internal/ops/recall"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// period is the time of a report, and its profiles; none = all.
type period struct {
	since, until time.Time
	noted        time.Time // until when notes are about it
	profiles     []string
}

func (s Scope) period(now time.Time) period {
	p := period{since: s.Since, until: cmp.Or(s.Until, now), profiles: s.Providers}
	p.noted = cmp.Or(s.NotedUntil, p.until)
	if d := s.DetectedAt; !d.IsZero() && d.Before(p.since) {
		p.since = d
	}
	return p
}

func (p period) has(at time.Time) bool { return !at.Before(p.since) && !at.After(p.until) }

// isAbout says that something at these profiles belongs to the report; none = at all of them.
func (p period) isAbout(profiles []string) bool {
	return len(p.profiles) == 0 || len(profiles) == 0 ||
		slices.ContainsFunc(profiles, func(name string) bool { return slices.Contains(p.profiles, name) })
}

// readRecords reads what was seen and done in the time of the report.
func (r *IncidentReport) readRecords(ctx context.Context, env *ops.Env, runs RunFinder) error {
	p := r.Scope.period(r.At)
	if p.since.IsZero() {
		r.Problems = append(r.Problems, "when it was started cannot be read, so what was done is not listed")
		return nil
	}
	evidence, err := r.readStore(ctx, env, &p)
	r.addProblems("what earlier looks have seen", err)
	if runs != nil {
		found := runs(r.Scope.ID, p.since, p.until, p.profiles)
		r.Steps, r.Escalations, r.events = found.Steps, found.Calls, append(r.events, found.Events...)
		r.addProblems("the runs of runbooks", found.Errors...)
	}
	r.addEvents()
	r.addEvidence(evidence, p)
	r.addOpenAlerts(ctx, env, p)
	slices.SortStableFunc(r.Causes, compareCauses)
	return r.addActs(ctx, env, p)
}

func (r *IncidentReport) addProblems(what string, errs ...error) {
	for _, err := range errs {
		if err != nil {
			r.Problems = append(r.Problems, what+" cannot be read: "+err.Error())
		}
	}
}

// readStore reads notes, events and the evidence of looks, and the tasks that ended. When a note says that it was
// detected earlier, the time begins there.
func (r *IncidentReport) readStore(ctx context.Context, env *ops.Env, p *period) (evidence []history.Seen, err error) {
	ctx, stop := context.WithTimeout(ctx, env.Process.TimeScale.Limit(ops.StoreTimeout))
	defer stop()
	err = env.ReadTaskStore(func(st store.Store) error {
		notes, err := history.Notes(ctx, st, p.since)
		if err != nil {
			return err
		}
		r.readNotes(notes, *p)
		if at := r.saidMoment(incident.MilestoneDetected).At; !at.IsZero() && at.Before(p.since) {
			p.since = at
		}
		events, err := history.Events(ctx, st, p.since)
		if err != nil {
			return err
		}
		for _, e := range events {
			if p.has(e.At) && p.isAbout(e.Providers) {
				r.events = append(r.events, e)
			}
		}
		for _, profile := range namesOr(env, p.profiles) {
			seen, err := history.SeenSince(ctx, st, profile, p.since)
			if err != nil {
				return err
			}
			evidence = append(evidence, seen...)
		}
		tasks, err := task.Ledger{Store: st}.List(ctx, store.TaskQuery{Since: p.since.Add(-longestTask)})
		for _, t := range tasks {
			r.addTask(t, *p)
		}
		return err
	})
	return evidence, err
}

// namesOr are profiles; none = all that are configured.
func namesOr(e *ops.Env, profiles []string) []string {
	if len(profiles) > 0 {
		return profiles
	}
	return e.ConfiguredNames()
}

// longestTask is how long before the incident a task was launched at most that ended in it.
const longestTask = 24 * time.Hour

// addEvidence takes the causes of what was in trouble or failed, as looks have kept them. What somebody
// stopped is no trouble.
func (r *IncidentReport) addEvidence(all []history.Seen, p period) {
	for _, seen := range all {
		if !p.has(seen.At) || seen.Cause == sandbox.CauseStopped {
			continue
		}
		for _, c := range seen.Causes {
			r.addCause(c, seen.At, "inspect")
		}
	}
}

func (r *IncidentReport) addTask(t task.Task, p period) {
	var profiles []string
	if last := t.Last(); last != nil {
		profiles = []string{last.Provider}
	}
	if !p.has(t.EndedAt) || !p.isAbout(profiles) {
		return
	}
	text := "task " + ops.WithDetail(t.ID+" "+string(t.State), ops.TaskState{Task: t}.Why())
	if t.StopBy != "" {
		text += "; stopped by " + t.StopBy
	}
	r.events = append(r.events, history.Event{At: t.EndedAt, Verb: "task", Who: t.Owner.Who, Host: t.Owner.Host, Providers: profiles, Text: text})
}

// addOpenAlerts adds the alerts that hold now and held in the time of the report, by the states in the store.
func (r *IncidentReport) addOpenAlerts(ctx context.Context, env *ops.Env, p period) {
	var first alert.Alert
	for _, a := range env.OpenAlerts(ctx, namesOr(env, p.profiles)) {
		if a.State.Since.After(p.until) {
			continue
		}
		r.addFlag(ops.AlertChecks([]alert.Alert{a})[0], history.Event{At: a.State.Last, Verb: "stats"})
		fires := a.State.Phase == alert.Firing && (len(r.Scope.Alerts) == 0 || slices.Contains(r.Scope.Alerts, a.Rule.ID))
		if fires && (first.Rule.ID == "" || a.State.Since.Before(first.State.Since)) {
			first = a
		}
	}
	if first.Rule.ID != "" && r.Scope.DetectedAt.IsZero() && first.State.Since.Before(p.since) {
		r.Scope.DetectedAt, r.Scope.DetectedBy = first.State.Since, "alert "+first.Rule.ID+" at "+first.Provider
		r.Alert = cmp.Or(r.Scope.Alert, first.Rule.ID)
	}
}

// addEvents takes what events add to the report.
func (r *IncidentReport) addEvents() {
	slices.SortStableFunc(r.events, func(a, b history.Event) int { return a.At.Compare(b.At) })
	for _, e := range r.events {
		for _, f := range e.Flags {
			r.addFlag(f, e)
		}
		for _, c := range e.Causes {
			r.addCause(c, e.At, e.Verb)
		}
		for _, c := range e.Targets {
			addCheck(&r.Checks, c, e)
		}
		if m := e.Message; m != nil {
			r.Escalations = append(r.Escalations, Escalation{
				At: e.At, Who: e.Who, Host: e.Host, Verb: e.Verb, Why: e.Text, Alert: m.Alert, Severity: m.Severity, Level: m.Level, To: m.To, Error: m.Error,
			})
		}
	}
	slices.SortStableFunc(r.Escalations, func(a, b Escalation) int { return a.At.Compare(b.At) })
}

// addFlag adds a flag. The report is about the first that is an alert, unless its scope says otherwise, and
// as severe as the worst.
func (r *IncidentReport) addFlag(f history.Check, e history.Event) {
	addCheck(&r.Flags, f, e)
	if r.Alert == "" && severityOf(f.ID) != "" {
		r.Alert = f.ID
	}
	if r.Scope.Severity == "" && (f.Severity == string(triage.Critical) || r.Severity == "") {
		r.Severity = f.Severity
	}
}

// addActs takes from the journals what was done.
func (r *IncidentReport) addActs(ctx context.Context, env *ops.Env, p period) error {
	found, err := recall.Audit(ctx, env, recall.AuditRequest{Since: p.since, Profiles: p.profiles})
	if err != nil {
		return err
	}
	for _, a := range slices.Backward(found.Acts) {
		if p.has(a.At) {
			r.Acts = append(r.Acts, a)
		}
	}
	for _, err := range found.Errors {
		r.Problems = append(r.Problems, "an act may be missing: "+err.Error())
	}
	for _, run := range found.Unreported {
		r.Problems = append(r.Problems, fmt.Sprintf("an act may be missing: %s of %s on %s has not reported what it did", run.ID, run.Who, run.Host))
	}
	return nil
}

// addTimeline puts all that happened in its order.
func (r *IncidentReport) addTimeline() {
	for _, e := range r.Said {
		r.Timeline = append(r.Timeline, IncidentEvent{At: e.At, Kind: string(e.Kind), Who: e.Actor.Who, Host: e.Actor.Host, Said: &e})
	}
	for _, e := range r.Escalations {
		kind := EventEscalated
		if e.Call {
			kind = EventToCall
		}
		r.Timeline = append(r.Timeline, IncidentEvent{At: e.At, Kind: kind, Who: e.Who, Host: e.Host, Verb: e.Verb, Told: &e})
	}
	for _, e := range r.events {
		kind := EventSeen
		if e.Met {
			kind = EventVerified
		}
		if e.Message == nil {
			r.Timeline = append(r.Timeline, IncidentEvent{At: e.At, Kind: kind, Who: e.Who, Host: e.Host, Verb: e.Verb, Seen: &e})
		}
	}
	for _, s := range r.Steps {
		r.Timeline = append(r.Timeline, IncidentEvent{At: s.Ended, Kind: EventStep, Who: s.Actor.Who, Host: s.Actor.Host, Verb: "runbook run", Step: &s})
	}
	places := map[string]int{} // of the event of a run
	for _, a := range r.Acts {
		at, has := places[a.Run]
		if !has {
			at = len(r.Timeline)
			places[a.Run] = at
			r.Timeline = append(r.Timeline, IncidentEvent{At: a.At, Kind: EventActed, Who: a.Actor.Who, Host: a.Actor.Host, Verb: a.Verb})
		}
		r.Timeline[at].Acts = append(r.Timeline[at].Acts, a)
	}
	slices.SortStableFunc(r.Timeline, func(a, b IncidentEvent) int { return a.At.Compare(b.At) })
}

// severityOf is the severity of an alert; "" = it is none of sbx.
func severityOf(id string) string {
	for _, rule := range check.Alerts() {
		if rule.ID == id {
			return string(rule.Severity)
		}
	}
	return ""
}
