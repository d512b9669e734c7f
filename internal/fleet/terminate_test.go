package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// end finds what words mean and ends it.
func end(t *testing.T, f *fleet.Fleet, o fleet.EndOptions, words ...string) []sandbox.Ending {
	t.Helper()
	targets, err := f.Find(t.Context(), words, fleet.FindOptions{Destructive: true})
	require.NoError(t, err)
	return endThese(t.Context(), f, o, targets...)
}

func endThese(ctx context.Context, f *fleet.Fleet, o fleet.EndOptions, targets ...sandbox.Sandbox) []sandbox.Ending {
	var endings []sandbox.Ending
	for e := range f.Terminate(ctx, targets, o) {
		endings = append(endings, e)
	}
	return endings
}

func planted(kind fault.Kind) error { return fault.New(kind, "planted") }

// unread has a sandbox asked to end as it was found.
func unread() fleet.Recheck { return fleet.Recheck{Skip: "a test of what follows"} }

func unreadable() error { return fault.New(fault.KindUnavailable, "%w", providers.ErrUnreadable) }

// one is what happens to one sandbox, prod/abcd, that was listed.
type one struct {
	options fake.Options
	seed    fake.Seed
	faults  []fake.Fault
	end     fleet.EndOptions
	unseen  bool // the target is a bare reference
	outcome sandbox.Outcome
	reason  string
	kind    fault.Kind // of Err
	took    time.Duration
	asked   int
}

