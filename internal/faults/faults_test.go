package faults_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/wiretest"
)

// limit is the limit of each verb, and bound the time by which it must return: for an end, with its
// verification.
const (
	limit = 2 * time.Minute
	wait  = 10 * time.Second
	most  = 3 // requests that change something, where each was answered with 429
)

// verb is one use of a provider, with the routes of its faults.
type verb struct {
	name string
	at   func(c *cloud) (route, contains string)
	run  func(ctx context.Context, t wiretest.T, c *cloud, r row)
}

func verbs() []verb {
	route := func(of func(*cloud) string) func(*cloud) (string, string) {
		return func(c *cloud) (string, string) { return of(c), "" }
	}
	look := func(name string, call func(context.Context, wiretest.T, *cloud) error) verb {
		return verb{name, func(c *cloud) (string, string) { return c.inside[name], "" }, func(ctx context.Context, t wiretest.T, c *cloud, r row) {
			r.judge(t, c, call(ctx, t, c))
		}}
	}
	return []verb{
		{"list", route(func(c *cloud) string { return c.list }), listed},
		{"page 2", func(c *cloud) (string, string) {
			if c.second == "" {
				return "", ""
			}
			return c.list, c.second
		}, listed},
		{"get", route(func(c *cloud) string { return c.get }), got},
		{"stop", route(func(c *cloud) string { return c.stop }), ended(false)},
		{"delete", route(func(c *cloud) string { return c.destroy }), ended(true)},
		{"stop, the looks after it", route(func(c *cloud) string { return c.get }), endedThen(false)},
		{"delete, the looks after it", route(func(c *cloud) string { return c.get }), endedThen(true)},
		{"create", route(func(c *cloud) string { return c.create }), created},
		look("usage", used), look("logs", logged), look("exit", exited), look("exec", executed),
	}
}

// TestFaults runs every verb of every provider with every fault. Each test run plays a part of the
// pairs; SBX_FAULTS=all plays all of them (.ci/run faults).
func TestFaults(t *testing.T) {
	t.Parallel()
	all, part := os.Getenv("SBX_FAULTS") == "all", 0
	var pairs atomic.Int64 // that a provider has the verb for
	t.Cleanup(func() {
		t.Logf("faults: %d pairs", pairs.Load())
		assert.Positive(t, pairs.Load())
	})
	for _, name := range slices.Sorted(maps.Keys(clouds())) {
		for _, v := range verbs() {
			for _, r := range table() {
				if !v.plays(r) {
					continue
				}
				if part++; !all && part%17 != 0 {
					continue
				}
				bubble.Run(t, name+", "+v.name+", "+r.name, func(t *testing.T) {
					if play(t.Context(), t, clouds()[name](t), v, r) {
						pairs.Add(1)
					}
				})
			}
		}
	}
}

// plays says whether a fault applies to a verb.
func (v verb) plays(r row) bool {
	before, _, after := strings.Cut(v.name, ", the looks")
	if after { // only what stands in front of a request
		return r.set == nil && (r.on == nil || slices.Contains(r.on, "get")) && before != ""
	}
	return r.on == nil || slices.Contains(r.on, v.name)
}

// play runs a verb with a fault; false where the provider lacks the verb.
func play(ctx context.Context, t wiretest.T, c *cloud, v verb, r row) bool {
	t.Helper()
	route, contains := v.at(c)
	if route == "" {
		return false
	}
	if slices.Contains([]string{"logs", "exit"}, v.name) && c.create != "" {
		c.launch(ctx, t)
	}
	r.stand(c, v, route, contains)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	v.run(ctx, t, c, r)
	assert.LessOrEqual(t, time.Since(began), limit+wiretest.Overrun(v.name), "it waits for ever")
	assert.Less(t, c.server.Flooded(), int64(64<<20), "it reads without an end")
	c.server.Heal()
	if closer, ok := c.p.(interface{ Close() }); ok {
		closer.Close()
	}
	return true
}

