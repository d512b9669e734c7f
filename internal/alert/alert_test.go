package alert_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/alert"
	"sbx/internal/check"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/triage"
)

const (
	holdFor = 30 * time.Minute
	every   = 5 * time.Minute
)

func noon() time.Time { return time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC) }

// TestAlertForDuration: an alert fires once after its duration, recovers once, and time that nobody saw
// counts for nothing.
func TestAlertForDuration(t *testing.T) {
	t.Parallel()
	type look struct {
		after   time.Duration
		verdict sandbox.Verdict
		phase   alert.Phase
		event   alert.Event
		says    string
	}
	const yes, no, open = sandbox.True, sandbox.False, sandbox.Unknown
	for name, looks := range map[string][]look{
		"fires and recovers once": {
			{0, yes, alert.Pending, "", "pending for 0ms of 30m"},
			{10 * time.Minute, yes, alert.Pending, "", "pending for 10m of 30m"},
			{10 * time.Minute, yes, alert.Pending, "", ""},
			{10 * time.Minute, yes, alert.Firing, alert.EventFired, "firing for 30m"},
			{5 * time.Minute, yes, alert.Firing, "", ""},
			{5 * time.Minute, no, alert.Quiet, alert.EventRecovered, "quiet"},
			{5 * time.Minute, no, alert.Quiet, "", ""},
		},
		"a gap neither counts nor resets": {
			{0, yes, alert.Pending, "", ""},
			{8 * time.Minute, yes, alert.Pending, "", ""},
			{12 * time.Minute, yes, alert.Pending, "", "pending for 8m of 30m, data gap 12m"},
			{10 * time.Minute, yes, alert.Pending, "", "pending for 18m of 30m, data gap 12m"},
			{10 * time.Minute, yes, alert.Pending, "", ""},
			{2 * time.Minute, yes, alert.Firing, alert.EventFired, "firing for 30m, data gap 12m"},
		},
		"unknown changes nothing": {
			{0, yes, alert.Pending, "", ""},
			{9 * time.Minute, yes, alert.Pending, "", ""},
			{time.Minute, open, alert.Pending, "", ""},
			{8 * time.Minute, yes, alert.Pending, "", "pending for 18m of 30m"},
			{6 * time.Minute, yes, alert.Pending, "", ""},
			{6 * time.Minute, yes, alert.Firing, alert.EventFired, ""},
			{time.Hour, open, alert.Firing, "", ""},
			{time.Minute, no, alert.Quiet, alert.EventRecovered, ""},
		},
		"a calm moment resets": {{0, yes, alert.Pending, "", ""}, {9 * time.Minute, no, alert.Quiet, "", "quiet"}, {9 * time.Minute, yes, alert.Pending, "", "pending for 0ms of 30m"}},
		"a clock that goes back": {
			{0, yes, alert.Pending, "", ""},
			{9 * time.Minute, yes, alert.Pending, "", ""},
			{-time.Hour, yes, alert.Pending, "", "pending for 9m of 30m"},
			{9 * time.Minute, yes, alert.Pending, "", "pending for 18m of 30m"},
			{-time.Hour, open, alert.Pending, "", "pending for 18m of 30m"},
			{-time.Hour, no, alert.Quiet, "", ""},
		},
		"a clock that leaps and comes back": {
			{0, yes, alert.Pending, "", ""},
			{5 * time.Minute, yes, alert.Pending, "", ""},
			{48 * time.Hour, yes, alert.Pending, "", "pending for 5m of 30m, data gap 2d"},
			{-48*time.Hour + 5*time.Minute, yes, alert.Pending, "", "pending for 5m of 30m, data gap 2d"},
			{5 * time.Minute, no, alert.Quiet, "", ""},
		},
		"a clock that leaps": {{0, yes, alert.Pending, "", ""}, {48 * time.Hour, yes, alert.Pending, "", "pending for 0ms of 30m, data gap 2d"}},
	} {
		now, s := noon(), alert.State{}
		for i, l := range looks {
			now = now.Add(l.after)
			s.Send = ""
			s = alert.Step(s, l.verdict, now, holdFor, every)
			phase := s.Phase
			assert.Equal(t, l.phase, phase, "%s, look %d", name, i)
			assert.Equal(t, l.event, s.Send, "%s, look %d", name, i)
			if l.says != "" {
				assert.Equal(t, l.says, s.Describe(now, holdFor), "%s, look %d", name, i)
			}
		}
	}
}