func cases() map[string]one {
	pre := fleet.EndOptions{Wait: 10 * time.Second}
	drop := fleet.EndOptions{Wait: 10 * time.Second, Delete: true}
	illegible, heard := drop, pre
	illegible.Recheck.AllowUnreadable = func(sandbox.Sandbox) bool { return true }
	heard.Recheck.AlreadyAsked = func(sandbox.Sandbox) bool { return true }
	get, ask := fake.OpGet, fake.OpTerminate
	slow := fake.Options{EndFor: 200 * time.Millisecond}
	proved := fake.Options{Proof: func(string, providers.EndQuery) (providers.Proof, error) {
		return providers.Proof{Ended: sandbox.True}, nil
	}}
	lasting := fake.Options{Proof: func(_ string, q providers.EndQuery) (providers.Proof, error) {
		if q.Now.Sub(q.Since) < time.Second {
			return providers.Proof{Ended: sandbox.Unknown, Reason: "one 404"}, nil
		}
		return providers.Proof{Ended: sandbox.True}, nil
	}}
	kept := fake.Options{Proof: func(string, providers.EndQuery) (providers.Proof, error) {
		return providers.Proof{Ended: sandbox.False, Reason: "it is terminating", KeptBy: "its node n-1 is not ready"}, nil
	}}
	running := fake.Seed{}
	state := func(s sandbox.State) fake.Seed { return fake.Seed{Sandbox: sandbox.Sandbox{State: s}} }
	verified, gone, failed := sandbox.OutcomeVerified, sandbox.OutcomeAlreadyGone, sandbox.OutcomeFailed
	return map[string]one{
		"ends and is kept":           {slow, running, nil, pre, false, verified, "", "", 375 * time.Millisecond, 1},
		"ends and is gone":           {fake.Options{After: fake.AfterGone}, running, nil, pre, false, verified, "", "", 0, 1},
		"ends and is missing":        {fake.Options{After: fake.AfterMissing}, running, nil, pre, false, verified, "", "", 0, 1},
		"deleted":                    {slow, running, nil, drop, false, verified, "", "", 375 * time.Millisecond, 1},
		"had ended":                  {slow, state(sandbox.StateFailed), nil, pre, false, gone, "it had ended before", "", 0, 0},
		"had ended, kept, deleted":   {slow, state(sandbox.StateFailed), nil, drop, false, verified, "", "", 0, 1},
		"had ended, no precheck":     {slow, state(sandbox.StateFailed), nil, fleet.EndOptions{Recheck: unread()}, false, gone, "it ended before the request", "", 0, 1},
		"stopped since":              {slow, state(sandbox.StateStopped), nil, pre, false, sandbox.OutcomeAlreadyGone, "it had stopped before", "", 0, 0},
		"stopped, deleted":           {slow, state(sandbox.StateStopped), nil, drop, false, verified, "", "", 375 * time.Millisecond, 1},
		"went before the look":       {proved, state(sandbox.StateTerminated), []fake.Fault{{Op: get, Err: planted(fault.KindNotFound)}}, pre, false, gone, "it ended before", "", 0, 0},
		"404 at the look, listed":    {proved, running, []fake.Fault{{Op: get, Err: planted(fault.KindNotFound)}}, pre, false, verified, "", "", 0, 1},
		"410 at the look, listed":    {proved, running, []fake.Fault{{Op: get, Err: planted(fault.KindGone)}}, pre, false, verified, "", "", 0, 1},
		"404 at the look, ignored":   {slow, running, []fake.Fault{{Op: get, Err: planted(fault.KindNotFound)}, {Op: ask, Skip: true}}, pre, false, sandbox.OutcomeAccepted, "not verified: it is running", "", 10 * time.Second, 1},
		"404 at the look, no list":   {proved, state(sandbox.StateTerminated), []fake.Fault{{Op: get, Err: planted(fault.KindNotFound)}, {Op: fake.OpList, Err: planted(fault.KindUnavailable)}}, pre, false, failed, "it is unknown whether it is listed", fault.KindUnverified, 10 * time.Second, 0},
		"404 at the look, runs on":   {slow, running, []fake.Fault{{Op: get, Err: planted(fault.KindNotFound)}}, pre, false, verified, "", "", 375 * time.Millisecond, 1},
		"404 once, runs on":          {slow, running, []fake.Fault{{Op: get, Times: 1, Err: planted(fault.KindNotFound)}}, pre, false, verified, "", "", 375 * time.Millisecond, 1},
		"404 once, not listed":       {slow, running, []fake.Fault{{Op: get, Times: 1, Err: planted(fault.KindNotFound)}, {Op: fake.OpList, Skip: true}}, pre, false, verified, "", "", 375 * time.Millisecond, 1},
		"410 at the look":            {slow, running, []fake.Fault{{Op: get, Err: planted(fault.KindGone)}}, pre, true, verified, "", "", 375 * time.Millisecond, 1},
		"404, never seen":            {slow, running, []fake.Fault{{Op: get, Err: planted(fault.KindNotFound)}}, pre, true, verified, "", "", 375 * time.Millisecond, 1},
		"404, not listed either":     {slow, running, []fake.Fault{{Op: get, Err: planted(fault.KindNotFound)}, {Op: fake.OpList, Skip: true}}, pre, true, failed, "planted", fault.KindNotFound, 0, 0},
		"404 at ask, seen":           {proved, running, []fake.Fault{{Op: ask, Err: planted(fault.KindNotFound)}, {Op: get, After: 1, Err: planted(fault.KindNotFound)}}, pre, true, sandbox.OutcomeAccepted, "found no such sandbox, which is not verified: the list shows it as running", "", 10 * time.Second, 2},
		"404s between reads":         {lasting, running, []fake.Fault{{Op: ask, Skip: true}, {Op: get, After: 1, Times: 1, Err: planted(fault.KindNotFound)}, {Op: get, After: 3, Times: 1, Err: planted(fault.KindNotFound)}, {Op: get, After: 5, Times: 1, Err: planted(fault.KindNotFound)}}, pre, false, sandbox.OutcomeAccepted, "still running", "", 10 * time.Second, 1},
		"404 at ask, never seen":     {slow, running, []fake.Fault{{Op: ask, Err: planted(fault.KindNotFound)}}, fleet.EndOptions{Recheck: unread()}, true, sandbox.OutcomeAccepted, "found no such sandbox, which is not verified", "", 30 * time.Second, 2},
		"404 after, never seen":      {fake.Options{After: fake.AfterMissing}, running, nil, fleet.EndOptions{Recheck: unread()}, true, failed, "no such sandbox", fault.KindNotFound, 0, 1},
		"look fails":                 {slow, running, []fake.Fault{{Op: get, Err: planted(fault.KindUnavailable)}}, pre, false, failed, "planted", fault.KindUnavailable, 0, 0},
		"unreadable":                 {slow, running, []fake.Fault{{Op: get, Err: unreadable()}}, pre, false, failed, "cannot be read", fault.KindUnavailable, 0, 0},
		"unreadable, allowed":        {fake.Options{}, running, []fake.Fault{{Op: get, Times: 1, Err: unreadable()}}, illegible, false, verified, "", "", 0, 1},
		"unreadable, deleted":        {fake.Options{}, running, []fake.Fault{{Op: get, Times: 1, Err: unreadable()}}, drop, false, failed, "cannot be read", fault.KindUnavailable, 0, 0},
		"heard before":               {slow, running, nil, heard, false, sandbox.OutcomeAccepted, "still running after 10s", "", 10 * time.Second, 0},
		"look hangs":                 {slow, running, []fake.Fault{{Op: get, Hang: true}}, pre, false, sandbox.OutcomeNotAttempted, "no answer within 20s", fault.KindUnavailable, 20 * time.Second, 0},
		"no right":                   {slow, running, []fake.Fault{{Op: ask, Err: planted(fault.KindAuth)}}, pre, false, failed, "planted", fault.KindAuth, 0, 1},
		"provider refuses":           {slow, running, []fake.Fault{{Op: ask, Err: planted(fault.KindRefused)}}, pre, false, sandbox.OutcomeSkipped, "planted", fault.KindRefused, 0, 1},
		"ask fails":                  {slow, running, []fake.Fault{{Op: ask, Err: planted(fault.KindUnavailable)}}, pre, false, failed, "planted", fault.KindUnavailable, 0, 1},
		"answer lost, it ends":       {slow, running, []fake.Fault{{Op: ask, Err: planted(fault.KindUnavailable), Late: true}}, pre, false, verified, "", "", 375 * time.Millisecond, 1},
		"answer lost, it ended":      {fake.Options{}, running, []fake.Fault{{Op: ask, Err: planted(fault.KindUnavailable), Late: true}}, pre, false, verified, "", "", 0, 1},
		"ask hangs":                  {slow, running, []fake.Fault{{Op: ask, Hang: true}}, pre, false, failed, "no answer within 20s", fault.KindUnavailable, 20 * time.Second, 1},
		"liar":                       {slow, running, []fake.Fault{{Op: ask, Skip: true}}, pre, false, sandbox.OutcomeAccepted, "accepted but still running after 10s", "", 10 * time.Second, 1},
		"stuck":                      {slow, fake.Seed{EndFor: fake.Forever}, nil, pre, false, sandbox.OutcomeStuck, "still terminating after 10s", "", 10 * time.Second, 1},
		"stuck, for a known reason":  {kept, fake.Seed{EndFor: fake.Forever}, nil, pre, false, sandbox.OutcomeStuck, "still terminating after 10s: its node n-1 is not ready", "", 10 * time.Second, 1},
		"blind for a while":          {slow, running, []fake.Fault{{Op: get, After: 1, Times: 3, Err: planted(fault.KindUnavailable)}}, pre, false, verified, "", "", 375 * time.Millisecond, 1},
		"blind for ever":             {slow, running, []fake.Fault{{Op: get, After: 1, Err: planted(fault.KindUnavailable)}}, pre, false, sandbox.OutcomeAccepted, "the end cannot be verified", "", 10 * time.Second, 1},
		"right lost after ask":       {slow, running, []fake.Fault{{Op: get, After: 1, Err: planted(fault.KindAuth)}}, pre, false, sandbox.OutcomeAccepted, "the end cannot be verified", "", 0, 1},
		"the default wait is 30s":    {slow, fake.Seed{EndFor: fake.Forever}, nil, fleet.EndOptions{Recheck: unread()}, false, sandbox.OutcomeStuck, "after 30s", "", 30 * time.Second, 1},
		"delete that leaves a trace": {slow, state(sandbox.StateFailed), []fake.Fault{{Op: ask, Skip: true}}, drop, false, sandbox.OutcomeAccepted, "it has ended, but the provider still keeps its data", "", 10 * time.Second, 1},
		"judged changed": {slow, running, nil, fleet.EndOptions{Recheck: fleet.Recheck{Judge: func(sandbox.Sandbox) (sandbox.Outcome, string) {
			return sandbox.OutcomeChanged, "it works again"
		}}}, false, sandbox.OutcomeChanged, "it works again", "", 0, 0},
	}
}

