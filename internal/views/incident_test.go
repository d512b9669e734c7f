package views

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/history"
	"sbx/internal/incident"
	"sbx/internal/ops/incidents"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// hostile is a text that is mark-up, a mention, and more than one line.
const hostile = "a | b `c` *d* _e_ ~f~ <!channel> @here <@U123> [x](http://y) ![z](q) \x1b[31m\n# heading\n- item\n> quote"

func hostileReport() *incidents.IncidentReport {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	seen := []sandbox.Evidence{{What: hostile, Value: hostile, Source: hostile}}
	scope := incidents.Scope{ID: "b-1", Title: hostile, Providers: []string{hostile}, Since: at, By: incident.Actor{Who: hostile, Host: hostile}}
	act := runs.Act{Actor: runs.Actor{Who: hostile}, Verb: hostile, Action: hostile, Ref: sandbox.Ref{Provider: "p", ID: hostile}, Reason: hostile, Run: hostile}
	message := incidents.Escalation{Why: hostile, To: []string{hostile}, Level: hostile, Error: hostile}
	step := incidents.Step{ID: hostile, Title: hostile, State: hostile, Verdict: hostile, Text: hostile, Answer: hostile}
	cause := history.Cause{Title: hostile, Confidence: sandbox.Probable, Evidence: seen, WhyNot: hostile}
	timeline := []incidents.IncidentEvent{
		{Said: &incident.Event{Kind: incident.Noted, Text: hostile, Question: hostile}},
		{Seen: &history.Event{Text: hostile, Causes: []history.Cause{cause}, Errors: []string{hostile}, Targets: []history.Check{{Title: hostile, Verdict: sandbox.False}}}},
		{Told: &message},
		{Acts: []runs.Act{act}},
		{Step: &step},
	}
	for i := range timeline {
		timeline[i].At, timeline[i].Kind, timeline[i].Who, timeline[i].Host, timeline[i].Verb = at, hostile, hostile, hostile, hostile
	}
	return &incidents.IncidentReport{
		Scope: scope, At: at, Severity: hostile, Alert: hostile, Plan: incidents.ReportPlan{Runbook: hostile, Title: hostile},
		Timeline:    timeline,
		Moments:     []incidents.Moment{{Milestone: incident.MilestoneDetected, At: at, Source: hostile, Who: hostile}},
		Causes:      []incidents.SeenCause{{Cause: cause}},
		Flags:       []incidents.SeenCheck{{Check: history.Check{Title: hostile, Severity: hostile, Evidence: seen}, Verb: hostile}},
		Figures:     []incidents.SeenFigure{{Name: hostile, Before: new(int64(1)), After: new(int64(2))}},
		Acts:        []runs.Act{act},
		Checks:      []incidents.SeenCheck{{Check: history.Check{ID: "active_normal", Title: hostile, Value: hostile, Target: hostile, Verdict: sandbox.False}}},
		Escalations: []incidents.Escalation{message},
		Steps:       []incidents.Step{step},
		Answers:     []incidents.ReportAnswer{{ReportQuestion: incidents.ReportQuestion{Ask: hostile}, Answer: hostile, Source: hostile}, {ReportQuestion: incidents.ReportQuestion{Ask: hostile}, NeedsPerson: true}},
		Tasks:       []incidents.ReportTask{{Title: hostile, Group: hostile}, {Title: hostile, Where: hostile}},
		Problems:    []string{hostile},
	}
}

// TestNoTextBreaksTheMarkdown: every line that begins a block is one of ours, each row of a table has the
// cells of its head, and nobody is mentioned.
func TestNoTextBreaksTheMarkdown(t *testing.T) {
	t.Parallel()
	text := IncidentMarkdown(hostileReport())
	assert.NotContains(t, text, "\x1b")
	cells := 0
	for line := range strings.SplitSeq(text, "\n") {
		outside := withoutCode(line)
		assert.NotRegexp(t, `(^|[^\\])\]\(`, outside)
		assert.NotRegexp(t, `@(here|U123)`, outside)
		assert.NotRegexp(t, `(^|[^\\])[<>]`, strings.TrimPrefix(outside, ">"), line)
		switch n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); {
		case n == 0:
			cells = 0
		case cells == 0:
			cells = n
		default:
			assert.Equal(t, cells, n, line)
		}
		assert.NotRegexp(t, `^(# heading|- item|> quote)`, line)
	}
}