// world is a store with a clock of its own, and people who are notified.
type world struct {
	mu   sync.Mutex
	now  time.Time
	docs store.DocStore
	sent []string
	fail error
	left []string // by a send that fails
}

func newWorld() *world {
	w := &world{now: noon()}
	w.docs = store.Memory(func() time.Time {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.now
	})
	return w
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) send(_ context.Context, a alert.Alert) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return w.left, w.fail
	}
	w.sent = append(w.sent, strings.Join(append([]string{a.Rule.ID, string(a.Changed)}, a.State.Left...), " "))
	return nil, nil
}

// active is a provider with so many running sandboxes; nothing else of it is known.
func active(n int64) []check.Subject {
	return []check.Subject{{Provider: "prod", Figures: triage.FleetSignals{Active: &n}, Limits: triage.DefaultThresholds()}}
}

func (w *world) evaluate(t *testing.T, n int64) {
	t.Helper()
	require.NoError(t, w.notify(t, n, w.send))
}

// notify is one process: it evaluates, and sends.
func (w *world) notify(t *testing.T, n int64, send alert.Send) error {
	t.Helper()
	all, err := alert.Evaluate(t.Context(), w.docs, active(n))
	return errors.Join(err, alert.Deliver(t.Context(), w.docs, all, send))
}

// TestAlertManyProcessesNotifyOnce: "active > 50 for 30 min" evaluated by four processes at once, each
// with a state of its own in memory and one store.
func TestAlertManyProcessesNotifyOnce(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for range 10 {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { _ = w.notify(t, 51, w.send) }) // one may lose every race
		}
		all.Wait()
		w.pass(5 * time.Minute)
	}
	assert.ElementsMatch(t, []string{"sandbox_leak_detected fired", "active_escalated fired"}, w.sent)
	w.sent = nil
	for range 3 {
		w.evaluate(t, 4)
		w.pass(time.Minute)
	}
	assert.ElementsMatch(t, []string{"sandbox_leak_detected recovered", "active_escalated recovered"}, w.sent)
}

// TestAlertANotificationThatFailsIsSentAgain, after a minute and once.
func TestAlertANotificationThatFailsIsSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.evaluate(t, 21)
	w.pass(5 * time.Minute)
	w.fail = errors.New("503")
	require.ErrorContains(t, w.notify(t, 21, w.send), "503")
	w.fail = nil
	w.pass(30 * time.Second)
	w.evaluate(t, 21)
	assert.Empty(t, w.sent, "the first process may still send")
	w.pass(31 * time.Second)
	w.evaluate(t, 21)
	w.evaluate(t, 21)
	assert.Equal(t, []string{"sandbox_leak_detected fired"}, w.sent)

	// where only some services fail, the others do not get it again
	w.sent, w.fail, w.left = nil, errors.New("503"), []string{"webhook"}
	w.pass(time.Minute)
	require.ErrorContains(t, w.notify(t, 4, w.send), "503")
	w.fail = nil
	w.pass(time.Minute)
	w.evaluate(t, 4)
	assert.Equal(t, []string{"sandbox_leak_detected recovered webhook"}, w.sent)
}

