package omoios_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/omoios"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/omoiostest"
	"sbx/internal/testkit/wiretest"
)

const (
	box     = "omoios-886da5fe-0a9fee"
	events  = "GET /api/v1/sandboxes/{id}/events"
	history = "GET /api/v1/sandboxes/{id}/trajectory"
	live    = "GET /api/v1/sandboxes/monitoring/status"
	tasks   = "GET /api/v1/tasks"
)

func open(t *testing.T, f *omoiostest.Fake, token string) *omoios.Client {
	t.Helper()
	s, err := omoios.Type().Attach(t.Context(), providers.Profile{Name: "omoi", Type: omoios.TypeName, Settings: map[string]string{"url": "http://omoios", "token": token}},
		providers.Deps{Now: time.Now, Net: httpx.Net{Dial: f.Dial}})
	require.NoError(t, err)
	c, ok := s.(*omoios.Client)
	require.True(t, ok)
	t.Cleanup(c.Close)
	return c
}

func names(list []sandbox.Event) []string {
	var all []string
	for _, e := range list {
		all = append(all, e.Event)
	}
	return all
}

func TestEventsAreToldOldestFirstAndOnce(t *testing.T) {
	t.Parallel()
	f := omoiostest.New(t, omoiostest.Options{})
	f.Add(
		omoiostest.Event{Sandbox: box, Type: "agent.started"},
		omoiostest.Event{Sandbox: "another", Type: "agent.error"},
		omoiostest.Event{Sandbox: box, Type: "agent.tool_use", Data: map[string]any{"tool": "Bash", "turn": 3, "input": map[string]any{"command": "go test\n./..."}}},
		omoiostest.Event{Sandbox: box, Type: "agent.file_edited", Data: map[string]any{"full_diff": "+secret", "file_path": "a/b.go"}},
	)
	got, err := open(t, f, "").Events(t.Context(), box)
	require.NoError(t, err)
	assert.Equal(t, []string{"agent.started", "agent.tool_use", "agent.file_edited"}, names(got))
	assert.Equal(t, []string{"", "Bash go test ./...", "edited a/b.go +1 -0"}, []string{got[0].Detail, got[1].Detail, got[2].Detail})
	assert.WithinDuration(t, time.Now(), got[2].At, time.Minute)
	assert.Zero(t, f.Changes())
}

// TestPagesThatShiftLoseNothing: the list grows at its front while it is read.
func TestPagesThatShiftLoseNothing(t *testing.T) {
	t.Parallel()
	f := omoiostest.New(t, omoiostest.Options{Growing: true})
	at := time.Now().Add(-time.Hour)
	for i := range 1203 {
		f.Add(omoiostest.Event{Sandbox: box, Type: fmt.Sprintf("agent.step_%d", i), At: at.Add(time.Duration(i) * time.Second)})
	}
	got, err := open(t, f, "").Events(t.Context(), box)
	require.NoError(t, err)
	require.Len(t, got, 1203, "what came after the first page is not part of the answer, and nothing comes twice")
	for i, e := range got {
		require.Equal(t, fmt.Sprintf("agent.step_%d", i), e.Event)
	}
	assert.Len(t, f.Calls(events), 3)
}

func TestAListingThatFailsSaysSo(t *testing.T) {
	t.Parallel()
	full := func(f *omoiostest.Fake) {
		for range 600 {
			f.Add(omoiostest.Event{Sandbox: box, Type: "agent.message"})
		}
	}
	for name, tc := range map[string]struct {
		set  func(f *omoiostest.Fake)
		want string
		rows int
	}{
		"loops": {func(f *omoiostest.Fake) { full(f); f.Change(func(o *omoiostest.Options) { o.Loops = true }) }, "the listing repeats itself", 500},
		"goes down between two pages": {func(f *omoiostest.Fake) {
			full(f)
			f.Break(wiretest.Fault{Route: events, Contains: "offset=500", Status: 200, Body: `{"sandbox_id":"` + box + `","events":[],"total_count":0}`})
		}, "lists 500 of 600 events", 500},
		"malformed rows": {func(f *omoiostest.Fake) {
			f.Add(omoiostest.Event{Sandbox: box, Type: "agent.message"},
				omoiostest.Event{Sandbox: box, Raw: map[string]any{"id": 7}}, omoiostest.Event{Sandbox: box, Raw: map[string]any{"id": "x", "event_type": "a", "created_at": nil}})
		}, "2 of 3 events are invalid", 1},
		"no route": {func(f *omoiostest.Fake) { f.Break(wiretest.Status(404)) }, "check the url", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := omoiostest.New(t, omoiostest.Options{})
			tc.set(f)
			got, err := open(t, f, "").Events(t.Context(), box)
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
			require.Error(t, err)
			assert.Contains(t, err.Error()+" "+fault.HintOf(err), tc.want)
			assert.Len(t, got, tc.rows, "what came stays")
		})
	}
}