func TestWhatIsStoppedNeedsADelete(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "prod"})
	target, err := p.Get(t.Context(), p.Add(fake.Seed{Sandbox: sandbox.Sandbox{State: sandbox.StateStopped}})[0])
	require.NoError(t, err)
	got := endThese(t.Context(), of(p), fleet.EndOptions{}, target)
	require.Len(t, got, 1)
	assert.Equal(t, sandbox.OutcomeSkipped, got[0].Outcome)
	assert.Contains(t, got[0].Reason, "needs_delete")
	assert.Empty(t, p.Calls(fake.OpTerminate))
}

func TestNothingIsAskedBeforeItIsWrittenDown(t *testing.T) {
	t.Parallel()
	p := stocked("prod", "a", "b")
	full := errors.New("no space left on device")
	var seen []sandbox.State
	how := fleet.EndOptions{Before: func(_ context.Context, s sandbox.Sandbox, _ bool) error {
		assert.Empty(t, p.Calls(fake.OpTerminate))
		seen = append(seen, s.State)
		return full
	}}
	got := endThese(t.Context(), of(p), how, sandbox.Sandbox{Provider: "prod", ID: "a"})
	require.Len(t, got, 1)
	assert.Equal(t, sandbox.OutcomeFailed, got[0].Outcome)
	require.ErrorIs(t, got[0].Err, full)
	assert.Equal(t, []sandbox.State{sandbox.StateRunning}, seen, "with what was read just before")
	assert.Empty(t, p.Calls(fake.OpTerminate))
}