// TestAlertFollow: trouble without a rule begins and ends once, also where several processes see it.
func TestAlertFollow(t *testing.T) {
	t.Parallel()
	w := newWorld()
	var events []alert.Event
	send := func(_ context.Context, event alert.Event, _ []string) ([]string, error) {
		events = append(events, event)
		return nil, nil
	}
	for _, v := range []sandbox.Verdict{sandbox.False, sandbox.True, sandbox.True, sandbox.Unknown, sandbox.False, sandbox.False, sandbox.True} {
		require.NoError(t, alert.Follow(t.Context(), w.docs, "host-1/cleanup stuck", v, send))
		w.pass(time.Hour)
	}
	assert.Equal(t, []alert.Event{alert.EventFired, alert.EventRecovered, alert.EventFired}, events)
	none, err := alert.Read(t.Context(), w.docs, func(string) (triage.Thresholds, bool) { return triage.DefaultThresholds(), true })
	require.NoError(t, err)
	assert.Empty(t, none, "it is no rule")
}

// TestAlertRead gives what is open, of the profiles that are asked about.
func TestAlertRead(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.evaluate(t, 51)
	w.pass(8 * time.Minute)
	w.evaluate(t, 51)
	w.pass(12 * time.Minute)
	w.evaluate(t, 51)
	w.pass(10 * time.Minute)
	read := func(asked bool) (said []string) {
		all, err := alert.Read(t.Context(), w.docs, func(string) (triage.Thresholds, bool) { return triage.DefaultThresholds(), asked })
		require.NoError(t, err)
		for _, a := range all {
			said = append(said, a.Describe())
		}
		return said
	}
	assert.Equal(t, []string{"sandbox_leak_detected at prod: firing for 30m", "active_escalated at prod: pending for 18m of 30m, data gap 12m"}, read(true))
	assert.Empty(t, read(false))
}

// TestAlertThatFiresStaysBesideANewNote: a leak that has stood above a default limit for a day has not recovered. What
// has never fired does not begin.
func TestAlertThatFiresStaysBesideANewNote(t *testing.T) {
	t.Parallel()
	for name, fired := range map[string]bool{"fired before": true, "new": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			for range 3 {
				if fired {
					w.evaluate(t, 30)
				}
				w.pass(3 * time.Minute)
			}
			before := len(w.sent)
			assert.Equal(t, fired, before == 1, "%v", w.sent)
			days := active(30)
			days[0].Figures.OverFor = triage.OverFor{Active: 48 * time.Hour, Normal: 48 * time.Hour}
			all, err := alert.Evaluate(t.Context(), w.docs, days)
			require.NoError(t, errors.Join(err, alert.Deliver(t.Context(), w.docs, all, w.send)))
			assert.Len(t, w.sent, before, "nothing has recovered, and nothing fires: %v", w.sent)
			for _, a := range all {
				assert.NotContains(t, a.Evidence, "", a.Rule.ID)
			}
			w.pass(time.Minute)
			w.evaluate(t, 3)
			assert.Equal(t, fired, slices.Contains(w.sent, "sandbox_leak_detected recovered"), "%v", w.sent)
		})
	}
}

// TestAlertARecoveryNeverOvertakes the alert that another process is sending.
func TestAlertARecoveryNeverOvertakes(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.evaluate(t, 21)
	w.pass(5 * time.Minute)
	sending := func(ctx context.Context, a alert.Alert) ([]string, error) {
		if a.Rule.ID != "sandbox_leak_detected" {
			return nil, nil
		}
		w.pass(10 * time.Second)
		w.evaluate(t, 4) // another process sees the end of it meanwhile
		return w.send(ctx, a)
	}
	require.NoError(t, w.notify(t, 21, sending))
	assert.Equal(t, []string{"sandbox_leak_detected fired"}, w.sent)
	w.pass(time.Second)
	w.evaluate(t, 4)
	w.evaluate(t, 4)
	assert.Equal(t, []string{"sandbox_leak_detected fired", "sandbox_leak_detected recovered"}, w.sent)
}