// TestAnEmptyAnswerIsNoEvidence: the list of events is empty when the database fails, so a second
// call must confirm it.
func TestAnEmptyAnswerIsNoEvidence(t *testing.T) {
	t.Parallel()
	f := omoiostest.New(t, omoiostest.Options{})
	c := open(t, f, "")
	got, err := c.Events(t.Context(), box)
	require.NoError(t, err)
	assert.Empty(t, got)
	assert.Len(t, f.Calls(history), 1, "it was confirmed")

	f.Add(omoiostest.Event{Sandbox: box, Type: "agent.started"})
	f.Change(func(o *omoiostest.Options) { o.DatabaseDown = true })
	_, err = c.Events(t.Context(), box)
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
	require.ErrorContains(t, err, "cannot tell whether it has events")
	_, err = c.Activity(t.Context(), box)
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "no activity is concluded either")

	f.Change(func(o *omoiostest.Options) { o.DatabaseDown = false })
	f.Break(wiretest.Fault{Route: events, Status: 200, Body: `{"sandbox_id":"` + box + `","events":[],"total_count":0}`})
	_, err = c.Events(t.Context(), box)
	require.ErrorContains(t, err, "shows no events but counts 1")
}

func TestActivityTellsWorkFromLife(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Microsecond)
	ago := func(d time.Duration, kind string) omoiostest.Event {
		return omoiostest.Event{Sandbox: box, Type: kind, At: now.Add(-d)}
	}
	for name, tc := range map[string]struct {
		events []omoiostest.Event
		work   time.Duration // ago; 0 = none
		beat   time.Duration
		waits  time.Duration
	}{
		"active":              {[]omoiostest.Event{ago(time.Hour, "agent.started"), ago(3*time.Minute, "agent.tool_use"), ago(time.Second, "agent.heartbeat")}, 3 * time.Minute, time.Second, 0},
		"done and waiting":    {[]omoiostest.Event{ago(time.Hour, "agent.completed"), ago(time.Minute, "agent.waiting"), ago(30*time.Second, "agent.heartbeat")}, time.Hour, 30 * time.Second, time.Minute},
		"hung from the start": {[]omoiostest.Event{ago(time.Hour, "agent.started"), ago(time.Minute, "agent.heartbeat")}, 0, time.Minute, 0},
		"only failures":       {[]omoiostest.Event{ago(time.Hour, "agent.error"), ago(time.Minute, "iteration.failed"), ago(time.Minute, "agent.stream_error")}, 0, 0, 0},
		"unknown words work":  {[]omoiostest.Event{ago(time.Minute, "agent.dreamt")}, time.Minute, 0, 0},
		"waits, was resumed":  {[]omoiostest.Event{ago(2*time.Hour, "agent.completed"), ago(time.Hour, "agent.waiting"), ago(time.Minute, "agent.started"), ago(time.Second, "agent.heartbeat")}, 2 * time.Hour, time.Second, time.Hour},
		"waited, then failed": {[]omoiostest.Event{ago(time.Hour, "agent.waiting"), ago(time.Minute, "agent.error")}, 0, 0, 0},
		"waited, works again": {[]omoiostest.Event{ago(time.Hour, "agent.waiting"), ago(time.Minute, "agent.tool_use")}, time.Minute, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := omoiostest.New(t, omoiostest.Options{Page: 1}) // each event on a page of its own
			f.Add(tc.events...)
			got, err := open(t, f, "").Activity(t.Context(), box)
			require.NoError(t, err)
			when := func(d time.Duration) time.Time {
				if d == 0 {
					return time.Time{}
				}
				return now.Add(-d)
			}
			assert.Equal(t, when(tc.work), got.LastWorkAt)
			assert.Equal(t, when(tc.beat), got.LastHeartbeatAt)
			assert.Equal(t, when(tc.waits), got.WaitsSince)
			if tc.work != 0 || tc.beat != 0 {
				assert.NotEmpty(t, got.Evidence)
			}
		})
	}
}

