package fleet_test

import (
	"context"
	"errors"
	"maps"
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

// requests keeps end requests in memory, as the store does for all processes.
type requests struct {
	all    map[sandbox.Ref]sandbox.EndRequest
	broken error
}

func (r *requests) Unconfirmed(context.Context) (map[sandbox.Ref]sandbox.EndRequest, error) {
	return maps.Clone(r.all), r.broken
}

func (r *requests) Keep(_ context.Context, ref sandbox.Ref, one sandbox.EndRequest) error {
	if r.all == nil {
		r.all = map[sandbox.Ref]sandbox.EndRequest{}
	}
	r.all[ref] = one
	return r.broken
}

func (r *requests) Forget(_ context.Context, ref sandbox.Ref) error {
	delete(r.all, ref)
	return r.broken
}

// forgetful is a provider that refuses to end prod/abcd and forgets its record, while
// its machine runs on: nothing that can be asked ever shows it again.
func forgetful() *fake.Provider {
	p := fake.New(fake.Options{Name: "prod", After: fake.AfterMissing})
	p.Add(box("abcd", "web"))
	p.Break(fake.Fault{Op: fake.OpTerminate, Err: fault.New(fault.KindUnavailable, "HTTP 500"), Late: true})
	return p
}

// TestWhatWasRefusedIsNotProvedByForgetting: within one run, and for every process
// after it, until a witness that is independent of the record agrees.
func TestWhatWasRefusedIsNotProvedByForgetting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, store := forgetful(), &requests{}
		look := fleet.EndOptions{Wait: 10 * time.Second}
		process := func() *fleet.Fleet { return with(fleet.Options{EndRequests: store}, p) }
		ref := sandbox.Ref{Provider: "prod", ID: "abcd"}

		got := end(t, process(), look, "prod/abcd")
		assert.Equal(t, sandbox.OutcomeAccepted, got[0].Outcome, "%s", got[0].Reason)
		assert.Equal(t, fault.KindUnverified, fault.KindOf(fleet.Verdict(got, true)))
		require.Contains(t, store.all, ref)
		assert.Contains(t, store.all[ref].Detail, "HTTP 500")

		for _, word := range []string{"prod/abcd", "abcd"} {
			got = end(t, process(), look, word)
			assert.Equal(t, sandbox.OutcomeAccepted, got[0].Outcome, "%s: %s", word, got[0].Reason)
			assert.Contains(t, got[0].Reason, "not acknowledged")
			assert.Equal(t, fault.KindUnverified, fault.KindOf(fleet.Verdict(got, true)))
		}
		assert.Len(t, p.Calls(fake.OpTerminate), 1)
		_, err := process().Find(t.Context(), []string{"prod/abcd"}, fleet.FindOptions{})
		assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "a reading verb has nothing to read")

		p.Tell(fake.LieIndependent) // the only thing that may prove it
		got = end(t, process(), look, "prod/abcd")
		assert.Equal(t, sandbox.OutcomeAlreadyGone, got[0].Outcome, "%s", got[0].Reason)
		assert.Empty(t, store.all)
	})
}

// TestAnUnprovedEndSaysWhenItWillBe: a provider may know until when the machine can run at most.
func TestAnUnprovedEndSaysWhenItWillBe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		until := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
		p := fake.New(fake.Options{Name: "prod", After: fake.AfterMissing, Proof: func(string, providers.EndQuery) (providers.Proof, error) {
			return providers.Proof{Ended: sandbox.True, IndependentFrom: until}, nil
		}})
		p.Add(box("abcd", "web"))
		p.Break(fake.Fault{Op: fake.OpTerminate, Err: fault.New(fault.KindUnavailable, "HTTP 500"), Late: true})
		got := end(t, with(fleet.Options{EndRequests: &requests{}}, p), fleet.EndOptions{Wait: time.Second}, "prod/abcd")
		assert.Equal(t, sandbox.OutcomeAccepted, got[0].Outcome)
		assert.Contains(t, got[0].Reason, "from 2026-03-02T09:00:00Z on it does")
	})
}