// withoutCode drops the spans of code of a line.
func withoutCode(line string) string {
	var b strings.Builder
	for i, part := range strings.Split(strings.ReplaceAll(line, "\\`", ""), "`") {
		if i%2 == 0 {
			b.WriteString(part)
		}
	}
	return b.String()
}

// TestWhatTasksEndIsNotNothing: their ends stand in the report, though they mitigate no incident.
func TestWhatTasksEndIsNotNothing(t *testing.T) {
	t.Parallel()
	act := runs.Act{Verb: runs.VerbTask, Action: "terminate", Ref: sandbox.Ref{Provider: "p", ID: "a"}, Outcome: sandbox.OutcomeVerified}
	assert.Equal(t, "nothing was ended but by task", doneText(&incidents.IncidentReport{Acts: []runs.Act{act}}))
	act.Verb = runs.VerbCleanup
	assert.Equal(t, "1 of 1 ended, verified", doneText(&incidents.IncidentReport{Acts: []runs.Act{act}}))
	assert.Equal(t, "nothing was ended", doneText(&incidents.IncidentReport{}))
}

func TestNoTextBreaksTheMessageForSlack(t *testing.T) {
	t.Parallel()
	text := IncidentSlack(hostileReport())
	for _, sign := range []string{"<", "`", "~", "@here", "@U123", "\x1b"} {
		assert.NotContains(t, text, sign)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		assert.LessOrEqual(t, strings.Count(line, "*"), 2, line)
		assert.NotRegexp(t, `^(&gt;|#|-)`, line)
	}
}

func TestPlainTextStaysReadable(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `task\_id of a.b-c: 5% (of 10)`, mdText("task_id of a.b-c: 5% (of 10)"))
	assert.Equal(t, "task_id of a.b-c: 5% (of 10)", slackPlain("task_id of a.b-c: 5% (of 10)"))
	assert.Equal(t, "`a'b`", mdCode("a`b"))
	assert.Equal(t, "-", mdCode(""))
}

func TestEveryEventHasALine(t *testing.T) {
	t.Parallel()
	n := int64(25)
	ended := runs.Act{Action: "terminate", Outcome: sandbox.OutcomeVerified}
	said := func(e incident.Event) incidents.IncidentEvent { return incidents.IncidentEvent{Said: &e} }
	saw := func(e history.Event) incidents.IncidentEvent { return incidents.IncidentEvent{Verb: e.Verb, Seen: &e} }
	for want, e := range map[string]incidents.IncidentEvent{
		"agents hang; alert a; runbook b": said(incident.Event{Kind: incident.Started, Start: &incident.Start{Title: "agents hang", Alert: "a", Runbook: "b"}}),
		"diagnose; stuck 25; cause: Loop (probable); 1 flags; 25 stuck at p: busy_loop; 503 (and 1 more errors)": saw(history.Event{
			Verb: "diagnose", Figures: []history.Figure{{Name: "stuck", Value: &n}, {Name: "active"}}, Text: "25 stuck at p: busy_loop",
			Causes: []history.Cause{{Title: "Loop", Confidence: sandbox.Probable}}, Flags: []history.Check{{}}, Errors: []string{"503", "504"},
		}),
		"verify; 1 of 2 targets missed: active sandboxes":  saw(history.Event{Verb: "verify", Targets: []history.Check{{Title: "active sandboxes", Verdict: sandbox.False}, {Title: "ages", Verdict: sandbox.True}}}),
		"create; created local/a":                          saw(history.Event{Verb: "create", Text: "created local/a"}),
		"too many; told slack; not sent: 500":              {Told: &incidents.Escalation{Why: "too many", To: []string{"slack"}, Error: "500"}},
		"too many; to be called: Agent Team (#agent-team)": {Told: &incidents.Escalation{Why: "too many", To: []string{"Agent Team (#agent-team)"}, Call: true}},
		"cleanup; terminate verified 2, terminate stuck 1": {Verb: "cleanup", Acts: []runs.Act{ended, ended, {Action: "terminate", Outcome: sandbox.OutcomeStuck}}},
		"terminate; local/a terminate outcome unknown":     {Verb: "terminate", Acts: []runs.Act{{Ref: sandbox.Ref{Provider: "local", ID: "a"}, Action: "terminate"}}},
		"count: Count: done, true; answer: how many? 2":    {Verb: "runbook run", Step: &incidents.Step{ID: "count", Title: "Count", State: "done", Verdict: "true", Answer: "how many? 2"}},
		"it was mitigated: rolled back":                    said(incident.Event{Kind: incident.Noted, Milestone: incident.MilestoneMitigated, Text: "rolled back"}),
		"answer to changes: yes":                           said(incident.Event{Kind: incident.Noted, Question: "changes", Text: "yes"}),
		"as resolved: over":                                said(incident.Event{Kind: incident.Closed, As: "resolved", Text: "over"}),
	} {
		assert.Equal(t, want, EventText(e))
	}
}

