package ops_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/check"
	"sbx/internal/cleanup"
	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/notify"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/ops/launch"
	"sbx/internal/ops/look"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/opstest"
)

// listener receives what the notification services would.
type listener struct {
	*httptest.Server

	mu     sync.Mutex
	got    map[string][]string // bodies by path
	refuse map[string]int      // how many requests of a path are answered 500 first
}

func newListener(t *testing.T) *listener {
	t.Helper()
	l := &listener{got: map[string][]string{}, refuse: map[string]int{}}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.refuse[r.URL.Path] > 0 {
			l.refuse[r.URL.Path]--
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		l.got[r.URL.Path] = append(l.got[r.URL.Path], string(body))
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *listener) refuseNext(path string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse[path] = n
}

func received[T any](t *testing.T, l *listener, path string) []T {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []T
	for _, body := range l.got[path] {
		var one T
		require.NoError(t, json.Unmarshal([]byte(body), &one))
		all = append(all, one)
	}
	return all
}

type hookMessage struct {
	Kind, Alert, Host, Severity, Level, Key, Title, Text string

	Next  []string
	More  int `json:"more_items"`
	Items []struct{ Ref string }
}

type incident struct {
	Action string `json:"event_action"`
	Dedup  string `json:"dedup_key"`
}

// said are the messages of alerts that the webhook got: "active_escalated alert host-1".
func (l *listener) said(t *testing.T) (list []string) {
	t.Helper()
	for _, m := range received[hookMessage](t, l, "/hook") {
		list = append(list, strings.TrimSpace(m.Alert+" "+m.Kind+" "+m.Host))
	}
	return list
}

// clockSite is a site with a clock of its own, whose processes notify a listener.
type clockSite struct {
	*site

	mu  sync.Mutex
	now time.Time
	to  *listener
}

func newClockSite(t *testing.T, settings string, fakes ...*fake.Provider) *clockSite {
	t.Helper()
	return &clockSite{site: newSite(t, settings, fakes...), now: time.Now(), to: newListener(t)}
}

func (c *clockSite) clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clockSite) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// start is a process on a host: each opens the store anew.
func (c *clockSite) start(t *testing.T, host string, r ops.Reporter) *ops.Env {
	t.Helper()
	c.mu.Lock()
	env := c.env(t, r)
	c.mu.Unlock()
	env.Process.Now, env.Process.Host = c.clock, host
	env.Store = func(bool) (store.Store, error) { return store.New(store.Options{StateDir: c.dir, Now: c.clock}) }
	env.Notifier = opstest.Notifying(notify.Targets{WebhookURL: c.to.URL + "/hook", PagerDutyKey: "key", PagerDutyURL: c.to.URL})
	return env
}

// verify is a process that verifies, and ends.
func (c *clockSite) verify(t *testing.T, host string) *look.VerifyResult {
	t.Helper()
	r := &recorder{}
	env := c.start(t, host, r)
	result, err := look.Verify(t.Context(), env, look.VerifyRequest{}, r)
	require.NoError(t, err)
	env.SendNotifications(t.Context())
	assert.Empty(t, r.warnings)
	return result
}

// crowd is a provider with so many young sandboxes, which are at work as far as anybody knows.
func crowd(n int) *fake.Provider {
	p := fake.New(fake.Options{Name: "prod"})
	p.Add(crowdSeeds(0, n)...)
	return p
}

func crowdSeeds(from, to int) []fake.Seed {
	var ids []string
	for i := from; i < to; i++ {
		ids = append(ids, "box"+string(rune('a'+i/26))+string(rune('a'+i%26))+"001")
	}
	list := seeds(ids...)
	for i := range list {
		list[i].Sandbox.CreatedAt, list[i].Sandbox.StartedAt = time.Now(), time.Now()
	}
	return list
}

const calm = "providers:\n  prod: {type: fake, owned: all}\nlaunch: prod\nthresholds: {stuck_age: 24h}\n"