// TestSilenceIsOfOneClock: from the last work to the newest heartbeat, whatever this machine's clock is. A worker is at
// work in each of these but the first.
func TestSilenceIsOfOneClock(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	at := func(ago time.Duration, naive bool) string {
		if naive {
			return now.Add(-ago).Format("2006-01-02T15:04:05.999999")
		}
		return now.Add(-ago).Format(time.RFC3339Nano)
	}
	for name, tc := range map[string]struct {
		work, beat string
		date       time.Duration // how far the server's own clock is ahead
		want       time.Duration
		failed     bool
	}{
		"silent":                 {at(time.Hour, false), at(0, false), 0, time.Hour, false},
		"a clock an hour behind": {at(time.Hour+5*time.Second, false), at(time.Hour, false), 0, 5 * time.Second, false},
		"without zones":          {at(time.Hour+5*time.Second, true), at(time.Hour, true), 0, 5 * time.Second, false},
		"one of them zoned":      {at(time.Hour, true), at(0, false), 0, 0, false},
		"no heartbeat":           {at(time.Hour, false), "", 0, 0, false},
		"a heartbeat to come":    {at(-time.Hour, false), at(-time.Hour, false), 0, 0, true},
		"Date an hour behind":    {at(time.Hour, false), at(0, false), -time.Hour, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := omoiostest.New(t, omoiostest.Options{})
			f.Break(wiretest.Fault{
				Route: history, Status: 200, Header: map[string]string{"Date": time.Now().Add(tc.date).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")},
				Body: `{"sandbox_id":"` + box + `","events":[{"id":"a","event_type":"agent.tool_use","created_at":"` + tc.work + `"}],"total_events":3,` +
					`"heartbeat_summary":{"count":3,"last_heartbeat":"` + tc.beat + `"}}`,
			})
			got, err := open(t, f, "").Activity(t.Context(), box)
			if tc.failed {
				assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
				return
			}
			require.NoError(t, err)
			assert.InDelta(t, tc.want.Seconds(), got.Silence.Seconds(), 0.1)
		})
	}
}

// TestAnotherSandboxsAnswerIsNone: a page, an event, a heartbeat or a task that names another sandbox says nothing of
// this one.
func TestAnotherSandboxsAnswerIsNone(t *testing.T) {
	t.Parallel()
	const event = `{"id":"a","event_type":"agent.tool_use","created_at":"2026-11-20T10:00:00Z"`
	for name, body := range map[string]string{
		"a page":      `{"sandbox_id":"other","events":[` + event + `}],"total_events":1,"total_count":1}`,
		"no name":     `{"events":[` + event + `}],"total_events":1,"total_count":1}`,
		"an event":    `{"sandbox_id":"` + box + `","events":[` + event + `,"sandbox_id":"other"}],"total_events":1,"total_count":1}`,
		"a heartbeat": `{"sandbox_id":"` + box + `","events":[],"total_events":1,"heartbeat_summary":{"count":1,"last_heartbeat":` + event + `,"sandbox_id":"other"}}}`,
	} {
		f := omoiostest.New(t, omoiostest.Options{})
		f.Add(omoiostest.Event{Sandbox: box, Type: "agent.tool_use"})
		f.Break(wiretest.Fault{Route: history, Status: 200, Body: body}, wiretest.Fault{Route: events, Status: 200, Body: body})
		c := open(t, f, "")
		_, err := c.Activity(t.Context(), box)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%s: %v", name, err)
		if name != "a heartbeat" {
			_, err = c.Events(t.Context(), box)
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%s: %v", name, err)
		}
	}
}

// TestAResumedWorkerIsNotSilentSinceItsLastWork: its silence begins with its start.
func TestAResumedWorkerIsNotSilentSinceItsLastWork(t *testing.T) {
	t.Parallel()
	f := omoiostest.New(t, omoiostest.Options{Page: 1})
	now := time.Now()
	f.Add(omoiostest.Event{Sandbox: box, Type: "agent.tool_use", At: now.Add(-time.Hour)}, omoiostest.Event{Sandbox: box, Type: "agent.started", At: now.Add(-5 * time.Second)},
		omoiostest.Event{Sandbox: box, Type: "agent.heartbeat", At: now})
	got, err := open(t, f, "").Activity(t.Context(), box)
	require.NoError(t, err)
	assert.InDelta(t, 5, got.Silence.Seconds(), 0.1)
}

