package fleet_test

import (
	"context"
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

// misread reads a wrong state by id, some times.
type misread struct {
	*fake.Provider

	state sandbox.State
	times *int
}

func (m misread) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	s, err := m.Provider.Get(ctx, id)
	if *m.times--; *m.times >= 0 {
		s.State = m.state
	}
	return s, err
}

// Terminate is that of a provider with a read of its own: the one that is wrong.
func (m misread) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	if now, err := m.Get(ctx, id); err == nil && (now.State.Ended() || now.State == sandbox.StateStopped) && !o.Insist {
		return fault.New(fault.KindGone, "it is %s", now.State)
	}
	return m.Provider.Terminate(ctx, id, o)
}

// TestAStatementAloneIsNoEnd: a record says that the sandbox has ended, and nobody has asked for it.
func TestAStatementAloneIsNoEnd(t *testing.T) {
	t.Parallel()
	const ever = 1 << 20
	noList := []fake.Fault{{Op: fake.OpList, Err: planted(fault.KindUnavailable)}}
	for name, tc := range map[string]struct {
		state   sandbox.State
		times   int
		faults  []fake.Fault
		recheck fleet.Recheck
		outcome sandbox.Outcome
		asked   int
	}{
		"stopped once":                   {sandbox.StateStopped, 1, nil, fleet.Recheck{}, sandbox.OutcomeVerified, 1},
		"terminated once":                {sandbox.StateTerminated, 1, nil, fleet.Recheck{}, sandbox.OutcomeVerified, 1},
		"stopped, for ever":              {sandbox.StateStopped, ever, nil, fleet.Recheck{}, sandbox.OutcomeVerified, 1},
		"stopped, and no list":           {sandbox.StateStopped, 1, noList, fleet.Recheck{}, sandbox.OutcomeVerified, 1},
		"stopped, at the request":        {sandbox.StateStopped, 1, nil, unread(), sandbox.OutcomeVerified, 1},
		"stopped, at it and no list":     {sandbox.StateStopped, ever, noList, unread(), sandbox.OutcomeAccepted, 0},
		"stopped at it, and not for it":  {sandbox.StateStopped, ever, nil, unread(), sandbox.OutcomeVerified, 1},
		"terminated, the list is silent": {sandbox.StateTerminated, ever, noList, fleet.Recheck{}, sandbox.OutcomeVerified, 1},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := fake.New(fake.Options{Name: "prod"})
			p.Add(box("abcd", ""))
			p.Break(tc.faults...)
			lying := misread{p, tc.state, &tc.times}
			got := endThese(t.Context(), of(lying), fleet.EndOptions{Wait: 10 * time.Second, Recheck: tc.recheck}, sandbox.Sandbox{Provider: "prod", ID: "abcd", State: sandbox.StateRunning})
			require.Len(t, got, 1)
			assert.Len(t, p.Calls(fake.OpTerminate), tc.asked, "%s: %s", got[0].Outcome, got[0].Reason)
			if tc.asked > 0 {
				assert.Equal(t, tc.outcome, got[0].Outcome, got[0].Reason)
			} else {
				assert.NotContains(t, []sandbox.Outcome{sandbox.OutcomeVerified, sandbox.OutcomeAlreadyGone}, got[0].Outcome, got[0].Reason)
			}
		})
	}
}