// TestOpenRequests: what may and what may not leave a request unconfirmed.
func TestOpenRequests(t *testing.T) {
	t.Parallel()
	refused := sandbox.EndRequest{Detail: "HTTP 500"}
	heard := sandbox.EndRequest{Acknowledged: true}
	lost := &fake.Fault{Op: fake.OpTerminate, Err: planted(fault.KindUnavailable), Late: true}
	for name, tc := range map[string]struct {
		options fake.Options
		fault   *fake.Fault
		gone    fault.Kind // what GET says before anything is asked
		before  *sandbox.EndRequest
		broken  error
		outcome sandbox.Outcome
		open    bool
	}{
		"acknowledged":                     {fake.Options{After: fake.AfterMissing}, nil, "", nil, nil, sandbox.OutcomeVerified, false},
		"acknowledged after a refusal":     {fake.Options{After: fake.AfterMissing}, nil, "", &refused, nil, sandbox.OutcomeVerified, false},
		"lost, and the record says it":     {fake.Options{After: fake.AfterKept}, lost, "", nil, nil, sandbox.OutcomeVerified, false},
		"lost, and gone":                   {fake.Options{After: fake.AfterGone}, lost, "", nil, nil, sandbox.OutcomeAccepted, true},
		"lost, and seen under way":         {fake.Options{After: fake.AfterMissing, EndFor: time.Second}, lost, "", nil, nil, sandbox.OutcomeVerified, false},
		"without the right":                {fake.Options{}, &fake.Fault{Op: fake.OpTerminate, Err: planted(fault.KindAuth)}, "", nil, nil, sandbox.OutcomeFailed, false},
		"without the right, after refusal": {fake.Options{}, &fake.Fault{Op: fake.OpTerminate, Err: planted(fault.KindAuth)}, "", &refused, nil, sandbox.OutcomeFailed, true},
		"missing, refused before":          {fake.Options{}, nil, fault.KindNotFound, &refused, nil, sandbox.OutcomeAccepted, true},
		"gone, refused before":             {fake.Options{}, nil, fault.KindGone, &refused, nil, sandbox.OutcomeAccepted, true},
		"missing, acknowledged before":     {fake.Options{}, nil, fault.KindNotFound, &heard, nil, sandbox.OutcomeVerified, false},
		"missing, and nothing can be read": {fake.Options{}, nil, fault.KindNotFound, nil, errors.New("disk"), sandbox.OutcomeFailed, false},
		"verified, and nothing can be":     {fake.Options{After: fake.AfterMissing}, nil, "", nil, errors.New("disk"), sandbox.OutcomeVerified, false},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			tc.options.Name = "prod"
			tc.options.Proof = func(string, providers.EndQuery) (providers.Proof, error) {
				return providers.Proof{Ended: sandbox.True, Evidence: []sandbox.Evidence{{What: "host"}}}, nil
			}
			p, store := fake.New(tc.options), &requests{broken: tc.broken}
			p.Add(box("abcd", ""))
			if tc.fault != nil {
				p.Break(*tc.fault)
			}
			if tc.gone != "" {
				p.Orphan("abcd") // neither read nor listed
				p.Break(fake.Fault{Op: fake.OpGet, Err: planted(tc.gone)})
			}
			o := fleet.EndOptions{Wait: 10 * time.Second, Earlier: map[sandbox.Ref]*sandbox.EndRequest{{Provider: "prod", ID: "abcd"}: tc.before}}
			got := endThese(t.Context(), with(fleet.Options{EndRequests: store}, p), o, sandbox.Sandbox{Provider: "prod", ID: "abcd", State: sandbox.StateRunning})
			assert.Equal(t, tc.outcome, got[0].Outcome, "%s", got[0].Reason)
			assert.Equal(t, tc.open, got[0].Request.Unconfirmed(), "%+v", got[0].Request)
			assert.Equal(t, tc.open, len(store.all) == 1, "%+v", store.all)
		})
	}
}

