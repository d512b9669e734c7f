package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/history"
	"sbx/internal/incident"
	"sbx/internal/journal"
	"sbx/internal/ops"
	"sbx/internal/ops/incidents"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
)

// FindIncident is what a word of a report means: a run, or an incident that an earlier version recorded, by its id
// or the beginning of it; "" = the newest run that was no drill.
func FindIncident(ctx context.Context, env *ops.Env, word string) (incidents.Scope, error) {
	disk, err := env.RunbookRuns()
	if err != nil {
		return incidents.Scope{}, err
	}
	var run Run
	switch {
	case word == "":
		run, err = newestRun(disk)
	case strings.HasPrefix(word, Prefix):
		run, err = FindRun(disk, word)
	default:
		return incidents.FormerScope(env, word)
	}
	if err != nil {
		return incidents.Scope{}, err
	}
	Refresh(ctx, env, &run)
	next, err := nextBegin(disk, run.ID)
	return run.scope(next), err
}

func newestRun(disk journal.Disk) (Run, error) {
	ids, err := journal.Runs(disk)
	if err != nil {
		return Run{}, err
	}
	for _, id := range slices.Backward(ids) {
		if run, err := ReadRun(disk, id); err != nil || !run.Staged {
			return run, err
		}
	}
	return Run{}, fault.New(fault.KindNotFound, "no runbook has been run here").
		WithHint("a span of time needs none: `sbx incident report --since 14:00 --until 15:00`; `sbx runbook run sandbox-stuck` runs one")
}

// nextBegin is when the next run that was no drill began; zero = none has. One that cannot be read is passed over.
func nextBegin(disk journal.Disk, id string) (time.Time, error) {
	ids, err := journal.Runs(disk)
	if err != nil {
		return time.Time{}, err
	}
	for _, other := range ids {
		if other > id {
			if run, err := ReadRun(disk, other); err == nil && !run.Staged {
				return run.StartedAt, nil
			}
		}
	}
	return time.Time{}, nil
}

// lastNote is until when what is noted is about a run at most.
const lastNote = 30 * 24 * time.Hour

func (r *Run) scope(next time.Time) incidents.Scope {
	s := incidents.Scope{
		ID: r.ID, Title: r.Title, Runbook: r.Runbook, Providers: r.Providers, Since: r.StartedAt, By: incident.Actor(r.Actor),
	}
	if r.State != RunRunning {
		s.Until = r.lastAt()
		s.NotedUntil = s.Until.Add(lastNote)
	}
	if !next.IsZero() && (s.NotedUntil.IsZero() || next.Before(s.NotedUntil)) {
		s.NotedUntil = slices.MaxFunc([]time.Time{next.Add(-time.Nanosecond), s.Until}, time.Time.Compare)
	}
	if book, _ := runbook.Parse(r.File, []byte(r.Document)); book != nil {
		if s.Alerts = book.AlertNames(); len(s.Alerts) == 1 {
			s.Alert = s.Alerts[0]
		}
	}
	return s
}

// longestRun is how long before a time a run was begun at most that goes on in it.
const longestRun = 7 * 24 * time.Hour

// RunsOfIncident reads what the runs on a disk have done: it is incidents.RunFinder.
func RunsOfIncident(disk journal.Disk) incidents.RunFinder {
	return func(id string, since, until time.Time, profiles []string) (found incidents.Found) {
		ids, err := journal.Runs(disk)
		if err != nil {
			return incidents.Found{Errors: []error{err}}
		}
		var runs []Run
		for _, one := range slices.Backward(ids) {
			run, err := ReadRun(disk, one)
			if err != nil {
				found.Errors = append(found.Errors, err)
				continue
			}
			if run.StartedAt.Before(since.Add(-longestRun)) {
				break
			}
			if run.ID == id || run.isOf(since, until, profiles) {
				runs = append(runs, run)
			}
		}
		for _, run := range slices.Backward(runs) {
			if run.Broken != "" {
				found.Errors = append(found.Errors, brokenError(run))
			}
			found.Steps = append(found.Steps, run.incidentSteps()...)
			found.Events = append(found.Events, run.incidentCauses()...)
			found.Calls = append(found.Calls, run.incidentCalls()...)
		}
		return found
	}
}

// isOf reports whether a run that no drill has begun went on in a time, and is about one of these profiles; nil = of
// all.
func (r *Run) isOf(since, until time.Time, profiles []string) bool {
	about := len(profiles) == 0 || slices.ContainsFunc(r.Providers, func(name string) bool { return slices.Contains(profiles, name) })
	return about && !r.Staged && !r.StartedAt.After(until) && !r.lastAt().Before(since)
}

// lastAt is the last moment that is on record.
func (r *Run) lastAt() time.Time {
	last := r.StartedAt
	for _, s := range r.Steps {
		last = slices.MaxFunc([]time.Time{last, s.BeganAt, s.EndedAt, r.EndedAt}, time.Time.Compare)
	}
	return last
}

// incidentSteps are the steps that are over. One that was left out has the time of the one before it.
func (r *Run) incidentSteps() []incidents.Step {
	var all []incidents.Step
	at := r.StartedAt
	for _, s := range r.Steps {
		if !s.State.IsOver() || s.State == NotSelected {
			continue
		}
		at = cmp.Or(s.EndedAt, at)
		step := incidents.Step{
			Run: r.ID, Runbook: r.Runbook, Actor: incident.Actor(r.Actor), ID: s.ID, Number: s.Number, Word: s.Word, Title: s.Title, Kind: string(s.Kind), State: string(s.State), Verdict: string(s.Verdict),
			Text: cmp.Or(s.Reason, strings.Join(s.Evidence, "; ")), ETA: s.ETA, Took: s.Took, Began: s.BeganAt, Ended: at,
		}
		var answers []string
		for _, a := range s.Answers {
			if a.Known {
				answers = append(answers, a.Question+" "+a.Answer)
			}
		}
		step.Answer = strings.Join(answers, "; ")
		all = append(all, step)
	}
	return all
}

// incidentCauses is an event with the causes that a run has named; none = none.
func (r *Run) incidentCauses() []history.Event {
	if len(r.Causes) == 0 {
		return nil
	}
	named := history.Event{At: r.StartedAt, Verb: "runbook run", Who: r.Actor.Who, Host: r.Actor.Host, Providers: r.Providers}
	for _, s := range r.Steps {
		if s.Section == SectionDiagnosis {
			named.At = cmp.Or(s.EndedAt, named.At)
		}
	}
	for _, c := range r.Causes {
		named.Causes = append(
			named.Causes,
			history.Cause{ID: c.ID, Title: c.Title, Confidence: c.Confidence, Score: c.Score, Coverage: c.Coverage, Evidence: c.Evidence, WhyNot: c.WhyNot},
		)
	}
	return []history.Event{named}
}

// incidentCalls are those whom a run names to be called. It sends them nothing.
func (r *Run) incidentCalls() []incidents.Escalation {
	var all []incidents.Escalation
	for _, c := range r.Calls {
		if c.Verdict != sandbox.True {
			continue
		}
		why := strings.TrimSuffix(runbook.NameCauses(c.When)+": "+c.Text, ": ")
		all = append(all, incidents.Escalation{
			At: r.lastAt(), Who: r.Actor.Who, Host: r.Actor.Host, Verb: "runbook run", Why: ops.WithDetail(why, strings.Join(c.Evidence, "; ")),
			Alert: c.Alert, To: []string{ops.WithDetail(c.Name, c.Channel)}, Call: true,
		})
	}
	return all
}
