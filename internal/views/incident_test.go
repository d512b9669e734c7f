package views

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/cleanup"
	"sbx/internal/incident"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
)

// hostile is a text that is mark-up, a mention, and more than one line.
const hostile = "a | b `c` *d* _e_ ~f~ <!channel> @here <@U123> [x](http://y) ![z](q) \x1b[31m\n# heading\n- item\n> quote"

func hostileReport() *ops.IncidentReport {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	code := 3
	seen := []sandbox.Evidence{{What: hostile, Value: hostile, Source: hostile}}
	actor := incident.Actor{Who: hostile, Host: hostile}
	i := &incident.Incident{ID: "i-1", State: incident.Open, StartedAt: at, StartedBy: actor, Start: incident.Start{Title: hostile, Providers: []string{hostile}}, Events: []incident.Event{
		{Kind: incident.Noted, At: at, Actor: actor, Text: hostile},
		{Kind: incident.Acted, At: at, Actor: actor, Verb: "terminate", Line: hostile, ExitCode: &code, Acts: []incident.Act{{Ref: hostile, Action: hostile}}, Causes: []incident.Cause{{Title: hostile}}, Errors: []string{hostile}},
		{Kind: incident.Snapshotted, At: at, Actor: actor, Snapshot: &incident.Snapshot{Name: hostile, File: hostile, SHA256: hostile}},
		{Kind: incident.Redacted, At: at, Actor: actor, Redaction: &incident.Redaction{Places: 1}},
		{Kind: incident.Kind(hostile), At: at, Actor: actor},
	}}
	return &ops.IncidentReport{
		Incident: i, At: at, Severity: hostile, Alert: hostile, Plan: ops.ReportPlan{Runbook: hostile, Title: hostile},
		Moments:     []ops.Moment{{Milestone: incident.MilestoneDetected, At: at, Source: hostile, Who: hostile}},
		Causes:      []ops.SeenCause{{Cause: incident.Cause{Title: hostile, Confidence: sandbox.Probable, Evidence: seen, WhyNot: hostile}}},
		Flags:       []ops.SeenCheck{{Check: incident.Check{Title: hostile, Severity: hostile, Evidence: seen}, Verb: hostile}},
		Figures:     []ops.SeenFigure{{Name: hostile, Before: new(1.0), After: new(2.5)}},
		Acts:        []cleanup.Act{{Actor: cleanup.Actor{Who: hostile}, Verb: hostile, Action: hostile, Ref: sandbox.Ref{Provider: "p", ID: hostile}, Reason: hostile, Run: hostile}},
		Checks:      []ops.SeenCheck{{Check: incident.Check{ID: "R125", Title: hostile, Value: hostile, Target: hostile, Verdict: sandbox.False}}},
		Escalations: []incident.Event{{Text: hostile, Message: &incident.Message{To: []string{hostile}, Error: hostile}}},
		Steps:       []incident.Step{{ID: hostile, Title: hostile, State: hostile, Verdict: hostile, Text: hostile, Answer: hostile}},
		Answers:     []ops.ReportAnswer{{ReportQuestion: ops.ReportQuestion{Ask: hostile}, Answer: hostile, Source: hostile}, {ReportQuestion: ops.ReportQuestion{Ask: hostile}, NeedsPerson: true}},
		Tasks:       []ops.ReportTask{{Title: hostile, Group: hostile}, {Title: hostile, Where: hostile}},
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
	code, n := 10, 25.0
	for want, e := range map[string]incident.Event{
		"agents hang; alert a; runbook b": {Kind: incident.Started, Start: &incident.Start{Title: "agents hang", Alert: "a", Runbook: "b"}},
		"sbx diagnose (exit 10); stuck 25; cause: Loop (probable); 1 flags": {
			Kind: incident.Seen, Line: "sbx diagnose", ExitCode: &code, Figures: []incident.Figure{{Name: "stuck", Value: &n}, {Name: "active"}},
			Causes: []incident.Cause{{Title: "Loop", Confidence: sandbox.Probable}}, Flags: []incident.Check{{}},
		},
		"sbx verify; 1 of 2 targets missed: active sandboxes": {
			Kind: incident.Seen, Line: "sbx verify", Checks: []incident.Check{{Title: "active sandboxes", Verdict: sandbox.False}, {Title: "ages", Verdict: sandbox.True}},
		},
		"sbx cleanup; terminate verified 2, terminate stuck 1, and 7 more": {
			Kind: incident.Acted, Line: "sbx cleanup", MoreActs: 7,
			Acts: []incident.Act{{Action: "terminate", Outcome: "verified"}, {Action: "terminate", Outcome: "verified"}, {Action: "terminate", Outcome: "stuck"}},
		},
		"local/a terminate outcome unknown":             {Kind: incident.Acted, Acts: []incident.Act{{Ref: "local/a", Action: "terminate"}}},
		"count: Count: done, true; answer: how many? 2": {Kind: incident.Stepped, Step: &incident.Step{ID: "count", Title: "Count", State: "done", Verdict: "true", Answer: "how many? 2"}},
		"too many; to slack; not sent: 500":             {Kind: incident.Escalated, Text: "too many", Message: &incident.Message{To: []string{"slack"}, Error: "500"}},
		"it was mitigated: rolled back":                 {Kind: incident.Noted, Milestone: incident.MilestoneMitigated, Text: "rolled back"},
		"answer to changes: yes":                        {Kind: incident.Noted, Question: "changes", Text: "yes"},
		"as resolved: over":                             {Kind: incident.Closed, As: incident.Resolved, Text: "over"},
		"1 places in 2 events and 3 snapshots":          {Kind: "x", Text: incident.Redaction{Places: 1, Events: 2, Files: 3}.String()},
	} {
		assert.Equal(t, want, EventText(e))
	}
}

// TestEachRunHasItsTable, and the ETA is that of the last one.
func TestEachRunHasItsTable(t *testing.T) {
	t.Parallel()
	r := &ops.IncidentReport{Incident: &incident.Incident{ID: "i-1"}, Steps: []incident.Step{
		{Run: "b-1", Runbook: "one", ID: "count", State: "done", ETA: time.Hour},
		{Run: "b-2", Runbook: "one", ID: "count", State: "done", ETA: time.Minute, Took: time.Second},
		{Run: "b-2", Runbook: "one", ID: "act", State: "not_selected", ETA: time.Hour},
	}}
	text := IncidentMarkdown(r)
	assert.Contains(t, text, "Run `b-1` of `one`: 1 done.\n")
	assert.Contains(t, text, "Run `b-2` of `one`: 1 done, 1 not selected.\n")
	assert.Contains(t, text, "ETA of the steps that were done in the last run: 1m; they took 1s.")
	assert.InEpsilon(t, 60.0, reportRecord(r)["eta_seconds"], 0)
}