func TestTheFirstAreAskedFirst(t *testing.T) {
	t.Parallel()
	const slots = 4
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod", Latency: time.Second, EndFor: time.Hour})
		var targets []sandbox.Sandbox
		for i := range 20 {
			id := fmt.Sprintf("box%02d", i)
			p.Add(box(id, ""))
			targets = append(targets, sandbox.Sandbox{Provider: "prod", ID: id, State: sandbox.StateRunning})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
		defer cancel()
		f := fleet.New([]fleet.Member{{Provider: p}}, fleet.Options{Slots: slots})
		asked := map[string]bool{}
		for e := range f.Terminate(ctx, targets, fleet.EndOptions{}) {
			asked[e.Ref.ID] = e.Outcome != sandbox.OutcomeNotAttempted
		}
		const apart = 2 * slots // those that ask at once have no order among them
		for i, target := range targets {
			if i >= apart && asked[target.ID] {
				assert.True(t, asked[targets[i-apart].ID], "%s was asked and %s was not", target.ID, targets[i-apart].ID)
			}
		}
		assert.True(t, asked["box00"])
		assert.False(t, asked["box19"], "the time was over before its turn")
	})
}

func TestTerminateOne(t *testing.T) {
	t.Parallel()
	for name, tc := range cases() {
		bubble.Run(t, name, func(t *testing.T) {
			tc.options.Name = "prod"
			p := fake.New(tc.options)
			tc.seed.Sandbox.ID = "abcd"
			p.Add(tc.seed)
			target := sandbox.Sandbox{Provider: "prod", ID: "abcd"}
			if !tc.unseen {
				target.State = sandbox.StateRunning
			}
			p.Break(tc.faults...)
			endings := endThese(t.Context(), of(p), tc.end, target)
			require.Len(t, endings, 1)
			got := endings[0]
			assert.Equal(t, tc.outcome, got.Outcome, "%s", got.Reason)
			assert.Contains(t, got.Reason, tc.reason)
			assert.Equal(t, tc.kind, fault.KindOf(got.Err), "%v", got.Err)
			assert.Equal(t, tc.took, got.Duration)
			assert.Len(t, p.Calls(fake.OpTerminate), tc.asked, "asked at most once")
			checkEvidence(t, got)
		})
	}
}

