package fleet_test

import (
	"context"
	"iter"
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

// gate is a fake that keeps what admission was asked for.
type gate struct {
	*fake.Provider

	asked *[]int64
}

func (g gate) Admit(ctx context.Context, memoryBytes int64) error {
	*g.asked = append(*g.asked, memoryBytes)
	return g.Provider.Admit(ctx, memoryBytes)
}

func TestAdmissionIsAskedOfThoseWhoHaveASay(t *testing.T) {
	t.Parallel()
	var asked []int64
	g := gate{fake.New(fake.Options{Name: "prod"}), &asked}
	gone := providers.NewUnopened(providers.Profile{Name: "gone"}, fault.New(fault.KindAuth, "no token"))
	f := of(g, fake.New(fake.Options{Name: "bare"}).Bare(), gone)
	require.NoError(t, f.Admit(t.Context(), "prod", 1<<30))
	g.Break(fake.Fault{Op: fake.OpAdmit, Err: fault.New(fault.KindRefused, "memory pressure is %d %%", 23).WithHint("wait")})
	err := f.Admit(t.Context(), "prod", 0)
	assert.Equal(t, fault.KindRefused, fault.KindOf(err))
	require.EqualError(t, err, "prod: admit: memory pressure is 23 %")
	assert.Equal(t, "wait", fault.HintOf(err))
	assert.Equal(t, []int64{1 << 30, 0}, asked)

	require.NoError(t, f.Admit(t.Context(), "bare", 1<<60), "who has no say refuses nothing")
	assert.Equal(t, fault.KindUsage, fault.KindOf(f.Admit(t.Context(), "nobody", 1)))
	assert.Equal(t, fault.KindAuth, fault.KindOf(f.Admit(t.Context(), "gone", 1)), "what could not be opened admits nothing")
}

func TestAnAdmissionThatHangsIsNoYes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod"})
		p.Break(fake.Fault{Op: fake.OpAdmit, Hang: true})
		began := time.Now()
		err := of(p).Admit(t.Context(), "prod", 1)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
		assert.Equal(t, fleet.DefaultTimeout, time.Since(began))
	})
}

func marked(id string, state sandbox.State, labels map[string]string) fake.Seed {
	return fake.Seed{Sandbox: sandbox.Sandbox{ID: id, State: state, Labels: labels}}
}

// everything is a provider that heeds no filter, as it may.
type everything struct{ *fake.Provider }

func (e everything) List(ctx context.Context, _ providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return e.Provider.List(ctx, providers.Query{All: true})
}

func TestLabelledFindsAllThatHasNotEnded(t *testing.T) {
	t.Parallel()
	mine := map[string]string{"sbx/task": "t1", "attempt": "2"}
	more := maps.Clone(mine)
	more["team"] = "blue"
	seeds := []fake.Seed{
		marked("ended", sandbox.StateTerminated, mine), marked("failed", sandbox.StateFailed, mine),
		marked("other", sandbox.StateRunning, map[string]string{"sbx/task": "t2", "attempt": "2"}),
		marked("half", sandbox.StateRunning, map[string]string{"sbx/task": "t1"}),
		marked("none", sandbox.StateRunning, nil), marked("more", sandbox.StateRunning, more),
	}
	want := []string{"prod/more"}
	for _, state := range []sandbox.State{
		sandbox.StateProvisioning, sandbox.StateRunning, sandbox.StatePaused, sandbox.StateStopped, sandbox.StateTerminating, sandbox.StateUnknown,
	} {
		seeds = append(seeds, marked("is-"+string(state), state, mine))
		want = append(want, "prod/is-"+string(state))
	}
	p := fake.New(fake.Options{Name: "prod", PageSize: 2})
	p.Add(seeds...)
	beside := fake.New(fake.Options{Name: "beside"})
	beside.Add(marked("same", sandbox.StateRunning, mine))
	for name, p := range map[string]providers.Provider{"narrows": p, "narrows nothing": everything{p}} {
		got, err := of(p, beside).Labelled(t.Context(), "prod", mine)
		require.NoError(t, err, name)
		assert.ElementsMatch(t, want, refs(got), name)
	}
	got, err := of(p).Labelled(t.Context(), "prod", map[string]string{"sbx/task": ""})
	require.NoError(t, err)
	assert.Empty(t, got, "an empty value is a value")
}