// TestAnInterruptedRequestIsKept: the request has no answer, so a missing record does not prove
// the end later.
func TestAnInterruptedRequestIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, store := stocked("prod", "abcd"), &requests{}
		p.Break(fake.Fault{Op: fake.OpTerminate, Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		endThese(ctx, with(fleet.Options{EndRequests: store}, p), fleet.EndOptions{Recheck: unread()}, sandbox.Sandbox{Provider: "prod", ID: "abcd", State: sandbox.StateRunning})
		assert.Len(t, store.all, 1)
	})
}

func TestWaitTakesNoForgettingForAnEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, store := stocked("prod", "abcd"), &requests{}
		ref := sandbox.Ref{Provider: "prod", ID: "abcd"}
		require.NoError(t, store.Keep(t.Context(), ref, sandbox.EndRequest{Detail: "HTTP 500"}))
		time.AfterFunc(time.Second, func() { p.Orphan("abcd") })
		_, err := with(fleet.Options{EndRequests: store}, p).Wait(t.Context(), ref, fleet.GoalEnded)
		assert.Equal(t, fault.KindUnverified, fault.KindOf(err), "%v", err)
	})
}

// TestA404IsDoubted: a GET that does not find a sandbox is compared with the list.
func TestA404IsDoubted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := stocked("prod", "aaaa", "bbbb")
		p.Break(fake.Fault{Op: fake.OpGet, Err: planted(fault.KindNotFound)})
		for _, destructive := range []bool{false, true} {
			got, err := of(p).Find(t.Context(), []string{"prod/aaaa", "prod/bbbb"}, fleet.FindOptions{Destructive: destructive})
			require.NoError(t, err)
			assert.Equal(t, []string{"prod/aaaa", "prod/bbbb"}, refs(got))
		}
		assert.Len(t, p.Calls(fake.OpList), 2, "one listing of a page each, however many words")
		_, err := of(p).Find(t.Context(), []string{"prod/cccc"}, fleet.FindOptions{})
		assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
		p.Break(fake.Fault{Op: fake.OpList, Err: planted(fault.KindUnavailable)})
		_, err = of(p).Find(t.Context(), []string{"prod/cccc"}, fleet.FindOptions{})
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "who could not list knows nothing: %v", err)
		assert.ErrorContains(t, err, "it is unknown whether it is listed")
	})
}

// TestWhatWasAcknowledgedIsProvedByWhoeverAsks: a sandbox whose end was acknowledged and not seen is found by later
// processes, and its absence is its end.
func TestWhatWasAcknowledgedIsProvedByWhoeverAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod", After: fake.AfterMissing, EndFor: time.Minute, Proof: func(string, providers.EndQuery) (providers.Proof, error) {
			return providers.Proof{Ended: sandbox.True}, nil
		}})
		p.Add(box("abcd", "web"))
		store := &requests{}
		process := func() *fleet.Fleet { return with(fleet.Options{EndRequests: store}, p) }
		ref := sandbox.Ref{Provider: "prod", ID: "abcd"}
		got := end(t, process(), fleet.EndOptions{Wait: 10 * time.Second}, "prod/abcd")
		assert.Equal(t, sandbox.OutcomeStuck, got[0].Outcome, "%s", got[0].Reason)
		require.Contains(t, store.all, ref)
		assert.True(t, store.all[ref].Acknowledged)

		time.Sleep(2 * time.Minute)
		require.NoError(t, process().EndUnproved(t.Context(), ref))
		got = end(t, process(), fleet.EndOptions{}, "prod/abcd")
		assert.Equal(t, sandbox.OutcomeAlreadyGone, got[0].Outcome, "%s", got[0].Reason)
		assert.Empty(t, store.all)
		assert.Len(t, p.Calls(fake.OpTerminate), 1)
	})
}