// TestAlertOverRestarts is "active > 50 for 30 min": processes that come and go, on several hosts
// and two at once, with a gap in between, notify once that it holds and once that it is over, and
// resolve what they opened.
func TestAlertOverRestarts(t *testing.T) {
	t.Parallel()
	c := newClockSite(t, calm, crowd(51))
	for range 2 { // 8 minutes
		assert.Len(t, c.verify(t, "host-1").Alerts, 2)
		c.pass(4 * time.Minute)
	}
	c.verify(t, "host-2")
	c.pass(12 * time.Minute) // nobody looks
	c.verify(t, "host-1")
	c.pass(10 * time.Minute)
	open := c.verify(t, "host-1").Alerts
	require.Len(t, open, 2)
	assert.Equal(t, "active_escalated at prod: pending for 18m of 30m, data gap 12m", open[1].Describe())
	assert.Equal(t, []string{"sandbox_leak_detected alert host-2"}, c.to.said(t))
	c.pass(10 * time.Minute)
	c.verify(t, "host-1")
	c.pass(2 * time.Minute)
	var two sync.WaitGroup
	for _, host := range []string{"host-1", "host-2", "host-3"} {
		two.Go(func() { c.verify(t, host) })
	}
	two.Wait()
	c.pass(3 * time.Minute)
	c.verify(t, "host-3")
	said := c.to.said(t)
	require.Len(t, said, 2)
	assert.Contains(t, said[1], "active_escalated alert ")
	message := received[hookMessage](t, c.to, "/hook")[1]
	assert.Equal(t, []string{"critical", "infrastructure", "alert/active_escalated/prod"}, []string{message.Severity, message.Level, message.Key})
	assert.Contains(t, message.Text, "51 active, limit 50")
	assert.Contains(t, message.Text, "firing for 30m, data gap 12m")
	assert.Contains(t, message.Text, "first to act: the infrastructure team")
	assert.Equal(t, []string{"sbx cleanup --stuck --provider prod"}, message.Next)

	c.fakes[0] = crowd(4)
	for range 3 {
		c.verify(t, "host-2")
		c.pass(time.Minute)
	}
	assert.Subset(t, c.to.said(t), []string{"sandbox_leak_detected recovered host-2", "active_escalated recovered host-2"})
	assert.Len(t, c.to.said(t), 4, "once each")
	c.assertResolved(t, "active_escalated")
	c.assertResolved(t, "sandbox_leak_detected")
}

// assertResolved: PagerDuty's event ends what was opened.
func (c *clockSite) assertResolved(t *testing.T, rule string) {
	t.Helper()
	var actions []string
	for _, e := range received[incident](t, c.to, "/v2/enqueue") {
		if e.Dedup == "sbx/alert/"+rule+"/prod" {
			actions = append(actions, e.Action)
		}
	}
	assert.Equal(t, []string{"trigger", "resolve"}, actions, rule)
}

// TestAlertServiceThatFails: the others do not get it again, and it gets it after a minute.
func TestAlertServiceThatFails(t *testing.T) {
	t.Parallel()
	c := newClockSite(t, calm, crowd(21))
	c.verify(t, "host-1")
	c.pass(5 * time.Minute)
	c.to.refuseNext("/hook", 1)
	r := &recorder{}
	env := c.start(t, "host-1", r)
	_, err := look.Verify(t.Context(), env, look.VerifyRequest{}, r)
	require.NoError(t, err)
	assert.Empty(t, r.warnings, "the answer waits for no service")
	env.SendNotifications(t.Context())
	require.Len(t, r.warnings, 1)
	assert.Contains(t, r.warnings[0], "500")
	assert.Empty(t, c.to.said(t))
	assert.Len(t, received[incident](t, c.to, "/v2/enqueue"), 1)
	c.pass(30 * time.Second)
	c.verify(t, "host-2")
	assert.Empty(t, c.to.said(t), "the first process may still send")
	c.pass(31 * time.Second)
	c.verify(t, "host-2")
	c.verify(t, "host-3")
	assert.Equal(t, []string{"sandbox_leak_detected alert host-2"}, c.to.said(t))
	assert.Len(t, received[incident](t, c.to, "/v2/enqueue"), 1, "it has got it")
}