func TestLabelledIsCompleteOrAnError(t *testing.T) {
	t.Parallel()
	mine := map[string]string{"sbx/task": "t1"}
	for name, tc := range map[string]struct {
		harm fake.Fault
		kind fault.Kind
	}{
		"first page": {fake.Fault{Op: fake.OpList, Page: 1, Err: fault.New(fault.KindAuth, "403")}, fault.KindAuth},
		"last page":  {fake.Fault{Op: fake.OpList, Page: 3, Err: fault.New(fault.KindUnavailable, "503")}, fault.KindUnavailable},
		"a hang":     {fake.Fault{Op: fake.OpList, Page: 2, Hang: true}, fault.KindUnavailable},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := fake.New(fake.Options{Name: "prod", PageSize: 2})
			for _, id := range []string{"a", "b", "c", "d", "e"} {
				p.Add(marked(id, sandbox.StateRunning, mine))
			}
			f := of(p)
			got, err := f.Labelled(t.Context(), "prod", mine)
			require.NoError(t, err)
			require.Len(t, got, 5)
			p.Break(tc.harm)
			got, err = f.Labelled(t.Context(), "prod", mine)
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			require.ErrorContains(t, err, "prod: list: ")
			assert.Nil(t, got, "a part is no answer")
		})
	}
}

func TestLabelledGivesNoEmptyAnswerThatProvesNothing(t *testing.T) {
	t.Parallel()
	f := of(stocked("prod", "abcd"), fake.New(fake.Options{Name: "watch"}).Only("logs"))
	for _, none := range []map[string]string{nil, {}} {
		_, err := f.Labelled(t.Context(), "prod", none)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), "no label is not every sandbox")
	}
	mine := map[string]string{"sbx/task": "t1"}
	_, err := f.Labelled(t.Context(), "watch", mine)
	assert.Equal(t, fault.KindUnsupported, fault.KindOf(err), "nothing that sbx made can be there")
	_, err = f.Labelled(t.Context(), "nobody", mine)
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = f.Labelled(ctx, "prod", mine)
	assert.Equal(t, fault.KindCanceled, fault.KindOf(err))
}

// TestAnUndoneCreateLeavesAnAcknowledgedEnd: a create ends its sandbox again where its program cannot be started. Who
// verifies that end later finds no such sandbox, and knows that a request to end it was acknowledged.
func TestAnUndoneCreateLeavesAnAcknowledgedEnd(t *testing.T) {
	t.Parallel()
	noFolder := fault.New(fault.KindLauncher, "there is no folder %q in it", "/missing")
	for name, tc := range map[string]struct {
		err  error
		kept bool
	}{
		"ended again":          {fault.Placed(providers.Undone(fault.New(fault.KindLauncher, "%w; its sandbox was ended again", noFolder)), "prod", "create"), true},
		"its end was not sent": {fault.Placed(fault.New(fault.KindLauncher, "%w; its sandbox was not ended", noFolder), "prod", "create"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &requests{}
			f := with(fleet.Options{EndRequests: store}, undoing{fake.New(fake.Options{Name: "prod"}), tc.err})
			made, err := f.Create(t.Context(), "prod", sandbox.Spec{})
			require.EqualError(t, err, tc.err.Error())
			stored, kept := store.all[made.Ref()]
			assert.Equal(t, []bool{tc.kept, tc.kept}, []bool{kept, stored.Acknowledged})

			// Nobody has read it: the request finds nothing, as at a provider that forgets what has ended.
			o := fleet.EndOptions{Delete: true, Recheck: unread()}
			target := sandbox.Sandbox{Provider: "prod", ID: made.ID, State: sandbox.StateRunning}
			var told []sandbox.EndRequest
			o.After = func(_ sandbox.Ref, r sandbox.EndRequest) { told = append(told, r) }
			endThese(t.Context(), f, o, target)
			require.Len(t, told, 1)
			assert.Equal(t, tc.kept, told[0].Acknowledged, "%+v", told[0])
		})
	}
}

// undoing is a provider whose create fails after it has made a sandbox.
type undoing struct {
	*fake.Provider

	err error
}

func (u undoing) Create(context.Context, sandbox.Spec) (sandbox.Sandbox, error) {
	return sandbox.Sandbox{Provider: "prod", ID: "abcd"}, u.err
}
