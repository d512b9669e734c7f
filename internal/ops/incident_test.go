package ops

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/incident"
	"sbx/internal/notify"
	"sbx/internal/process"
	"sbx/internal/sandbox"
)

func TestTheLineIsRecordedWithoutWhatIsInside(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"sbx ls --stuck":             {"sbx", "ls", "--stuck"},
		"sbx":                        {"sbx"},
		"sbx create --name a -- ...": {"sbx", "create", "--name", "a", "--", "curl", "-H", "Authorization: x"},
		"sbx run --env A=... --env=B=... --env C -- ...": {"sbx", "run", "--env", "A=1", "--env=B=2", "--env", "C", "--", "x"},
	} {
		assert.Equal(t, want, incidentLine("sbx", args))
	}
}

const privateKey = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow\nIBAAKCAQEA0Z3VS5JJcds3xfn\n-----END RSA PRIVATE KEY-----"

func TestWhatLooksLikeASecretIsReplaced(t *testing.T) {
	t.Parallel()
	replace := incident.Replacer([]string{"known-secret", "abc"}, standardReplacers()...)
	for text, want := range map[string]string{
		"nothing":                                                   "nothing",
		"x known-secret y known-secret":                             "x [redacted] y [redacted]",
		"abc is too short":                                          "abc is too short",
		"https://bob:pa55word@host/x":                               "https://[redacted]@host/x",
		"https://host/path@x":                                       "https://host/path@x",
		"postgres://u:p4ss@h/db?a=b":                                "postgres://[redacted]@h/db?a=b",
		"API_TOKEN=abcdef next":                                     "API_TOKEN=[redacted] next",
		`{"password": "hunter2"}`:                                   `{"password": "[redacted]"}`,
		"Authorization: Bearer abc.def":                             "Authorization: Bearer [redacted]",
		"GET /x?sig=0123&y=1":                                       "GET /x?sig=[redacted]&y=1",
		"the token was lost":                                        "the token was lost",
		"key=value":                                                 "key=value",
		"sbx run --token abc123 x":                                  "sbx run --token [redacted] x",
		`x --api-key "a b" y`:                                       `x --api-key [redacted] y`,
		"x --token --yes":                                           "x --token --yes",
		"AKIAIOSFODNN7EXAMPLE was seen":                             "[redacted] was seen",
		"(ghp_" + strings.Repeat("a1", 18) + ")":                    "([redacted])",
		"github_pat_" + strings.Repeat("a1", 20):                    "[redacted]",
		"xoxb-1234567890-abcdefghij":                                "[redacted]",
		"is sk-ant-api03-" + strings.Repeat("aB", 10):               "is [redacted]",
		"task-sk and sk-short and disk-ant-api03-aaaaaaaaaaaaaaaaa": "task-sk and sk-short and disk-ant-api03-aaaaaaaaaaaaaaaaa",
		"a\n" + privateKey + "\nb":                                  "a\n[redacted]\nb",
		"a " + privateKey[:60]:                                      "a [redacted]",
	} {
		got, n := replace(text)
		assert.Equal(t, want, got)
		assert.Equal(t, text != want, n > 0, text)
		again, n := replace(got)
		assert.Equal(t, got, again, "what is redacted stays as it is")
		assert.Zero(t, n, got)
	}
}

// recording is an environment with an open incident, and what warnings it gave.
type recording struct {
	env    *Env
	folder incident.Folder
	warned []string
}

func (r *recording) Note(string)               {}
func (r *recording) Warn(text string)          { r.warned = append(r.warned, text) }
func (r *recording) Redact(text string) string { return text }

func newRecording(t *testing.T, open bool) *recording {
	t.Helper()
	now := func() time.Time { return time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC) }
	r := &recording{folder: incident.Folder{Dir: filepath.Join(t.TempDir(), "incidents"), Now: now}}
	r.env = &Env{
		Process:   process.Process{Args: []string{"sbx", "stats"}, Now: now, Host: "h1"},
		Config:    func() (*config.Config, error) { return nil, errors.New("none") },
		Incidents: func() (incident.Folder, error) { return r.folder, nil },
	}
	if open {
		_, err := r.folder.Start(t.Context(), "i-1", incident.Event{Kind: incident.Started, At: now(), Start: &incident.Start{Title: "t"}})
		require.NoError(t, err)
	}
	return r
}

func (r *recording) events(t *testing.T) []incident.Event {
	t.Helper()
	i, err := r.folder.Read("i-1")
	require.NoError(t, err)
	return i.Events[1:]
}