// TestAlertEventsAlternate over random looks, gaps, failures and processes that die while they send.
func TestAlertEventsAlternate(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		rng, w := rand.New(rand.NewPCG(seed, 7)), newWorld()
		var fired []string
		send := func(_ context.Context, a alert.Alert) ([]string, error) {
			if a.Rule.ID != "sandbox_leak_detected" {
				return nil, nil
			}
			if rng.Float64() < 0.2 {
				fired = append(fired, "died") // it may have been sent or not
				return nil, errors.New("died")
			}
			fired = append(fired, string(a.Changed))
			return nil, nil
		}
		n := int64(4)
		for range 60 {
			if rng.Float64() < 0.3 {
				n = 25 - n // 4 or 21
			}
			w.pass(time.Duration(rng.Int64N(int64(20 * time.Minute))))
			_ = w.notify(t, n, send) // a send that fails is tried again
		}
		for range 3 { // it ends calm
			w.pass(2 * time.Minute)
			require.NoError(t, w.notify(t, 4, func(_ context.Context, a alert.Alert) ([]string, error) {
				if a.Rule.ID == "sandbox_leak_detected" {
					fired = append(fired, string(a.Changed))
				}
				return nil, nil
			}))
		}
		for i, event := range fired {
			if i > 0 && event != "died" {
				assert.NotEqual(t, event, fired[i-1], "seed %d: %v", seed, fired)
			}
		}
		if len(fired) > 0 {
			assert.Equal(t, "recovered", fired[len(fired)-1], "seed %d: nothing stays open: %v", seed, fired)
		}
	}
}

// TestAlertABrokenStateBeginsAgain, and a store that is gone is an error.
func TestAlertABrokenStateBeginsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld()
	_, err := w.docs.SwapDoc(t.Context(), store.Doc{Kind: "alert", Key: "sandbox_leak_detected/prod", Body: []byte("{")})
	require.NoError(t, err)
	w.evaluate(t, 21)
	w.pass(6 * time.Minute)
	w.evaluate(t, 21)
	assert.Equal(t, []string{"sandbox_leak_detected fired"}, w.sent)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = alert.Evaluate(ctx, w.docs, active(21))
	require.Error(t, err)
}

// TestAlertAProcessThatDiesBeforeItHasSent: another one sends after a minute.
func TestAlertAProcessThatDiesBeforeItHasSent(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.evaluate(t, 21)
	w.pass(5 * time.Minute)
	_, err := alert.Evaluate(t.Context(), w.docs, active(21)) // nothing after the claim happens
	require.NoError(t, err)
	w.pass(59 * time.Second)
	w.evaluate(t, 21)
	assert.Empty(t, w.sent, "it may still send")
	w.pass(time.Second)
	w.evaluate(t, 21)
	w.evaluate(t, 21)
	assert.Equal(t, []string{"sandbox_leak_detected fired"}, w.sent)
}

// TestAlertAnAnswerThatTakesLong to be shown: the claim is renewed before the sending, unless
// another process has taken over meanwhile.
func TestAlertAnAnswerThatTakesLong(t *testing.T) {
	t.Parallel()
	for _, takenOver := range []bool{false, true} {
		w := newWorld()
		w.evaluate(t, 21)
		w.pass(5 * time.Minute)
		all, err := alert.Evaluate(t.Context(), w.docs, active(21))
		require.NoError(t, err)
		w.pass(10 * time.Minute) // somebody reads the first page
		if takenOver {
			w.evaluate(t, 21)
			assert.Equal(t, []string{"sandbox_leak_detected fired"}, w.sent)
		}
		require.NoError(t, alert.Deliver(t.Context(), w.docs, all, func(ctx context.Context, a alert.Alert) ([]string, error) {
			w.pass(30 * time.Second)
			w.evaluate(t, 21)
			return w.send(ctx, a)
		}))
		assert.Equal(t, []string{"sandbox_leak_detected fired"}, w.sent, "taken over: %v", takenOver)
	}
}