// checkEvidence holds every claim of an end to what proves it.
func checkEvidence(t *testing.T, e sandbox.Ending) {
	t.Helper()
	for _, fact := range e.Evidence {
		assert.NotEmpty(t, fact.What)
		assert.NotEmpty(t, fact.Value)
		assert.NotEmpty(t, fact.Source)
		assert.False(t, fact.At.IsZero())
	}
	if e.Outcome == sandbox.OutcomeVerified || e.Outcome == sandbox.OutcomeAlreadyGone {
		assert.NotEmpty(t, e.Evidence, "an end has evidence")
	}
	if last := len(e.Evidence) - 1; last >= 0 && e.Evidence[last].Value == "not_found" {
		assert.GreaterOrEqual(t, last, 1, "a 404 proves an end only of what was seen")
	}
}

func TestTerminateLooksAtWhoHasTheIDNow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := fake.New(fake.Options{Name: "prod"})
	p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "abcd", CreatedAt: now}})
	before := sandbox.Sandbox{Provider: "prod", ID: "abcd", State: sandbox.StateRunning, CreatedAt: now.Add(-time.Hour)}
	got := endThese(t.Context(), of(p), fleet.EndOptions{}, before)
	require.Len(t, got, 1)
	assert.Equal(t, sandbox.OutcomeChanged, got[0].Outcome)
	assert.Empty(t, p.Calls(fake.OpTerminate))
}

func TestTerminateCountsEachTargetOnce(t *testing.T) {
	t.Parallel()
	p := stocked("prod", "a", "b")
	f := of(p)
	seen := func(profile, id string) sandbox.Sandbox {
		return sandbox.Sandbox{Provider: profile, ID: id, State: sandbox.StateRunning}
	}
	seq := f.Terminate(t.Context(), []sandbox.Sandbox{seen("prod", "a"), seen("nowhere", "a"), seen("prod", "a"), seen("prod", "b")}, fleet.EndOptions{Recheck: unread()})
	got := map[string]sandbox.Outcome{}
	for e := range seq {
		got[e.Ref.String()] = e.Outcome
	}
	assert.Equal(t, map[string]sandbox.Outcome{"prod/a": "verified", "prod/b": "verified", "nowhere/a": "failed"}, got)
	assert.Len(t, p.Calls(fake.OpTerminate), 2)
	for range seq {
		assert.Fail(t, "a second reading asks again")
	}
}

// herd is n sandboxes on a fake, as they were listed.
func herd(o fake.Options, n int) (*fake.Provider, []sandbox.Sandbox) {
	p := fake.New(o)
	targets := make([]sandbox.Sandbox, 0, n)
	for i := range n {
		id := fmt.Sprintf("box-%03d", i)
		p.Add(box(id, ""))
		targets = append(targets, sandbox.Sandbox{Provider: p.Name(), ID: id, State: sandbox.StateRunning})
	}
	return p, targets
}

func TestASilentProviderCostsItsTimeoutOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hung, lost := herd(fake.Options{Name: "hung"}, 100)
		hung.Break(fake.Fault{Op: fake.OpGet, Hang: true})
		good, fine := herd(fake.Options{Name: "good", Latency: 20 * time.Millisecond, EndFor: 200 * time.Millisecond}, 100)
		began := time.Now()
		counts := map[string]int{}
		var goodDone time.Duration
		for e := range of(hung, good).Terminate(t.Context(), append(lost, fine...), fleet.EndOptions{}) {
			counts[e.Ref.Provider+" "+string(e.Outcome)]++
			if e.Ref.Provider == "good" {
				goodDone = time.Since(began)
			} else {
				assert.Equal(t, fault.KindUnavailable, fault.KindOf(e.Err))
			}
		}
		assert.Equal(t, map[string]int{"hung not_attempted": 100, "good verified": 100}, counts)
		assert.Less(t, goodDone, time.Second, "the good one does not wait")
		assert.Equal(t, 20*time.Second, time.Since(began))
		assert.Empty(t, hung.Calls(fake.OpTerminate))
	})
}

func TestOneHungSandboxDoesNotGiveUpItsProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, targets := herd(fake.Options{Name: "prod", Latency: time.Second}, 200)
		p.Break(fake.Fault{Op: fake.OpGet, ID: targets[0].ID, Hang: true})
		got := fleet.Count(endThese(t.Context(), of(p), fleet.EndOptions{}, targets...))
		assert.Equal(t, fleet.Counts{Selected: 200, Verified: 199, Failed: 1}, got)
	})
}

func TestInterruptedRunsAreHonest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, targets := herd(fake.Options{Name: "prod", Latency: 20 * time.Millisecond, EndFor: fake.Forever}, 100)
		ctx, cancel := context.WithTimeout(t.Context(), 110*time.Millisecond)
		defer cancel()
		began := time.Now()
		endings := endThese(ctx, of(p), fleet.EndOptions{}, targets...)
		assert.Equal(t, 110*time.Millisecond, time.Since(began))
		c := fleet.Count(endings)
		assert.Equal(t, 100, c.Accepted+c.Failed+c.NotAttempted, "%+v", c)
		assert.NotZero(t, c.NotAttempted)
		assert.Equal(t, len(p.Calls(fake.OpTerminate)), c.Accepted+c.Failed, "what was asked is not called not_attempted")
		assert.Equal(t, fault.KindTimeout, fault.KindOf(fleet.Verdict(endings, true)))
	})
}

func TestARunThatIsOverBeforeItBeginsAsksNothing(t *testing.T) {
	t.Parallel()
	for _, recheck := range []fleet.Recheck{{}, unread()} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p, targets := herd(fake.Options{Name: "prod"}, 100)
		endings := endThese(ctx, of(p), fleet.EndOptions{Recheck: recheck}, targets...)
		assert.Equal(t, fleet.Counts{Selected: 100, NotAttempted: 100}, fleet.Count(endings))
		assert.Empty(t, p.Calls(), "a free slot is no reason to send anything")
		assert.Equal(t, fault.KindCanceled, fault.KindOf(fleet.Verdict(endings, true)))
	}
}

func TestAConsumerThatStopsEndsTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, targets := herd(fake.Options{Name: "prod", Latency: 20 * time.Millisecond}, 200)
		targets = append(targets, sandbox.Sandbox{Provider: "nowhere", ID: "x"}) // fails at once
		for e := range of(p).Terminate(t.Context(), targets, fleet.EndOptions{Recheck: unread()}) {
			assert.Equal(t, sandbox.OutcomeFailed, e.Outcome)
			break
		}
		calls := len(p.Calls())
		advance(t, time.Minute)
		assert.Len(t, p.Calls(), calls, "nothing is asked after the loop")
		assert.Less(t, len(p.Calls(fake.OpTerminate)), 200)
	})
}