func TestAVerbIsOneEvent(t *testing.T) {
	t.Parallel()
	r := newRecording(t, true)
	r.env.BeginVerb("stats", r)
	r.env.saw(func(e *incident.Event) { e.Figures = []incident.Figure{{Name: "active", Value: number(3)}} })
	r.env.noteSent(notify.Message{Verb: "stats", Title: "too many", Kind: notify.KindAlert, Alert: "active_high"}, []string{"slack", "webhook"}, []string{"webhook"}, errors.New("webhook: 500"))
	r.env.RecordVerb(t.Context(), 10, errors.New("found TOKEN=abcdef"))
	events := r.events(t)
	require.Len(t, events, 2)
	assert.Equal(t, incident.Seen, events[0].Kind)
	assert.Equal(t, "sbx stats", events[0].Line)
	assert.Equal(t, 10, *events[0].ExitCode)
	assert.Equal(t, []string{"found TOKEN=[redacted]"}, events[0].Errors)
	assert.InEpsilon(t, 3.0, *events[0].Figures[0].Value, 0)
	assert.Equal(t, incident.Escalated, events[1].Kind)
	assert.Equal(t, []string{"slack"}, events[1].Message.To)
	assert.Equal(t, "webhook: 500", events[1].Message.Error)
	r.env.record(t.Context())
	assert.Len(t, r.events(t), 2, "nothing is written twice")
	assert.Empty(t, r.warned)
}

func TestWhatCallsNothingIsNotRecorded(t *testing.T) {
	t.Parallel()
	r := newRecording(t, true)
	r.env.RecordVerb(t.Context(), 0, nil) // no verb that looks
	r.env.BeginVerb("ls", r)
	r.env.RecordVerb(t.Context(), 2, fault.Usage("wrong"))
	assert.Empty(t, r.events(t))
}

func TestARoundIsRecordedOnceAMinute(t *testing.T) {
	t.Parallel()
	r := newRecording(t, true)
	r.env.BeginVerb("verify", r)
	for range 3 {
		r.env.sawText("a round")
		r.env.recordRound(t.Context())
	}
	assert.Len(t, r.events(t), 1)
	r.env.RecordVerb(t.Context(), 0, nil)
	events := r.events(t)
	require.Len(t, events, 2)
	assert.Equal(t, "a round; a round", events[1].Text, "what was not written yet")
}

// TestAnInterruptedVerbIsRecorded: its context has ended.
func TestAnInterruptedVerbIsRecorded(t *testing.T) {
	t.Parallel()
	r := newRecording(t, true)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	r.env.BeginVerb("ls", r)
	r.env.RecordVerb(ctx, 130, context.Canceled)
	assert.Len(t, r.events(t), 1)
}

func TestRecordingNeverFailsAVerb(t *testing.T) {
	t.Parallel()
	r := newRecording(t, false)
	r.env.BeginVerb("ls", r)
	asked := 0
	r.env.AddSnapshot("a.json", func() ([]byte, error) { asked++; return nil, nil })
	r.env.RecordVerb(t.Context(), 0, nil)
	assert.Zero(t, asked, "without an incident nothing is made")
	assert.NoDirExists(t, r.folder.Dir, "nor written")
	assert.Empty(t, r.warned)

	r = newRecording(t, true)
	r.env.BeginVerb("ls", r)
	r.env.AddSnapshot("a.json", func() ([]byte, error) { return nil, errors.New("no snapshot") })
	r.env.RecordVerb(t.Context(), 0, nil)
	assert.Len(t, r.events(t), 1)
	require.Len(t, r.warned, 1)
	assert.Contains(t, r.warned[0], "no snapshot")

	r.folder.Dir = "/dev/null/none"
	r.env.RecordVerb(t.Context(), 0, nil)
	r.env.RecordVerb(t.Context(), 0, nil)
	assert.Len(t, r.warned, 1, "it is said once")
}

func event(kind incident.Kind, minute int, change func(*incident.Event)) incident.Event {
	e := incident.Event{Kind: kind, At: time.Date(2026, 11, 23, 12, minute, 0, 0, time.UTC), Actor: incident.Actor{Who: "alice"}, Verb: "diagnose"}
	if change != nil {
		change(&e)
	}
	return e
}

func reportOf(events ...incident.Event) *IncidentReport {
	r := &IncidentReport{Incident: &incident.Incident{ID: "i-1", State: incident.Open, Events: events, StartedAt: events[0].At}}
	for _, e := range events {
		r.addEvent(e)
	}
	r.rankCauses()
	return r
}

