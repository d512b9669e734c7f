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
	"sbx/internal/ops/incidents"
	"sbx/internal/sandbox"
)

// joinIncident starts an incident where none is open, and acknowledges the open one where a person runs
// this. A run without it goes on: its own record has everything.
func (r *runner) joinIncident(ctx context.Context) {
	if r.run.DryRun {
		return
	}
	start := incidents.IncidentStart{Title: r.run.Title, Runbook: r.run.Runbook, Providers: r.req.Profiles, Acknowledge: r.watch.Attended(), OneOf: r.book.AlertNames()}
	if len(start.OneOf) == 1 {
		start.Alert = start.OneOf[0]
	}
	id, err := incidents.JoinIncident(ctx, r.env, start)
	switch {
	case fault.KindOf(err) == fault.KindUsage: // without a state directory there is none
	case err != nil:
		r.watch.Warn("no incident is opened or acknowledged by this run: " + err.Error())
	case id != "":
		r.watch.Note("the incident " + id + " is open; `" + r.env.Process.Name() + " incident close` ends it")
	}
}

// longestRun is how long before an incident a run was begun at most that goes on in it.
const longestRun = 7 * 24 * time.Hour

// RunsOfIncident reads for an incident what the runs on a disk have done: it is incidents.RunFinder.
func RunsOfIncident(disk journal.Disk) incidents.RunFinder {
	return func(since, until time.Time, profiles []string) (steps []incident.Step, events []history.Event, errs []error) {
		ids, err := journal.Runs(disk)
		if err != nil {
			return nil, nil, []error{err}
		}
		var runs []Run
		for _, id := range slices.Backward(ids) {
			run, err := ReadRun(disk, id)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if run.StartedAt.Before(since.Add(-longestRun)) {
				break
			}
			about := len(profiles) == 0 || slices.ContainsFunc(run.Providers, func(name string) bool { return slices.Contains(profiles, name) })
			if about && !run.Staged && !run.StartedAt.After(until) && !run.lastAt().Before(since) {
				runs = append(runs, run)
			}
		}
		for _, run := range slices.Backward(runs) {
			if run.Broken != "" {
				errs = append(errs, brokenError(run))
			}
			steps, events = append(steps, run.incidentSteps()...), append(events, run.incidentEvents()...)
		}
		return steps, events, errs
	}
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
func (r *Run) incidentSteps() []incident.Step {
	var all []incident.Step
	at := r.StartedAt
	for _, s := range r.Steps {
		if !s.State.IsOver() || s.State == NotSelected {
			continue
		}
		at = cmp.Or(s.EndedAt, at)
		step := incident.Step{
			Run: r.ID, Runbook: r.Runbook, Actor: incident.Actor(r.Actor), ID: s.ID, Title: s.Title, Kind: string(s.Kind), State: string(s.State), Verdict: string(s.Verdict),
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

// incidentEvents are the causes that a run has named, and whom to call at its end.
func (r *Run) incidentEvents() []history.Event {
	named := history.Event{At: r.StartedAt, Verb: "runbook run", Who: r.Actor.Who, Host: r.Actor.Host, Providers: r.Providers}
	for _, s := range r.Steps {
		if s.Section == SectionDiagnosis {
			named.At = cmp.Or(s.EndedAt, named.At)
		}
	}
	events := []history.Event{}
	for _, c := range r.Causes {
		named.Causes = append(named.Causes, history.Cause{ID: c.ID, Title: c.Title, Confidence: c.Confidence, Score: c.Score, Coverage: c.Coverage, Evidence: c.Evidence, WhyNot: c.WhyNot})
	}
	if len(r.Causes) > 0 {
		events = append(events, named)
	}
	for _, c := range r.Calls {
		if c.Verdict != sandbox.True {
			continue
		}
		call := named
		call.At, call.Causes, call.Text = r.lastAt(), nil, strings.TrimSuffix(c.When+": "+c.Text, ": ")
		if len(c.Evidence) > 0 {
			call.Text += " (" + strings.Join(c.Evidence, "; ") + ")"
		}
		call.Message = &history.Message{Alert: c.Alert, To: []string{strings.TrimSpace(c.Name + " " + c.Channel)}}
		events = append(events, call)
	}
	return events
}