func TestActivityIsNeverGuessed(t *testing.T) {
	t.Parallel()
	f := omoiostest.New(t, omoiostest.Options{})
	c := open(t, f, "")
	_, err := c.Activity(t.Context(), "never-heard-of")
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
	f.Add(omoiostest.Event{Sandbox: box, Type: "agent.tool_use"}, omoiostest.Event{Sandbox: box, Raw: map[string]any{"id": "x"}})
	_, err = c.Activity(t.Context(), box)
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "the row that is not understood may be the last work")
	f.Break(wiretest.Fault{Route: history, Status: 200, Body: `{"sandbox_id":"` + box + `","events":[{"id":"a","event_type":"agent.error","created_at":"2026-11-20T10:00:00Z"}],"total_events":9,"has_more":true,"next_cursor":"a"}`})
	_, err = c.Activity(t.Context(), box)
	require.ErrorContains(t, err, "the listing repeats itself")
	for name, end := range map[string]string{"more without a token": `"has_more":true`, "a full page without a mark": `"prev_cursor":null`, "an odd token": `"has_more":true,"next_cursor":7`} {
		f.Heal()
		rows := strings.Repeat(`{"id":"a","event_type":"agent.error","created_at":"2026-11-20T10:00:00Z"},`, 99) + `{"id":"b","event_type":"agent.error","created_at":"2026-11-20T10:00:00Z"}`
		f.Break(wiretest.Fault{Route: history, Status: 200, Body: `{"sandbox_id":"` + box + `","events":[` + rows + `],"total_events":200,` + end + `}`})
		_, err = c.Activity(t.Context(), box)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%s: the last work may be behind it", name)
	}
}

// TestAnOddTaskHidesNoOther: the sandbox of a task that is left out would look like one without a task.
func TestAnOddTaskHidesNoOther(t *testing.T) {
	t.Parallel()
	f := omoiostest.New(t, omoiostest.Options{})
	f.Break(wiretest.Fault{Route: "GET /api/v1/tasks", Status: 200, Body: `[{"id":"a","status":"running","sandbox_id":"s1","created_at":"noon"},{"id":"b","status":"running","sandbox_id":7},null,{"id":"d","status":"running","sandbox_id":"s4","completed_at":[]}]`})
	var found []string
	var failed error
	for r, err := range open(t, f, omoiostest.Token).Records(t.Context()) {
		if err != nil {
			failed = err
			continue
		}
		found = append(found, r.SandboxID)
		assert.True(t, r.CreatedAt.IsZero() && r.EndedAt.IsZero())
	}
	assert.Equal(t, []string{"s1", "s4"}, found)
	require.ErrorContains(t, failed, "row 2 of the list is invalid: sandbox_id must not be of type number")
	require.ErrorContains(t, failed, "2 of 4 rows")
}