func TestTheReportKeepsTheSurestCause(t *testing.T) {
	t.Parallel()
	cause := func(id string, c sandbox.Confidence, score float64) func(*incident.Event) {
		return func(e *incident.Event) {
			e.Causes = append(e.Causes, incident.Cause{ID: id, Title: id, Confidence: c, Score: score})
		}
	}
	r := reportOf(event(incident.Started, 0, nil), event(incident.Seen, 1, cause("loop", sandbox.Hint, 0.3)), event(incident.Seen, 2, cause("loop", sandbox.Probable, 0.8)),
		event(incident.Seen, 3, cause("leak", sandbox.Hint, 0.9)), event(incident.Seen, 9, cause("loop", sandbox.Hint, 0.1)))
	require.Len(t, r.Causes, 2)
	assert.Equal(t, "loop", r.Causes[0].ID)
	assert.InEpsilon(t, 0.8, r.Causes[0].Score, 0)
	assert.Equal(t, 2, r.Causes[0].At.Minute())
	answer, source := r.recordedAnswer([]string{"diagnose"})
	assert.Equal(t, "loop (probable, score 0.80)", answer)
	assert.Contains(t, source, "12:02")
	answer, _ = reportOf(event(incident.Started, 0, nil), event(incident.Seen, 3, cause("leak", sandbox.Hint, 0.9))).recordedAnswer([]string{"diagnose"})
	assert.Empty(t, answer, "a hint answers nothing")
}

func TestTheMomentsOfAReport(t *testing.T) {
	t.Parallel()
	r := reportOf(event(incident.Started, 5, nil), event(incident.Verified, 6, nil), event(incident.Verified, 20, nil))
	r.Acts = []cleanup.Act{
		{Action: cleanup.ActTerminate, Outcome: sandbox.OutcomeVerified, SettledAt: event("", 10, nil).At, Ref: sandbox.Ref{Provider: "p", ID: "a"}, Run: "r-1"},
		{Action: cleanup.ActTerminate, Outcome: sandbox.OutcomeStuck, SettledAt: event("", 15, nil).At},
		{Action: "adopt", Outcome: sandbox.OutcomeVerified, SettledAt: event("", 17, nil).At, Ref: sandbox.Ref{Provider: "p", ID: "at-work"}},
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

	r = reportOf(event(incident.Started, 5, func(e *incident.Event) { e.Start = &incident.Start{} }),
		event(incident.Noted, 7, func(e *incident.Event) { e.Milestone, e.Text = incident.MilestoneMitigated, "rolled back" }))
	r.Incident.Start.DetectedAt, r.Incident.Start.DetectedBy = event("", 1, nil).At, "alert x at p"
	r.addMoments()
	assert.Equal(t, 1, r.Moment(incident.MilestoneDetected).At.Minute())
	assert.Equal(t, "alert x at p", r.Moment(incident.MilestoneDetected).Source)
	assert.Equal(t, "a note: rolled back", r.Moment(incident.MilestoneMitigated).Source)
}

func TestATitleHasALimit(t *testing.T) {
	t.Parallel()
	r := newRecording(t, false)
	_, err := StartIncident(t.Context(), r.env, IncidentStart{Title: strings.Repeat("ä", 201)})
	require.ErrorContains(t, err, "201 characters")
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	assert.Equal(t, strings.Repeat("ä", 200), cutTitle(strings.Repeat("ä", 200)))
	assert.Equal(t, strings.Repeat("ä", 199)+"…", cutTitle(strings.Repeat("ä", 201)), "of a runbook")
}

// TestAllLikelyCausesAnswer: one incident may have several.
func TestAllLikelyCausesAnswer(t *testing.T) {
	t.Parallel()
	r := &IncidentReport{Causes: []SeenCause{
		{Cause: incident.Cause{Title: "silent", Confidence: sandbox.Probable, Score: 1}, Verb: "diagnose"},
		{Cause: incident.Cause{Title: "loop", Confidence: sandbox.Probable, Score: 0.8}, Verb: "diagnose"},
		{Cause: incident.Cause{Title: "orphan", Confidence: sandbox.Hint, Score: 0.5}, Verb: "diagnose"},
	}}
	answer, source := r.causeAnswer()
	assert.Equal(t, "silent (probable, score 1.00); loop (probable, score 0.80)", answer)
	assert.Equal(t, "sbx diagnose at 0001-01-01T00:00:00Z", source)
}
