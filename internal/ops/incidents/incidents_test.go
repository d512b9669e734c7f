package incidents

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/history"
	"sbx/internal/incident"
	"sbx/internal/ops"
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

// reportOf is the report of an incident that was started at a minute, by these events.
func reportOf(started int, events ...history.Event) *IncidentReport {
	r := &IncidentReport{events: events, Incident: &incident.Incident{ID: "i-1", State: incident.Open, StartedAt: at(started)}}
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

func TestTheMomentsOfAReport(t *testing.T) {
	t.Parallel()
	r := reportOf(5, history.Event{At: at(6), Met: true}, history.Event{At: at(20), Met: true})
	r.Acts = []cleanup.Act{
		{Action: cleanup.ActTerminate, Outcome: sandbox.OutcomeVerified, SettledAt: at(10), Ref: sandbox.Ref{Provider: "p", ID: "a"}, Run: "r-1"},
		{Action: cleanup.ActTerminate, Outcome: sandbox.OutcomeStuck, SettledAt: at(15)},
		{Action: "adopt", Outcome: sandbox.OutcomeVerified, SettledAt: at(17), Ref: sandbox.Ref{Provider: "p", ID: "at-work"}},
	}
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
	r.Incident.Events = []incident.Event{said(incident.Noted, 7, func(e *incident.Event) { e.Milestone, e.Text = incident.MilestoneMitigated, "rolled back" })}
	r.Incident.Start.DetectedAt, r.Incident.Start.DetectedBy = at(1), "alert x at p"
	r.addMoments()
	assert.Equal(t, 1, r.Moment(incident.MilestoneDetected).At.Minute())
	assert.Equal(t, "alert x at p", r.Moment(incident.MilestoneDetected).Source)
	assert.Equal(t, "a note: rolled back", r.Moment(incident.MilestoneMitigated).Source)
}

func TestATitleHasALimit(t *testing.T) {
	t.Parallel()
	_, err := StartIncident(t.Context(), &ops.Env{}, IncidentStart{Title: strings.Repeat("ä", 201)})
	require.ErrorContains(t, err, "201 characters")
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	assert.Equal(t, strings.Repeat("ä", 200), cutTitle(strings.Repeat("ä", 200)))
	assert.Equal(t, strings.Repeat("ä", 199)+"…", cutTitle(strings.Repeat("ä", 201)), "of a runbook")
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

// TestOnlyWhatIsOfTheTimeCounts, and of the profiles that the incident is about: evidence of what was in trouble,
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
	ended := func(minute int, id, profile string) task.Task {
		return task.Task{ID: id, State: task.Failed, EndedAt: at(minute), StopBy: "bob", Attempts: []task.Attempt{{Provider: profile}}}
	}
	for _, one := range []task.Task{ended(4, "t-early", "prod"), ended(6, "t-a", "prod"), ended(7, "t-other", "other"), {ID: "t-runs"}} {
		r.addTask(one, p)
	}
	require.Len(t, r.events, 1)
	assert.Equal(t, "task t-a failed; stopped by bob", r.events[0].Text)
}