// TestAlertWithoutAStore: a verb answers as before, and warns once.
func TestAlertWithoutAStore(t *testing.T) {
	t.Parallel()
	c := newClockSite(t, calm, crowd(51))
	r := &recorder{}
	env := c.start(t, "host-1", r)
	env.Store = func(bool) (store.Store, error) { return nil, assert.AnError }
	for range 2 {
		result, err := look.Verify(t.Context(), env, look.VerifyRequest{}, r)
		require.NoError(t, err)
		assert.Len(t, result.Checks, 5)
		assert.Empty(t, result.Alerts)
	}
	assert.Equal(t, []string{"an alert could not be stored or sent; the next run tries again: " + assert.AnError.Error()}, r.warnings)
}

func stuckRule() cleanup.Rule { return cleanup.Rule{Selector: selector.Selector{Stuck: true}} }

// TestAlertOfARun: a cleanup that fails tells each time, the good one after it sends recovered
// once, and a plan evaluates nothing.
func TestAlertOfARun(t *testing.T) {
	t.Parallel()
	c := newClockSite(t, calm, crowd(21))
	run := func(broken bool, plan bool) {
		if c.fakes[0] = crowd(4); broken {
			c.fakes[0].Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "away")})
		}
		r := &recorder{}
		env := c.start(t, "host-1", r)
		if plan {
			_, _ = end.PlanCleanup(t.Context(), env, end.CleanupRequest{Rule: stuckRule()}, r)
			return
		}
		_, _ = end.Cleanup(t.Context(), env, end.CleanupRequest{Rule: stuckRule(), Yes: true, Wait: time.Second}, r)
		env.SendNotifications(t.Context())
	}
	for i, said := range [][]string{{"failed host-1"}, {"failed host-1"}, {"failed host-1", "cleanup_failing alert host-1"}, {"failed host-1"}} {
		before := len(c.to.said(t))
		run(true, false)
		assert.ElementsMatch(t, said, c.to.said(t)[before:], "run %d", i)
		c.pass(5 * time.Minute)
	}
	run(false, true)
	assert.Len(t, c.to.said(t), 5)
	run(false, false)
	run(false, false)
	assert.ElementsMatch(t, []string{"recovered host-1", "cleanup_failing recovered host-1"}, c.to.said(t)[5:])
}

// TestAGoodRunElsewhereIsNoRecovery: what began at one profile, or by one rule, does not end by a good
// run at another profile or by another rule; the same run does end it.
func TestAGoodRunElsewhereIsNoRecovery(t *testing.T) {
	t.Parallel()
	good, bad := fake.New(fake.Options{Name: "prod"}), fake.New(fake.Options{Name: "other"})
	c := newClockSite(t, oneProfile, good, bad)
	run := func(rule cleanup.Rule, only ...string) {
		if c.fakes = []*fake.Provider{good, bad}; len(only) > 0 {
			c.fakes = c.fakes[:1]
		}
		r := &recorder{}
		env := c.start(t, "host-1", r)
		load := env.Config
		env.Config = func() (*config.Config, error) {
			read, err := load()
			if err == nil {
				other := read.Profiles[0]
				other.Name = "other"
				read.Profiles, read.Use = append(read.Profiles, other), only
			}
			return read, err
		}
		_, err := end.Cleanup(t.Context(), env, end.CleanupRequest{Rule: rule, Yes: true, Wait: time.Second}, r)
		require.NoError(t, err)
		env.SendNotifications(t.Context())
		c.pass(5 * time.Minute)
	}
	bad.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "away")})
	run(stuckRule())
	require.Len(t, c.to.said(t), 1)
	bad.Mend()
	run(stuckRule(), "prod")
	run(tenMinutes().Rule)
	require.Len(t, c.to.said(t), 1, "the same has not succeeded yet")
	run(stuckRule())
	assert.Equal(t, "recovered host-1", c.to.said(t)[1])
}