// stand adds the fault to a route.
func (r row) stand(c *cloud, v verb, route, contains string) {
	if r.set != nil {
		r.set(c)
		return
	}
	f := r.make(c)
	if f.Route = route; strings.HasPrefix(r.name, "a clock") {
		f.Route = "" // one clock stands before all of the API
	}
	f.Contains = cmp.Or(f.Contains, contains)
	if strings.HasSuffix(v.name, "the looks after it") {
		f.Past = c.stop
		if strings.HasPrefix(v.name, "delete") {
			f.Past = c.destroy
		}
	}
	c.server.Break(f)
}

// launch makes a sandbox with a program that ends.
func (c *cloud) launch(ctx context.Context, t wiretest.T) {
	t.Helper()
	launcher, ok := c.p.(providers.Launcher)
	require.True(t, ok)
	made, err := launcher.Create(ctx, sandbox.Spec{Command: []string{"sh", "-c", "echo some words; exit 3"}})
	require.NoError(t, err)
	c.id = made.ID
	exits, ok := c.p.(providers.ExitReader)
	require.True(t, ok)
	for range 200 { // each look is a real process, and takes its time
		if exit, err := exits.Exit(ctx, c.id); err == nil && exit != nil {
			return
		}
	}
	t.Errorf("its program does not end")
}

// judge compares the result of a verb with what the fault allows.
func (r row) judge(t wiretest.T, c *cloud, err error) {
	t.Helper()
	if err == nil {
		assert.True(t, r.pass || r.must, "it succeeds, and there was no answer")
		return
	}
	assert.False(t, r.must, "one trouble that passes ends it: %v", err)
	assert.Contains(t, r.may, fault.KindOf(err), "%v", err)
	c.masked(t, err)
	wiretest.CheckPlace(t, err)
	var f *fault.Error
	if r.wait > 0 && assert.ErrorAs(t, err, &f) {
		assert.Equal(t, r.wait, f.RetryAfter, "when to try again: %v", err)
	}
}

func (c *cloud) masked(t wiretest.T, err error) {
	t.Helper()
	c.hidden(t, err.Error()+fault.HintOf(err))
	assert.NotContains(t, err.Error()+fault.HintOf(err), "user:word", "it quotes a password")
}

// hidden checks that a text does not quote the key.
func (c *cloud) hidden(t wiretest.T, text string) {
	t.Helper()
	if c.secret != "" {
		assert.NotContains(t, text, c.secret, "it quotes the key")
	}
}

// listed checks that a complete list has each sandbox once, and that any other list is an error.
func listed(ctx context.Context, t wiretest.T, c *cloud, r row) {
	t.Helper()
	seen := map[string]int{}
	var failed error
	for s, err := range c.p.List(ctx, providers.Query{}) {
		if failed = errors.Join(failed, err); err == nil {
			seen[s.ID]++
		}
	}
	for id, n := range seen {
		assert.Equal(t, 1, n, "%s comes %d times", id, n)
		assert.True(t, c.runs(id), "%s is nobody", id)
	}
	if failed == nil {
		assert.Len(t, seen, c.count(), "a part passes for the whole")
	}
	if failed != nil && r.name == "404" {
		assert.NotEqual(t, fault.KindNotFound, fault.KindOf(failed), "no list is no missing sandbox")
	}
	r.judge(t, c, failed)
	c.skew(t, r)
}

// skew checks that a wrong clock is measured.
func (c *cloud) skew(t wiretest.T, r row) {
	t.Helper()
	_, text, is := strings.Cut(r.name, "a clock that is off by ")
	if !is {
		return
	}
	off, err := time.ParseDuration(text)
	require.NoError(t, err)
	clock, ok := c.p.(providers.Clock)
	require.True(t, ok)
	ahead, known := clock.Skew()
	assert.True(t, known)
	assert.InDelta(t, off.Seconds(), ahead.Seconds(), 2)
}