// TestEachRunHasItsTable, and the ETA is that of the last one.
func TestEachRunHasItsTable(t *testing.T) {
	t.Parallel()
	r := &incidents.IncidentReport{Scope: incidents.Scope{ID: "b-1"}, Steps: []incidents.Step{
		{Run: "b-1", Runbook: "one", ID: "count", State: "done", ETA: time.Hour},
		{Run: "b-2", Runbook: "one", ID: "count", State: "done", ETA: time.Minute, Took: time.Second},
		{Run: "b-2", Runbook: "one", ID: "act", State: "not_selected", ETA: time.Hour},
	}}
	text := IncidentMarkdown(r)
	assert.Contains(t, text, "Run `b-1` of `one`: 1 done.\n")
	assert.Contains(t, text, "Run `b-2` of `one`: 1 done, 1 not selected.\n")
	assert.Contains(t, text, "ETA of the steps that were done in the last run: 1m; they took 1s.")
	assert.InEpsilon(t, 60.0, *reportItem(r).ETASeconds, 0)
}

// TestToldIsWhatWasSent, on every surface: whom a runbook names to be called has got nothing.
func TestToldIsWhatWasSent(t *testing.T) {
	t.Parallel()
	call := incidents.Escalation{Why: "stuck", To: []string{"Agent Team (#agent-team)"}, Call: true}
	sent := incidents.Escalation{Why: "leak", To: []string{"slack"}}
	failed := incidents.Escalation{Why: "leak", Error: "500"}
	for name, tc := range map[string]struct {
		all    []incidents.Escalation
		says   []string
		nobody bool
	}{
		"to be called": {[]incidents.Escalation{call}, []string{"to be called: Agent Team (#agent-team)"}, true},
		"told":         {[]incidents.Escalation{call, sent}, []string{"to be called: Agent Team (#agent-team)", "told slack"}, false},
		"not sent":     {[]incidents.Escalation{failed}, []string{"not sent: 500"}, true},
		"nothing":      {nil, nil, true},
	} {
		r := &incidents.IncidentReport{Scope: incidents.Scope{ID: "b-1"}, Escalations: tc.all}
		markdown, slack := strings.ReplaceAll(IncidentMarkdown(r), `\`, ""), IncidentSlack(r)
		for _, text := range []string{markdown, slack} {
			assert.Equal(t, tc.nobody, strings.Contains(text, nobodyTold), name)
			assert.Equal(t, !tc.nobody, strings.Contains(text, "told slack"), name)
			for _, want := range tc.says {
				assert.Contains(t, text, want, name)
			}
		}
		for i, item := range reportItem(r).Escalations {
			assert.Equal(t, tc.all[i].WasTold(), item.Told, name)
		}
	}
}