// TestAlertOfRecords: two records that contradict what runs are told by reconcile --check, with
// the sandboxes, and not by a plan.
func TestAlertOfRecords(t *testing.T) {
	t.Parallel()
	c := newClockSite(t, oneProfile, prod("live0001"))
	st := c.store(t)
	at := time.Now().Add(-time.Hour)
	for _, id := range []string{"live0001", "young001", "label001", "gone0001", "gone0002"} {
		require.NoError(t, st.PutRecord(t.Context(), store.Record{Provider: "prod", ID: id, State: "running", CreatedAt: at, UpdatedAt: at}))
	}
	require.NoError(t, st.Close())
	compare := func(check bool) {
		r := &recorder{}
		env := c.start(t, "host-1", r)
		_, err := end.Reconcile(t.Context(), env, end.ReconcileRequest{Records: "store", Check: check, Textfile: "sbx.prom", Rules: reconcile.Rules{
			Observations: reconcile.DefaultObservations, Grace: reconcile.DefaultGrace, CreateGrace: reconcile.DefaultCreateGrace,
			RecordsAge: reconcile.DefaultRecordsAge, Observe: check,
		}}, r)
		require.NoError(t, err)
		env.SendNotifications(t.Context())
	}
	compare(false)
	assert.Empty(t, c.to.said(t))
	for range 3 {
		compare(true)
		c.pass(6 * time.Minute)
	}
	assert.ElementsMatch(t, []string{"found host-1", "state_corruption alert host-1", "found host-1", "found host-1"}, c.to.said(t))
	for _, m := range received[hookMessage](t, c.to, "/hook") {
		assert.Len(t, m.Items, 2, m.Kind)
	}
	text, err := os.ReadFile(filepath.Join(c.dir, "sbx.prom"))
	require.NoError(t, err)
	for _, line := range []string{
		`sbx_alert{layer="reconcile",provider="prod",rule="state_corruption",severity="critical"} 1`,
		`sbx_alert{layer="reconcile",provider="prod",rule="orphans_found",severity="warning"} 0`,
		`sbx_reconcile_rows{class="record_only",layer="reconcile",provider="prod"} 2`,
		`sbx_reconcile_found{layer="reconcile",provider="prod"} 2`,
		`sbx_reconcile_exit_code{layer="reconcile"} 10`,
	} {
		assert.Contains(t, string(text), line+"\n")
	}
	assert.NotContains(t, string(text), "sandbox_leak_detected", "this verb does not know how many run")
}

// TestAlertWords: the words of the configuration are those of the rules and services.
func TestAlertWords(t *testing.T) {
	t.Parallel()
	assert.Equal(t, notify.Services(), config.NotifyServices())
	assert.Equal(t, notify.Severities(), config.NotifySeverities())
	for _, rule := range check.Alerts() {
		assert.Contains(t, config.NotifyLevels(), string(rule.Level))
		assert.Contains(t, config.NotifySeverities(), string(rule.Severity))
	}
}