func got(ctx context.Context, t wiretest.T, c *cloud, r row) {
	t.Helper()
	s, err := c.p.Get(ctx, c.id)
	if err == nil {
		assert.Equal(t, c.id, s.ID, "an answer about another")
		assert.Equal(t, sandbox.StateRunning, s.State)
	}
	if fault.KindOf(err) == fault.KindGone {
		assert.True(t, c.gone, "the API never documents 410")
	}
	r.judge(t, c, err)
	c.skew(t, r)
}

// ended ends a sandbox as the verbs of sbx do; the faults affect the request.
func ended(destroy bool) func(context.Context, wiretest.T, *cloud, row) {
	return func(ctx context.Context, t wiretest.T, c *cloud, r row) {
		t.Helper()
		out := c.end(ctx, t, destroy)
		c.truth(t, r, out)
		if r.outcome != nil && c.runs(c.id) { // a stop before it may have ended the machine
			assert.Contains(t, r.outcome, string(out.Outcome), "%s", out.Reason)
		}
	}
}

// endedThen is ended with the faults in the reads that follow.
func endedThen(destroy bool) func(context.Context, wiretest.T, *cloud, row) {
	return func(ctx context.Context, t wiretest.T, c *cloud, r row) {
		t.Helper()
		r.must = false // what passes may take all the time that there is for looking
		out := c.end(ctx, t, destroy)
		c.truth(t, r, out)
		if r.name == "500" { // it was accepted, and the record tells nothing
			assert.Equal(t, sandbox.OutcomeAccepted, out.Outcome, "%s", out.Reason)
		}
	}
}

func (c *cloud) end(ctx context.Context, t wiretest.T, destroy bool) sandbox.Ending {
	t.Helper()
	f := fleet.New([]fleet.Member{{Provider: c.p}}, fleet.Options{})
	target, err := c.p.Get(ctx, c.id)
	require.NoError(t, err)
	var last sandbox.Ending
	for e := range f.Terminate(ctx, []sandbox.Sandbox{target}, fleet.EndOptions{Delete: destroy, Wait: wait, By: "test"}) {
		last = e
	}
	return last
}

// truth compares the outcome of an end with the state of the machine: a running sandbox must not be
// reported as ended, and an end must not be requested twice.
func (c *cloud) truth(t wiretest.T, r row, out sandbox.Ending) {
	t.Helper()
	if out.Outcome == sandbox.OutcomeVerified || out.Outcome == sandbox.OutcomeAlreadyGone {
		assert.False(t, c.runs(c.id), "%s, and it runs: %+v", out.Outcome, out.Evidence)
	}
	if r.must {
		assert.Equal(t, sandbox.OutcomeVerified, out.Outcome, "%s: %v", out.Reason, out.Err)
	}
	assert.True(t, c.runs(c.other), "another one has ended")
	asked := map[string]int{} // a stop and a delete may be two requests
	for _, call := range c.server.Calls("") {
		if call.Route == c.stop || call.Route == c.destroy {
			asked[call.Route]++
			assert.NotContains(t, call.URL, stranger(c.id), "it is asked of somebody whom nobody selected")
		}
	}
	for route, n := range asked {
		switch {
		case strings.HasPrefix(r.name, "429"):
			assert.LessOrEqual(t, n, most, route)
		case strings.HasPrefix(r.name, "404"), strings.HasPrefix(r.name, "410"):
			assert.LessOrEqual(t, n, 2, "%s: it was denied, and the list has it", route)
		default:
			assert.LessOrEqual(t, n, 1, "it is asked again: %s", route)
		}
	}
	if out.Err != nil {
		c.masked(t, out.Err)
	}
	c.hidden(t, out.Reason+fmt.Sprint(out.Evidence))
}

