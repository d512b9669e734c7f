package incidents

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/history"
	"sbx/internal/incident"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

func at(minute int) time.Time { return time.Date(2026, 11, 23, 12, minute, 0, 0, time.UTC) }

func said(kind incident.Kind, minute int, change func(*incident.Event)) incident.Event {
	e := incident.Event{Kind: kind, At: at(minute), Actor: incident.Actor{Who: "alice"}}
	if change != nil {
		change(&e)
	}
	return e
}

// reportOf is the report of a run that began at a minute, by these events.
func reportOf(began int, events ...history.Event) *IncidentReport {
	r := &IncidentReport{events: events, Scope: Scope{ID: "b-1", Since: at(began)}}
	r.addEvents()
	return r
}

func TestTheReportKeepsTheSurestCause(t *testing.T) {
	t.Parallel()
	cause := func(minute int, id string, c sandbox.Confidence, score float64) history.Event {
		return history.Event{At: at(minute), Verb: "diagnose", Causes: []history.Cause{{ID: id, Title: id, Confidence: c, Score: score}}}
	}
	r := reportOf(0, cause(1, "loop", sandbox.Hint, 0.3), cause(2, "loop", sandbox.Probable, 0.8), cause(3, "leak", sandbox.Hint, 0.9), cause(9, "loop", sandbox.Hint, 0.1))
	slices.SortStableFunc(r.Causes, compareCauses)
	require.Len(t, r.Causes, 2)
	assert.Equal(t, "loop", r.Causes[0].ID)
	assert.InEpsilon(t, 0.8, r.Causes[0].Score, 0)
	assert.Equal(t, 2, r.Causes[0].At.Minute())
	answer, source := r.recordedAnswer([]string{"diagnose"})
	assert.Equal(t, "loop (probable, score 0.80)", answer)
	assert.Contains(t, source, "12:02")
	answer, _ = reportOf(0, cause(3, "leak", sandbox.Hint, 0.9)).recordedAnswer([]string{"diagnose"})
	assert.Empty(t, answer, "a hint answers nothing")
}

// ended is a verified end by a verb.
func ended(verb string, minute int) runs.Act {
	return runs.Act{Verb: verb, Action: runs.ActTerminate, Outcome: sandbox.OutcomeVerified, SettledAt: at(minute), Ref: sandbox.Ref{Provider: "p", ID: "a"}, Run: "r-1"}
}

func TestTheMomentsOfAReport(t *testing.T) {
	t.Parallel()
	r := reportOf(5, history.Event{At: at(6), Met: true}, history.Event{At: at(20), Met: true})
	stuck, adopted := ended("cleanup", 15), ended("reconcile", 17)
	stuck.Outcome, adopted.Action = sandbox.OutcomeStuck, "adopt"
	r.Acts = []runs.Act{ended("cleanup", 10), stuck, adopted}
	r.addMoments()
	minutes := map[incident.Milestone]int{}
	for _, m := range r.Moments {
		assert.NotEmpty(t, m.Source, m.Milestone)
		if !m.At.IsZero() {
			minutes[m.Milestone] = m.At.Minute()
		}
	}
	assert.Equal(t, map[incident.Milestone]int{incident.MilestoneDetected: 5, incident.MilestoneMitigated: 10, incident.MilestoneVerified: 20}, minutes,
		"a verification before the mitigation proves nothing, and nobody acknowledged it")

	r = reportOf(5)
	r.Said = []incident.Event{said(incident.Noted, 7, func(e *incident.Event) { e.Milestone, e.Text = incident.MilestoneMitigated, "rolled back" })}
	r.Scope.DetectedAt, r.Scope.DetectedBy = at(1), "alert x at p"
	r.addMoments()
	assert.Equal(t, 1, r.Moment(incident.MilestoneDetected).At.Minute())
	assert.Equal(t, "alert x at p", r.Moment(incident.MilestoneDetected).Source)
	assert.Equal(t, "a note: rolled back", r.Moment(incident.MilestoneMitigated).Source)
}

// TestANormalEndMitigatesNothing: a task that ends as it should, a kept one that expires and a sweep end
// sandboxes all day.
func TestANormalEndMitigatesNothing(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"task", "stop", "sweep", "drill"} {
		r := reportOf(0)
		r.Acts = []runs.Act{ended(verb, 9)}
		assert.Zero(t, r.mitigated().At, verb)
	}
	for _, verb := range []string{"terminate", "cleanup", "reconcile"} {
		r := reportOf(0)
		r.Acts = []runs.Act{ended(verb, 3), ended("task", 9)}
		assert.Equal(t, at(3), r.mitigated().At, verb)
	}
}