func TestHeartbeatsInEitherShape(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 10, 0, 0, 5000, time.UTC)
	for name, beat := range map[string]string{
		"a time": `"2026-11-20T10:00:00.000005Z"`, "no zone": `"2026-11-20T10:00:00.000005"`, "a space": `"2026-11-20 10:00:00.000005+00:00"`,
		"an event": `{"id":"x","created_at":"2026-11-20T12:00:00.000005+02:00"}`, "its data": `{"timestamp":"2026-11-20T10:00:00.000005Z","status":"alive"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := omoiostest.New(t, omoiostest.Options{})
			f.Break(wiretest.Fault{Route: history, Status: 200, Body: `{"sandbox_id":"` + box + `","events":[],"total_events":3,"heartbeat_summary":{"count":3,"last_heartbeat":` + beat + `}}`})
			got, err := open(t, f, "").Activity(t.Context(), box)
			require.NoError(t, err)
			assert.Equal(t, at, got.LastHeartbeatAt)
			assert.Zero(t, got.LastWorkAt)
		})
	}
}

func records(t *testing.T, c *omoios.Client) (map[string]providers.Record, error) {
	t.Helper()
	found := map[string]providers.Record{}
	var errs []error
	for r, err := range c.Records(t.Context()) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		_, twice := found[r.SandboxID]
		assert.False(t, twice, "%s stands twice", r.SandboxID)
		found[r.SandboxID] = r
	}
	return found, errors.Join(errs...)
}

func TestRecordsAreTasksAndWhatElseLives(t *testing.T) {
	t.Parallel()
	f := omoiostest.New(t, omoiostest.Options{})
	made := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	f.AddTask(omoiostest.Task{ID: "t1", Status: "running", Sandbox: "a", Created: made}, omoiostest.Task{ID: "t2", Status: "completed", Sandbox: "b", Created: made},
		omoiostest.Task{ID: "t3", Status: "validating", Sandbox: "c", Created: made}, omoiostest.Task{ID: "t4", Status: "pending", Created: made})
	f.Add(omoiostest.Event{Sandbox: "a", Type: "agent.heartbeat"}, omoiostest.Event{Sandbox: "foreign", Type: "agent.heartbeat"},
		omoiostest.Event{Sandbox: "dead", Type: "agent.heartbeat", At: time.Now().Add(-time.Hour)})
	got, err := records(t, open(t, f, omoiostest.Token))
	require.NoError(t, err)
	require.Len(t, got, 4)
	assert.Equal(t, providers.Record{SandboxID: "a", Labels: map[string]string{"task_id": "t1"}, TaskID: "t1", RawState: "running", Live: sandbox.True, CreatedAt: made}, got["a"])
	assert.Equal(t, sandbox.False, got["b"].Live, "a worker waits on after completion: that is the leak")
	assert.Equal(t, sandbox.Unknown, got["c"].Live)
	assert.Equal(t, sandbox.True, got["foreign"].Live)
	assert.Empty(t, got["foreign"].TaskID, "it is of a project that the token does not show")
}

func TestRecordsSayWhatTheyLeaveOut(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		token string
		set   func(f *omoiostest.Fake)
		kind  fault.Kind
		rows  int
	}{
		"no token":    {"", func(*omoiostest.Fake) {}, fault.KindAuth, 1},
		"wrong token": {"wrong-token-1", func(*omoiostest.Fake) {}, fault.KindAuth, 1},
		"no array":    {omoiostest.Token, func(f *omoiostest.Fake) { f.Break(wiretest.Fault{Route: tasks, Status: 200, Body: "null"}) }, fault.KindUnavailable, 1},
		"odd rows": {omoiostest.Token, func(f *omoiostest.Fake) {
			f.Break(wiretest.Fault{Route: tasks, Status: 200, Body: `[{"sandbox_id":"b"},{"id":"t","status":"running","sandbox_id":"c"}]`})
		}, fault.KindUnavailable, 3},
		"a full page": {omoiostest.Token, func(f *omoiostest.Fake) {
			for i := range 130 {
				f.AddTask(omoiostest.Task{ID: fmt.Sprint("t", i), Status: "running", Sandbox: fmt.Sprint("s", i)})
			}
		}, fault.KindUnavailable, 101},
		"no monitor": {omoiostest.Token, func(f *omoiostest.Fake) { f.Break(wiretest.Fault{Route: live, Status: 500}) }, fault.KindUnavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := omoiostest.New(t, omoiostest.Options{})
			f.Add(omoiostest.Event{Sandbox: "a", Type: "agent.heartbeat"})
			tc.set(f)
			got, err := records(t, open(t, f, tc.token))
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			assert.Len(t, got, tc.rows)
			assert.NotContains(t, fmt.Sprint(err)+fault.HintOf(err), "wrong-token-1")
		})
	}
}

func TestDoctorLooksBehindTheGreenHealth(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		token string
		set   func(f *omoiostest.Fake)
		want  map[string]sandbox.Verdict
	}{
		"well":          {omoiostest.Token, func(*omoiostest.Fake) {}, map[string]sandbox.Verdict{"api": sandbox.True, "clock": sandbox.True, "events": sandbox.True, "tasks": sandbox.True}},
		"no token":      {"", func(*omoiostest.Fake) {}, map[string]sandbox.Verdict{"api": sandbox.True, "clock": sandbox.True, "events": sandbox.True, "tasks": sandbox.Unknown}},
		"wrong token":   {"wrong-token-1", func(*omoiostest.Fake) {}, map[string]sandbox.Verdict{"api": sandbox.True, "clock": sandbox.True, "events": sandbox.True, "tasks": sandbox.False}},
		"database down": {omoiostest.Token, func(f *omoiostest.Fake) { f.Change(func(o *omoiostest.Options) { o.DatabaseDown = true }) }, map[string]sandbox.Verdict{"api": sandbox.True, "clock": sandbox.True, "events": sandbox.False, "tasks": sandbox.True}},
		"another clock": {omoiostest.Token, func(f *omoiostest.Fake) {
			f.Break(wiretest.Fault{Header: map[string]string{"Date": time.Now().Add(-time.Hour).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")}})
		}, map[string]sandbox.Verdict{"api": sandbox.True, "events": sandbox.True, "tasks": sandbox.True, "clock": sandbox.False}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := omoiostest.New(t, omoiostest.Options{})
			f.AddTask(omoiostest.Task{ID: "t1", Status: "running", Sandbox: "a"})
			tc.set(f)
			got := map[string]sandbox.Verdict{}
			for _, c := range open(t, f, tc.token).Check(t.Context()) {
				got[c.Check] = c.Verdict
				assert.NotEmpty(t, c.Message)
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestAURLIsNeeded(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "omoios.example"} {
		_, err := omoios.Type().Attach(t.Context(), providers.Profile{Name: "omoi", Settings: map[string]string{"url": url}}, providers.Deps{})
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), url)
	}
}

// TestBadDays: no failure of the backend becomes an empty list of events or records.
func TestBadDays(t *testing.T) {
	t.Parallel()
	for _, day := range wiretest.BadDays() {
		if day.Loops || day.Edit != nil {
			continue // see TestAListingThatFailsSaysSo: an edit is about the rows of a provider
		}
		bubble.Run(t, day.Name, func(t *testing.T) { judge(t, day) })
	}
}

func judge(t *testing.T, day wiretest.BadDay) {
	t.Helper()
	f := omoiostest.New(t, omoiostest.Options{})
	f.Add(omoiostest.Event{Sandbox: box, Type: "agent.tool_use"}, omoiostest.Event{Sandbox: box, Type: "agent.heartbeat"})
	f.AddTask(omoiostest.Task{ID: "t1", Status: "running", Sandbox: box})
	c := open(t, f, omoiostest.Token)
	defer c.Close()
	want := day.Get
	if want == fault.KindNotFound || want == fault.KindGone {
		want = fault.KindUnavailable // no route here answers so about a sandbox
	}
	for route, read := range map[string]func(context.Context) error{
		events:  func(ctx context.Context) error { _, err := c.Events(ctx, box); return err },
		history: func(ctx context.Context) error { _, err := c.Activity(ctx, box); return err },
		tasks:   func(ctx context.Context) error { return firstError(c.Records(ctx)) },
		live:    func(ctx context.Context) error { return firstError(c.Records(ctx)) },
	} {
		if route == tasks && day.Fault.Body == "[]" {
			continue // a token that shows no task: an answer
		}
		err := during(t, f, day, route, read)
		require.Error(t, err, route)
		assert.Equal(t, want, fault.KindOf(err), "%s: %v", route, err)
		assert.NotContains(t, err.Error()+fault.HintOf(err), omoiostest.Token)
		assert.NoError(t, read(t.Context()), "the day is over")
	}
}

// during reads while a route fails.
func during(t *testing.T, f *omoiostest.Fake, day wiretest.BadDay, route string, read func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if day.Context != nil {
		var giveUp context.CancelFunc
		ctx, giveUp = day.Context(ctx)
		defer giveUp()
	}
	broken := day.Fault
	broken.Route = route
	f.Break(broken)
	if day.Dial != nil {
		f.Heal()
		f.Unplug(day.Dial)
	}
	defer f.Unplug(nil)
	defer f.Heal()
	return read(ctx)
}

func firstError(rows func(func(providers.Record, error) bool)) error {
	for _, err := range rows {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestAgentEventsHaveTheirData: newest first, each once over pages, and no page more than is wanted.
func TestAgentEventsHaveTheirData(t *testing.T) {
	t.Parallel()
	f := omoiostest.New(t, omoiostest.Options{})
	for n := range 250 {
		f.Add(omoiostest.Event{Sandbox: box, Type: "agent.tool_use", Data: map[string]any{"tool": "Bash", "turn": n}, At: time.Date(2026, 11, 20, 12, 0, n, 0, time.UTC)})
	}
	c := open(t, f, "")
	var got []providers.AgentEvent
	require.NoError(t, c.AgentEvents(t.Context(), box, 100, func(e providers.AgentEvent) bool { got = append(got, e); return true }))
	require.Len(t, got, 250)
	assert.JSONEq(t, `{"tool":"Bash","turn":249}`, string(got[0].Data))
	assert.Equal(t, []string{"event-0250", "event-0001", "agent.tool_use", "agent"}, []string{got[0].ID, got[249].ID, got[0].Type, got[0].Source})
	assert.Len(t, f.Calls(events), 3)

	n := 0
	require.NoError(t, c.AgentEvents(t.Context(), box, 100, func(providers.AgentEvent) bool { n++; return n < 50 }))
	assert.Len(t, f.Calls(events), 4, "the second page is not read")
}