// TestWhatOneStoreForgets: list, read and host of a provider that drops all of them at once are one source.
func TestWhatOneStoreForgets(t *testing.T) {
	t.Parallel()
	limit := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC) // an hour after virtual time begins
	proof := func(_ string, q providers.EndQuery) (providers.Proof, error) {
		return providers.Proof{Ended: sandbox.True, SameStore: true, IndependentFrom: q.ExpiresAt, Independent: !q.ExpiresAt.IsZero() && q.Now.After(q.ExpiresAt)}, nil
	}
	for name, tc := range map[string]struct {
		faults       []fake.Fault // besides, the store forgets
		passes       time.Duration
		acknowledged bool
		outcome      sandbox.Outcome
		open         bool
	}{
		"forgotten before":                  {nil, 0, false, sandbox.OutcomeFailed, false},
		"forgotten before, another's end":   {nil, 0, true, sandbox.OutcomeAlreadyGone, false},
		"forgotten, its own limit is over":  {nil, 2 * time.Hour, false, sandbox.OutcomeAlreadyGone, false},
		"asked, and no longer found":        {[]fake.Fault{{Op: fake.OpTerminate, Err: planted(fault.KindNotFound)}}, 0, false, sandbox.OutcomeAccepted, true},
		"asked, not found, another's end":   {[]fake.Fault{{Op: fake.OpTerminate, Err: planted(fault.KindNotFound)}}, 0, true, sandbox.OutcomeAlreadyGone, false},
		"asked, and no longer there as 410": {[]fake.Fault{{Op: fake.OpTerminate, Err: planted(fault.KindGone)}}, 0, false, sandbox.OutcomeAccepted, true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p, store := fake.New(fake.Options{Name: "prod", Proof: proof}), &requests{}
			seed := box("abcd", "")
			seed.Sandbox.ExpiresAt = limit
			p.Add(seed)
			o := fleet.EndOptions{Wait: 5 * time.Second}
			if tc.faults == nil {
				p.Orphan("abcd")
			} else {
				p.Break(tc.faults...)
				o.Before = func(context.Context, sandbox.Sandbox, bool) error { p.Orphan("abcd"); return nil }
			}
			<-time.After(tc.passes)
			f := with(fleet.Options{EndRequests: store, Acknowledged: func(context.Context, sandbox.Ref) bool { return tc.acknowledged }}, p)
			got := endThese(t.Context(), f, o, sandbox.Sandbox{Provider: "prod", ID: "abcd", State: sandbox.StateRunning, ExpiresAt: limit})
			require.Len(t, got, 1)
			assert.Equal(t, tc.outcome, got[0].Outcome, got[0].Reason)
			assert.Equal(t, tc.open, len(store.all) == 1, "it is kept for later runs: %+v", store.all)
			if tc.outcome != sandbox.OutcomeAlreadyGone {
				assert.Contains(t, got[0].Reason, "from 2000-01-01T01:00:00Z on it does")
				assert.Equal(t, fault.KindUnverified, fault.KindOf(fleet.Verdict(got, true)))
			}
		})
	}
}

// TestVanishedNeedsTwoSources: what ends the wait for a program.
func TestVanishedNeedsTwoSources(t *testing.T) {
	t.Parallel()
	missing := fake.Fault{Op: fake.OpGet, Err: planted(fault.KindGone)}
	for name, tc := range map[string]struct {
		faults []fake.Fault
		orphan bool
		gone   bool
		fails  bool
	}{
		"it runs":                     {nil, false, false, false},
		"denied, and listed":          {[]fake.Fault{missing}, false, false, false},
		"denied, and no list":         {[]fake.Fault{missing, {Op: fake.OpList, Err: planted(fault.KindUnavailable)}}, false, false, true},
		"neither found nor listed":    {nil, true, true, false},
		"not listed, and read":        {[]fake.Fault{{Op: fake.OpList, Skip: true}}, false, false, false},
		"it cannot be read, unlisted": {[]fake.Fault{{Op: fake.OpGet, Err: planted(fault.KindUnavailable)}}, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := stocked("prod", "abcd")
				if tc.orphan {
					p.Orphan("abcd")
				}
				p.Break(tc.faults...)
				gone, err := of(p).Vanished(t.Context(), sandbox.Ref{Provider: "prod", ID: "abcd"})
				assert.Equal(t, tc.gone, gone)
				assert.Equal(t, tc.fails, err != nil, "%v", err)
			})
		})
	}
}