// created checks that a reported sandbox exists, and that one reported as not made does not.
func created(ctx context.Context, t wiretest.T, c *cloud, r row) {
	t.Helper()
	launcher, ok := providers.As[providers.Launcher](c.p)
	if !ok {
		return
	}
	before := c.count()
	made, err := launcher.Create(ctx, sandbox.Spec{})
	after := c.count()
	switch {
	case err == nil:
		assert.True(t, c.runs(made.ID), "%q was made, and nobody knows it", made.ID)
		assert.Equal(t, before+1, after)
		return
	case errors.Is(err, providers.ErrNothingMade):
		assert.Equal(t, before, after, "nothing was made, it says: %v", err)
	}
	assert.LessOrEqual(t, after, before+1, "two were made")
	c.masked(t, err)
	if !strings.HasPrefix(r.name, "429") {
		assert.Len(t, c.server.Calls(c.create), 1, "it is asked for again")
	}
}

func used(ctx context.Context, _ wiretest.T, c *cloud) error {
	reader, ok := c.p.(providers.UsageReader)
	if !ok {
		return fault.New(down, "none")
	}
	u, err := reader.Usage(ctx, c.id)
	if err == nil && u.MemoryBytes == nil && u.CPUPercent == nil {
		return fault.New(down, "no figures, and no error")
	}
	return err
}

func logged(ctx context.Context, t wiretest.T, c *cloud) error {
	t.Helper()
	reader, ok := c.p.(providers.LogReader)
	require.True(t, ok)
	var failed error
	var text []string
	for l, err := range reader.Logs(ctx, c.id, providers.LogQuery{}) {
		if failed = errors.Join(failed, err); err == nil {
			text = append(text, l.Text)
		}
	}
	if failed == nil && c.create != "" {
		assert.Equal(t, []string{"some words"}, text, "a part of it passes for the whole")
	}
	return failed
}

func exited(ctx context.Context, t wiretest.T, c *cloud) error {
	t.Helper()
	reader, ok := providers.As[providers.ExitReader](c.p)
	if !ok {
		return fault.New(down, "none")
	}
	exit, err := reader.Exit(ctx, c.id)
	if err == nil && assert.NotNil(t, exit) && assert.NotNil(t, exit.Code) {
		assert.Equal(t, 3, *exit.Code)
	}
	return err
}

func executed(ctx context.Context, t wiretest.T, c *cloud) error {
	t.Helper()
	commander, ok := providers.As[providers.Commander](c.p)
	if !ok {
		return fault.New(down, "none")
	}
	var out bytes.Buffer
	exit, err := commander.Exec(ctx, c.id, providers.Command{Args: []string{"sh", "-c", "echo some words; exit 3"}, Stdout: &out, Stderr: new(bytes.Buffer)})
	if err == nil && assert.NotNil(t, exit.Code) {
		assert.Equal(t, 3, *exit.Code)
		assert.Equal(t, "some words\n", out.String(), "a part of it passes for the whole")
	}
	return err
}

// TestHostileNames uses invalid ids with every provider: a request must reach the route of exactly
// that object, or none.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	for name, open := range clouds() {
		for i, id := range []string{
			".", "..", "a/b", "../list", "%2e%2e", "%2f", "?x=1", "#x", " ", "a b", "a\nb", "\x1b[31m", "\u202eabc", "", "*", "a&b=c", "a;b", "\x00", strings.Repeat("\U0001f600", 200),
		} {
			bubble.Run(t, fmt.Sprintf("%s, %d", name, i), func(t *testing.T) {
				c := open(t)
				before := c.count()
				for _, v := range wiretest.Verbs() {
					if strings.HasPrefix(v.Name, "create") || v.Name == "list" || v.Name == "verify" {
						continue
					}
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					err := v.Run(ctx, c.p, id)
					cancel()
					assert.Error(t, err, "%s of %q", v.Name, id) //nolint:testifylint // the rest is judged all the same
				}
				assert.Equal(t, before, c.count(), "somebody has ended")
				if closer, ok := c.p.(interface{ Close() }); ok {
					closer.Close()
				}
			})
		}
	}
}