// TestAReportHasTheNotesOfItsTime and of its profiles; of a run also what is noted behind its end until the next
// one, and when it was detected, which is before it.
func TestAReportHasTheNotesOfItsTime(t *testing.T) {
	t.Parallel()
	note := func(minute, written int, text string, providers ...string) history.Note {
		n := history.Note{At: at(minute), Written: at(written), Text: text, Providers: providers}
		if text == "detected" {
			n.Milestone = text
		}
		return n
	}
	all := []history.Note{
		note(4, 4, "before"), note(3, 10, "detected"), note(7, 7, "in it"), note(8, 25, "noted later"), note(9, 9, "elsewhere", "other"), note(10, 10, "here", "prod"),
		note(18, 18, "behind its end"), note(25, 25, "after the next"),
	}
	for name, tc := range map[string]struct {
		scope Scope
		want  []string
	}{
		"a span":     {Scope{Since: at(5), Until: at(15)}, []string{"detected", "in it", "noted later", "elsewhere", "here"}},
		"a run":      {Scope{ID: "b-1", Since: at(5), Until: at(15), NotedUntil: at(20), Providers: []string{"prod"}}, []string{"detected", "in it", "noted later", "here", "behind its end"}},
		"it goes on": {Scope{Since: at(20)}, []string{"after the next"}},
	} {
		r := &IncidentReport{}
		r.readNotes(all, tc.scope.period(at(30)))
		var texts []string
		for _, e := range r.Said {
			texts = append(texts, e.Text)
		}
		assert.Equal(t, tc.want, texts, name)
	}
}

func TestASpanHasABeginningBeforeItsEnd(t *testing.T) {
	t.Parallel()
	require.NoError(t, CheckSpan(time.Time{}, time.Time{}))
	require.NoError(t, CheckSpan(at(1), time.Time{}))
	require.NoError(t, CheckSpan(at(1), at(2)))
	for _, err := range []error{CheckSpan(time.Time{}, at(2)), CheckSpan(at(2), at(2)), CheckSpan(at(3), at(2))} {
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	}
}

// TestAllLikelyCausesAnswer: one incident may have several.
func TestAllLikelyCausesAnswer(t *testing.T) {
	t.Parallel()
	r := &IncidentReport{Causes: []SeenCause{
		{Cause: history.Cause{Title: "silent", Confidence: sandbox.Probable, Score: 1}, Verb: "diagnose"},
		{Cause: history.Cause{Title: "loop", Confidence: sandbox.Probable, Score: 0.8}, Verb: "diagnose"},
		{Cause: history.Cause{Title: "orphan", Confidence: sandbox.Hint, Score: 0.5}, Verb: "diagnose"},
	}}
	answer, source := r.causeAnswer()
	assert.Equal(t, "silent (probable, score 1.00); loop (probable, score 0.80)", answer)
	assert.Equal(t, "sbx diagnose at 0001-01-01T00:00:00Z", source)
}

// TestOnlyWhatIsOfTheTimeCounts, and of the profiles that the report is about: evidence of what was in trouble,
// and tasks that ended.
func TestOnlyWhatIsOfTheTimeCounts(t *testing.T) {
	t.Parallel()
	p := period{since: at(5), until: at(20), profiles: []string{"prod"}}
	r := reportOf(5)
	evidence := func(minute int, id string, cause sandbox.Cause) history.Seen {
		return history.Seen{At: at(minute), Cause: cause, Causes: []history.Cause{{ID: id, Confidence: sandbox.Probable}}}
	}
	r.addEvidence([]history.Seen{evidence(4, "early", sandbox.CauseOOM), evidence(6, "oom", sandbox.CauseOOM), evidence(7, "stopped", sandbox.CauseStopped), evidence(21, "late", sandbox.CauseOOM)}, p)
	require.Len(t, r.Causes, 1)
	assert.Equal(t, "oom", r.Causes[0].ID)
	failed := func(minute int, id, profile string) task.Task {
		return task.Task{ID: id, State: task.Failed, EndedAt: at(minute), StopBy: "bob", Attempts: []task.Attempt{{Provider: profile}}}
	}
	for _, one := range []task.Task{failed(4, "t-early", "prod"), failed(6, "t-a", "prod"), failed(7, "t-other", "other"), {ID: "t-runs"}} {
		r.addTask(one, p)
	}
	require.Len(t, r.events, 1)
	assert.Equal(t, "task t-a failed; stopped by bob", r.events[0].Text)
}