// TestAlertOfATask: a task that failed tells once, and one that was stopped or completed, or that a
// person watches, tells nobody.
func TestAlertOfATask(t *testing.T) {
	t.Parallel()
	c := newClockSite(t, oneProfile)
	end := func(state task.State, tty bool) {
		r := &recorder{}
		env := c.start(t, "host-1", r)
		if tty {
			r.answer = func(ops.Question) bool { return true }
		}
		ended := task.Task{ID: "t-" + string(state), State: state, Attempts: []task.Attempt{{N: 1, Provider: "prod", Sandbox: "box1", Exit: &task.Exit{Class: sandbox.ClassOOM, Cause: sandbox.CauseOOM}}}}
		_, err := launch.RunControlled(t.Context(), env, r, task.Ledger{}, task.Task{}, func() (task.Task, error) { return ended, nil })
		require.NoError(t, err)
		env.SendNotifications(t.Context())
		assert.Empty(t, r.warnings)
	}
	end(task.Completed, false)
	end(task.Stopped, false)
	end(task.Failed, true)
	assert.Empty(t, c.to.said(t))
	end(task.Failed, false)
	end(task.TimedOut, false)
	assert.Equal(t, []string{"failed host-1", "failed host-1"}, c.to.said(t))
	m := received[hookMessage](t, c.to, "/hook")[0]
	assert.Equal(t, []string{"warning", "task t-failed"}, []string{m.Severity, m.Key})
	assert.Equal(t, "prod/box1", m.Items[0].Ref)
	assert.Equal(t, []string{"sbx tasks show t-failed"}, m.Next)
}

// TestAlertOfABatch: the tasks of one process that failed make one message, with those that nobody
// has told of because their process died.
func TestAlertOfABatch(t *testing.T) {
	t.Parallel()
	c := newClockSite(t, oneProfile)
	r := &recorder{}
	env := c.start(t, "host-1", r)
	for i := range 30 {
		ended := task.Task{ID: fmt.Sprintf("t-failed%02d", i), State: task.Failed, Attempts: []task.Attempt{{N: 1, Provider: "prod", Sandbox: "box1", Exit: &task.Exit{Class: sandbox.ClassOOM, Cause: sandbox.CauseOOM}}}}
		_, err := launch.RunControlled(t.Context(), env, r, task.Ledger{}, task.Task{}, func() (task.Task, error) { return ended, nil })
		require.NoError(t, err)
	}
	env.SendNotifications(t.Context())
	env.SendNotifications(t.Context())
	sent := received[hookMessage](t, c.to, "/hook")
	require.Len(t, sent, 1)
	assert.Equal(t, "sbx: 30 tasks failed", sent[0].Title)
	assert.Len(t, sent[0].Items, 20)
	assert.Equal(t, 10, sent[0].More)
	assert.Equal(t, []string{"sbx tasks --state failed,timed_out", "sbx tasks show t-failed00"}, sent[0].Next)
}

// TestAlertOfATaskThatAnotherProcessSettles: its own process died before it could tell anybody.
func TestAlertOfATaskThatAnotherProcessSettles(t *testing.T) {
	t.Parallel()
	c := newClockSite(t, oneProfile, fake.New(fake.Options{Name: "prod"}))
	r := &recorder{answer: func(ops.Question) bool { return true }}
	env := c.start(t, "host-1", r)
	f, err := env.Only(t.Context())
	require.NoError(t, err)
	require.NoError(t, env.WithTasks(t.Context(), ops.TaskParts{Fleet: f}, func(st store.Store, o task.Options) error {
		work := task.New("t-k3v9x2mq7abc", "", task.Spec{Provider: "prod", Command: []string{"true"}, Attempts: 1, Limits: task.Limits{Deadline: time.Minute}}, task.Owner{Host: "host-1", PID: 7, Who: "ann"}, c.clock())
		_, _, err := task.Ledger{Store: st}.Add(t.Context(), work)
		require.NoError(t, err)
		c.pass(time.Hour)
		o.Alive = func(task.Owner) sandbox.Verdict { return sandbox.False }
		env.SweepTasks(t.Context(), r, o)
		env.SweepTasks(t.Context(), r, o)
		return nil
	}))
	env.SendNotifications(t.Context())
	sent := received[hookMessage](t, c.to, "/hook")
	require.Len(t, sent, 1, "%v %v", r.notes, r.warnings)
	assert.Equal(t, "task t-k3v9x2mq7abc", sent[0].Key)
}
